//! One partition at work: what its loops share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::call::Standing;
use overdue_store::Reader;
use overdue_telemetry::label::HandledResult;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::crew::Crew;
use crate::hand::{Hands, State, Ticket};
use crate::outcome::{Outcome, cut};
use crate::work::Work;

/// What is to be done in Redis with one entry.
#[derive(Debug)]
pub(crate) enum Act {
    Done,
    /// It is for another group.
    Passed,
    Retry(Duration),
    Bury(&'static str, String),
    Release,
}

/// One entry on its way out.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) ticket: Ticket,
    pub(crate) act: Act,
    /// How it is counted, once Redis agrees.
    pub(crate) result: HandledResult,
    /// It is addressed to this group alone.
    pub(crate) ours: bool,
    /// Its payload and id, which bound a call.
    pub(crate) bytes: usize,
    /// A call with it may have been executed before: a LOST now means nothing.
    pub(crate) repeated: bool,
}

pub(crate) struct Station {
    pub(crate) crew: Arc<Crew>,
    pub(crate) standing: Standing,
    /// Its stream's key.
    pub(crate) stream: Bytes,
    pub(crate) hands: Hands,
    pub(crate) work: Arc<dyn Work>,
    /// Own pending entries may be out of hand: look for them before reading on.
    pub(crate) recover: AtomicBool,
    /// Bounded by what is in hand: see [`crate::reading`].
    verdicts: UnboundedSender<Verdict>,
    reader: Mutex<Option<Arc<Reader>>>,
}

impl Station {
    pub(crate) fn new(
        crew: Arc<Crew>,
        work: Arc<dyn Work>,
        number: u32,
    ) -> (Arc<Self>, UnboundedReceiver<Verdict>) {
        let (verdicts, outbox) = unbounded_channel();
        let partition = crew.store.keyspace().partition(&crew.queue, number);
        let stream = partition.stream();
        let (group, consumer) = (crew.group.clone(), Bytes::from(crew.name.clone()));
        let station = Self {
            standing: Standing { partition, group, consumer },
            stream,
            hands: Hands::default(),
            work,
            recover: AtomicBool::new(false),
            verdicts,
            reader: Mutex::default(),
            crew,
        };
        (Arc::new(station), outbox)
    }

    /// The partition for logs and health: `orders:0`.
    pub(crate) fn label(&self) -> String {
        format!("{}:{}", self.crew.queue, self.standing.partition.number())
    }

    /// Hands a verdict to the lane. After the lane has ended nothing can be done for it any more.
    pub(crate) fn say(&self, verdict: Verdict) {
        let _ = self.verdicts.send(verdict);
    }

    /// Lets others interrupt the reader.
    pub(crate) fn lend_reader(&self, reader: Option<Arc<Reader>>) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = reader;
    }

    /// Ends the read that is blocked now, if any.
    pub(crate) async fn unblock(&self) {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(reader) = reader {
            reader.unblock().await;
        }
    }

    /// What an outcome means at this attempt.
    fn judge(&self, outcome: Outcome, attempt: u32) -> (Act, HandledResult) {
        let options = &self.crew.options;
        let again = |wait: Option<Duration>, reason: String| {
            if attempt >= options.attempts {
                return (Act::Bury("attempts", cut(reason)), HandledResult::Exhausted);
            }
            (Act::Retry(wait.unwrap_or_else(|| options.policy.wait(attempt))), HandledResult::Retry)
        };
        match outcome {
            Outcome::Done => (Act::Done, HandledResult::Done),
            Outcome::Retry { reason } => again(None, reason),
            Outcome::RetryAfter { wait, reason } => again(Some(wait), reason),
            Outcome::Release => (Act::Release, HandledResult::Released),
            Outcome::Reject { reason } => (Act::Bury("rejected", cut(reason)), HandledResult::Reject),
        }
    }
}

/// One entry in the hands of its task, with its permit. Whatever becomes of the task, the permit comes back and the
/// entry is accounted for.
pub(crate) struct Hand {
    pub(crate) station: Arc<Station>,
    pub(crate) ticket: Ticket,
    attempt: u32,
    ours: bool,
    bytes: usize,
    said: bool,
}

impl Hand {
    pub(crate) fn new(station: Arc<Station>, ticket: Ticket, entry: &overdue_protocol::Entry) -> Self {
        let bytes = entry.payload.len() + entry.id.as_bytes().len();
        Self { station, ticket, attempt: entry.attempt, ours: entry.group.is_some(), bytes, said: false }
    }

    /// The handler has spoken.
    pub(crate) fn say(mut self, outcome: Outcome) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Outcome) {
        self.said = true;
        let (act, result) = self.station.judge(outcome, self.attempt);
        self.pass_on(act, result);
    }

    fn pass_on(&self, act: Act, result: HandledResult) {
        let (ticket, ours, bytes) = (self.ticket, self.ours, self.bytes);
        self.station.say(Verdict { ticket, act, result, ours, bytes, repeated: false });
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if !self.said {
            match self.station.hands.task_gone(self.ticket) {
                Some(State::Stopping) => self.pass_on(Act::Release, HandledResult::Released),
                // It may be ours again by now.
                Some(State::Dropped) => self.station.look_for_own(),
                Some(_) => self.send(Outcome::retry("the handler ended without an outcome")),
                None => {}
            }
        }
        self.station.crew.permits.add_permits(1);
    }
}
