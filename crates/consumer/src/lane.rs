//! The way out: outcomes go to Redis in batches, and are repeated until Redis has answered.
//!
//! A batch is what has gathered while the last call of its kind was under way, at most 256 and 1 MiB of payload; a
//! second call at once, up to three, only when a batch is full. Nothing waits for a timer, and a kind that fails
//! holds none of the others up.

use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::call::Applied;
use overdue_store::{Backoff, Error, ErrorKind, Executed};
use overdue_telemetry::Progress;
use overdue_telemetry::label::{HandledResult, Loop};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::call::{self, BATCH, Kind};
use crate::station::{Act, Station, Verdict};

/// The most calls of one kind under way.
const CALLS: usize = 3;
/// How many outcomes are taken from the channel at a time.
const INBOX: usize = 1024;
/// How long the lane may fail until this process is not ready.
const READY: Duration = Duration::from_secs(10);

pub(crate) struct Lane {
    station: Arc<Station>,
    outbox: UnboundedReceiver<Verdict>,
    queues: [Queue; Kind::ALL.len()],
    calls: JoinSet<Answered>,
    progress: Progress,
}

/// The verdicts of one kind.
#[derive(Default)]
struct Queue {
    waiting: Vec<Verdict>,
    calls: usize,
    backoff: Backoff,
    not_before: Option<Instant>,
    /// The most verdicts in a call; smaller while the script fails, so that one that can't be said stands alone.
    most: usize,
}

struct Answered {
    kind: Kind,
    batch: Vec<Verdict>,
    answer: Result<Vec<Applied>, Error>,
}

impl Lane {
    pub(crate) fn new(station: Arc<Station>, outbox: UnboundedReceiver<Verdict>) -> Self {
        let progress = station.crew.options.health.register(Loop::Ack, &station.label(), READY);
        let queues = std::array::from_fn(|_| Queue { most: BATCH, ..Queue::default() });
        Self { station, outbox, queues, calls: JoinSet::new(), progress }
    }

    /// Works until `closing`, and then until everything is said.
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        let mut inbox = Vec::with_capacity(INBOX);
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut open = true;
        while open || !self.is_empty() {
            let wake = self.queues.iter().filter_map(|queue| queue.not_before).min();
            tokio::select! {
                n = self.outbox.recv_many(&mut inbox, INBOX), if open => open = n > 0,
                Some(Ok(answered)) = self.calls.join_next() => self.settle(answered),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.forgive(),
                _ = tick.tick() => if wake.is_none() { self.progress.succeed() } else { self.progress.beat() },
                () = closing.cancelled(), if open && !self.outbox.is_closed() => self.outbox.close(),
            }
            self.sort(&mut inbox);
            self.dispatch();
        }
        self.progress.retire();
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.queues.iter().all(|queue| queue.waiting.is_empty())
    }

    /// Puts what still counts into the queues.
    fn sort(&mut self, inbox: &mut Vec<Verdict>) {
        if inbox.is_empty() {
            return;
        }
        if self.station.hands.decide(inbox, |verdict| verdict.ticket) {
            self.station.look_for_own();
        }
        for verdict in inbox.drain(..) {
            self.put(verdict);
        }
    }

    fn put(&mut self, verdict: Verdict) {
        self.queues[Kind::of(&verdict.act) as usize].waiting.push(verdict);
    }

    fn dispatch(&mut self) {
        for kind in Kind::ALL {
            let queue = &mut self.queues[kind as usize];
            while let Some(batch) = queue.next_batch(kind) {
                queue.calls += 1;
                let station = self.station.clone();
                self.calls.spawn(async move {
                    let answer = call::send(&station, kind, &batch).await;
                    Answered { kind, batch, answer }
                });
            }
        }
    }

    fn settle(&mut self, Answered { kind, mut batch, answer }: Answered) {
        let queue = &mut self.queues[kind as usize];
        queue.calls -= 1;
        match answer {
            Ok(mut words) => {
                queue.backoff.reset();
                queue.most = BATCH;
                for verdict in refused(&mut batch, &mut words) {
                    self.put(verdict);
                }
                self.station.finish(&batch, &words);
            }
            // The group is gone, and with it what was pending: the reader joins again.
            Err(error) if error.kind() == ErrorKind::NoGroup => {
                self.station.finish(&batch, &vec![Applied::Lost; batch.len()]);
            }
            Err(error) => {
                self.progress.fail(error.kind().as_str());
                self.station.crew.fault("acknowledge", &error);
                queue.repeat(batch, &error);
            }
        }
    }

    /// The pauses that are over.
    fn forgive(&mut self) {
        let now = Instant::now();
        for queue in &mut self.queues {
            queue.not_before = queue.not_before.filter(|&time| time > now);
        }
    }
}

