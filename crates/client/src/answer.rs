//! What the client answers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use overdue_protocol::call;
use overdue_protocol::{Generation, TimerId};

/// What became of a timer that was to be armed (PROTOCOL.md section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not armed and is now.
    Armed,
    /// The one before, of this generation, was due and had not been swept: it has fired. The new one is armed.
    FiredOld(Generation),
    /// It is armed in place of the one before, which will not fire.
    Replaced,
    /// It was armed already; nothing changed.
    Present,
    /// The armed deadline is the later (or earlier) one; nothing changed.
    Kept,
    /// It is not armed; nothing changed.
    Absent,
    /// It is due and will fire; nothing changed.
    Due,
    /// The answer was lost, and Redis says that this very call armed it. What was there before is not known.
    Confirmed,
}

impl Change {
    /// Whether this call armed the timer.
    #[must_use]
    pub fn is_armed(self) -> bool {
        matches!(self, Change::Armed | Change::FiredOld(_) | Change::Replaced | Change::Confirmed)
    }

    /// One word, for logs and programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Change::Armed => "armed",
            Change::FiredOld(_) => "fired_old",
            Change::Replaced => "replaced",
            Change::Present => "present",
            Change::Kept => "kept",
            Change::Absent => "absent",
            Change::Due => "due",
            Change::Confirmed => "confirmed",
        }
    }
}

/// What is armed after a schedule, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The armed generation; 0 when nothing is armed ([`Change::Absent`]).
    pub generation: Generation,
    /// The armed deadline, unix milliseconds on the server's clock; 0 when nothing is armed.
    pub due_ms: u64,
    /// What became of it.
    pub change: Change,
}

impl Scheduled {
    /// The armed deadline, on the server's clock.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.due_ms)
    }

    /// `None` when the timer was not looked at and has to be sent again.
    pub(crate) fn read(answer: &call::Armed) -> Option<Self> {
        let change = match answer.change {
            call::Change::Armed => Change::Armed,
            call::Change::FiredOld(generation) => Change::FiredOld(generation),
            call::Change::Replaced => Change::Replaced,
            call::Change::Present => Change::Present,
            call::Change::Kept => Change::Kept,
            call::Change::Absent => Change::Absent,
            call::Change::Due => Change::Due,
            call::Change::More => return None,
        };
        Some(Self { generation: answer.generation, due_ms: answer.due_ms, change })
    }
}

/// A timer that was armed and is no more, because it was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// The generation that will not fire; 0 when it had no record.
    pub generation: Generation,
    /// What its deadline was, unix milliseconds on the server's clock.
    pub due_ms: u64,
}

impl Armed {
    /// What its deadline was, on the server's clock.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.due_ms)
    }
}

/// A timer that is armed, with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmedTimer<T> {
    /// Its id.
    pub id: TimerId,
    /// The armed generation.
    pub generation: Generation,
    /// Its deadline, unix milliseconds on the server's clock.
    pub due_ms: u64,
    /// Its payload.
    pub payload: T,
    /// The trace context that it was armed with.
    pub trace: Option<bytes::Bytes>,
}

impl<T> ArmedTimer<T> {
    /// Its deadline, on the server's clock.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.due_ms)
    }
}
