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
use crate::duty::{Applying, Duty};
use crate::hand::{Hands, State, Ticket};
use crate::lone::Seat;
use crate::outcome::Outcome;
use crate::work::Work;

/// What is to be done in Redis with one entry.
#[derive(Debug)]
pub(crate) enum Act {
    Done,
    /// Done with these effects.
    Apply(Applying),
    /// It is for another group.
    Passed,
    /// With its next attempt, so much later.
    Retry(Duration),
    Bury(&'static str, String),
    /// With the same attempt, so much later.
    Release(Duration),
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
    /// Its payload and id.
    pub(crate) bytes: usize,
    /// A call with it may have been executed before: a LOST now means nothing.
    pub(crate) repeated: bool,
}

impl Verdict {
    /// What it adds to a call, in bytes.
    pub(crate) fn weight(&self) -> usize {
        match &self.act {
            Act::Apply(applying) => applying.weight(),
            _ => self.bytes,
        }
    }
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

    /// Group and partition for health, which several consumers of a process may share: `orders/billing:0`.
    pub(crate) fn label(&self) -> String {
        format!("{}/{}:{}", self.crew.queue, self.crew.group, self.standing.partition.number())
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
}

/// One entry in the hands of its task. Whatever becomes of the task, the entry is accounted for, and its permit comes
/// back.
pub(crate) struct Hand {
    pub(crate) station: Arc<Station>,
    pub(crate) duty: Arc<Duty>,
    pub(crate) ticket: Ticket,
    seat: Seat,
    attempt: u32,
    ours: bool,
    bytes: usize,
    said: bool,
}

/// What a handler is started with.
pub(crate) struct Start {
    pub(crate) station: Arc<Station>,
    pub(crate) ticket: Ticket,
    pub(crate) seat: Seat,
}

impl Hand {
    pub(crate) fn new(start: Start, duty: Arc<Duty>, entry: &overdue_protocol::Entry) -> Self {
        let Start { station, ticket, seat } = start;
        let bytes = entry.payload.len() + entry.id.as_bytes().len();
        let (attempt, ours) = (entry.attempt, entry.group.is_some());
        Self { station, duty, ticket, seat, attempt, ours, bytes, said: false }
    }

    /// The handler has spoken.
    pub(crate) fn say(mut self, outcome: Outcome) {
        self.send(outcome);
    }

    /// It is handed back with the same attempt: it can't be handled now.
    pub(crate) fn give_back(mut self, wait: Duration) {
        self.said = true;
        self.pass_on(Act::Release(wait), HandledResult::Unreachable);
    }

    fn send(&mut self, outcome: Outcome) {
        self.said = true;
        let partition = &self.station.standing.partition;
        let (act, result) = self.duty.judge(outcome, self.attempt, partition);
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
                Some(State::Stopping) => self.pass_on(Act::Release(Duration::ZERO), HandledResult::Released),
                // It may be ours again by now.
                Some(State::Dropped) => self.station.look_for_own(),
                Some(_) => self.send(Outcome::retry("the handler ended without an outcome")),
                None => {}
            }
        }
        if self.seat.leave() {
            self.station.crew.permits.add_permits(1);
        }
    }
}