impl Queue {
    /// What is to be said now: something when nothing is under way, or when there is a full batch.
    fn next_batch(&mut self, kind: Kind) -> Option<Vec<Verdict>> {
        if self.waiting.is_empty() || self.calls >= CALLS || self.not_before.is_some() {
            return None;
        }
        if self.calls > 0 && self.waiting.len() < self.most && kind.most_bytes() == usize::MAX {
            return None; // Not full, whatever they weigh: asked with each outcome, so they are not weighed each time.
        }
        let (mut bytes, mut n) = (0, 0);
        for verdict in self.waiting.iter().take(self.most) {
            bytes += verdict.weight();
            if n > 0 && bytes > kind.most_bytes() {
                break;
            }
            n += 1;
        }
        let full = n == self.most || n < self.waiting.len();
        if self.calls > 0 && !full {
            return None;
        }
        if n == self.waiting.len() {
            return Some(std::mem::take(&mut self.waiting));
        }
        Some(self.waiting.drain(..n).collect())
    }

    /// They are said again, behind the others, after a pause.
    fn repeat(&mut self, batch: Vec<Verdict>, error: &Error) {
        let unknown = error.was_executed() == Executed::Unknown;
        if error.kind() == ErrorKind::Script {
            self.most = (batch.len() / 2).max(1);
        }
        let again =
            batch.into_iter().map(|verdict| Verdict { repeated: verdict.repeated || unknown, ..verdict });
        self.waiting.extend(again);
        self.not_before = Some(Instant::now() + self.backoff.next_wait());
    }
}

/// Takes out of a batch what can't be done with its effects: it is tried again instead, or is a dead letter.
fn refused(batch: &mut Vec<Verdict>, words: &mut Vec<Applied>) -> Vec<Verdict> {
    let mut others = vec![];
    for place in (0..batch.len().min(words.len())).rev() {
        let Verdict { act: Act::Apply(applying), .. } = &batch[place] else { continue };
        let Applied::Refused(reason) = &words[place] else { continue };
        let (act, result) = applying.duty.again(None, reason.clone(), applying.attempt);
        let verdict = batch.remove(place);
        words.remove(place);
        // What was repeated has had its answer now.
        others.push(Verdict { act, result, repeated: false, ..verdict });
    }
    others
}

impl Station {
    /// Redis has answered for a batch.
    fn finish(&self, batch: &[Verdict], words: &[Applied]) {
        let counts = &self.crew.counts;
        counts.ack_batch.record(batch.len() as f64);
        let mut results = [0_u64; HandledResult::ALL.len()];
        let (mut passed, mut buried) = (0, 0);
        for (verdict, word) in batch.iter().zip(words) {
            let result = match word {
                Applied::Ok => verdict.result,
                Applied::Incomplete(detail) => {
                    let entry = verdict.ticket.entry;
                    self.crew.warn("incomplete", format_args!("entry {entry} is a dead letter: {detail}"));
                    HandledResult::Incomplete
                }
                // Our own first call may have done it.
                Applied::Lost | Applied::Gone if verdict.repeated => verdict.result,
                Applied::Lost | Applied::Gone | Applied::Refused(_) => HandledResult::Lost,
            };
            match verdict.act {
                Act::Passed => {
                    passed += 1;
                    continue;
                }
                Act::Bury(..) if result != HandledResult::Lost => buried += 1,
                _ if result == HandledResult::Incomplete => buried += 1,
                _ => {}
            }
            results[result as usize] += 1;
        }
        for (result, n) in HandledResult::ALL.iter().zip(results) {
            counts.handled(*result, n);
        }
        counts.passed(passed);
        counts.buried.increment(buried);
        self.hands.settle(batch.iter().map(|verdict| verdict.ticket));
    }
}
