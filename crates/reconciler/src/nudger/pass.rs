//! One page of nudges.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use overdue_protocol::Partition;
use overdue_protocol::call::DuePage;
use overdue_store::{Backoff, Feed, Result, Store};
use overdue_telemetry::Throttle;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::barrier::Barrier;
use super::metrics::Metrics;
use super::place::Place;
use super::stray::Strays;
use super::vigil::Vigil;
use super::{Watching, wake_shift};
use crate::Shared;
use crate::pass::{Pass, Seen};

/// The most keys of one page; they are looked at in several calls at once.
const PAGE: u32 = 1_024;
/// The most keys that wait for something, at the barrier or for their time. Beyond it no new ones are nudged.
pub(super) const HANDS: usize = 4_096;

/// Nudges the keys of one partition. Clones are the same.
#[derive(Clone)]
pub(crate) struct NudgePass {
    pub(super) watching: Watching,
    pub(super) store: Store,
    pub(super) vigil: Arc<Vigil>,
    pub(super) partition: Partition,
    pub(super) ahead_ms: u64,
    throttle: Arc<Throttle>,
    state: Arc<Mutex<State>>,
}

/// What is known from earlier pages.
pub(super) struct State {
    pub(super) place: Place,
    pub(super) barrier: Barrier,
    /// Members that are not to be nudged before this, unix milliseconds on the server's clock.
    pub(super) not_before: HashMap<Bytes, u64>,
    /// Deadlines and members that were looked at ahead of their due.
    pub(super) captured: BTreeSet<(u64, Bytes)>,
    /// Feeds that failed, and until when they are left alone.
    pub(super) resting: BTreeMap<Feed, (Backoff, Instant)>,
    strays: Strays,
    /// The first end of those that this turn has found alive, unix milliseconds.
    pub(super) soonest_ms: Option<u64>,
    /// The server's clock when it was last read, unix milliseconds.
    clock: Option<(u64, Instant)>,
    pub(super) metrics: Metrics,
}

impl NudgePass {
    pub(super) fn new(
        shared: &Shared,
        watching: &Watching,
        vigil: &Arc<Vigil>,
        partition: &Partition,
        ahead_ms: u64,
    ) -> Self {
        let state = State {
            place: Place::new(Instant::now()),
            barrier: Barrier::default(),
            not_before: HashMap::new(),
            captured: BTreeSet::new(),
            resting: BTreeMap::new(),
            strays: Strays::new(watching, partition),
            soonest_ms: None,
            clock: None,
            metrics: Metrics::new(partition.queue().as_str()),
        };
        Self {
            watching: watching.clone(),
            store: shared.store.clone(),
            vigil: Arc::clone(vigil),
            partition: partition.clone(),
            ahead_ms,
            throttle: Arc::clone(&shared.throttle),
            state: Arc::new(Mutex::new(state)),
        }
    }

    async fn page(&self, state: &mut State) -> Result<Seen> {
        let unproven = self.pass_barrier(state).await?;
        if state.place.is_between_turns() {
            state.tidy();
        }
        let call = DuePage {
            partition: self.partition.clone(),
            limit: PAGE,
            offset: state.place.offset(Instant::now()),
            ahead_ms: self.ahead_ms,
        };
        let page = self.store.run(&call).await?;
        state.clock = Some((page.now_ms, Instant::now()));

        let sorted = self.sort(state, &page);
        let (due, ahead, first_ahead_ms) = (sorted.due, sorted.ahead, sorted.first_ahead_ms);
        let done = self.look(state, sorted.asks, page.now_ms).await;
        if let Some(error) = done.error {
            if !done.answered {
                return Err(error);
            }
            if let Some(pass) = self.throttle.pass("nudges of a node failed", std::time::Instant::now()) {
                tracing::warn!(queue = %self.partition.queue(), %error, "keys of one node could not be nudged{pass}");
            }
        }
        let (whole, now_ms) = (state.place.is_whole(), page.now_ms);
        let removed = state.strays.clear(now_ms, sorted.strays, whole, &state.metrics).await;
        let left = due.saturating_sub(done.cleared + removed);
        let left_ahead = ahead.saturating_sub(done.cleared_ahead);
        let back = state.place.advance(page.now_ms, left, left_ahead, first_ahead_ms);

        let full = state.hands() >= HANDS;
        let is_due = |due_ms: u64| due_ms < now_ms + self.ahead_ms;
        let more = !full && (back || page.next_due_ms.is_some_and(is_due));
        let next_due_ms =
            if more { None } else { state.finish(page.next_due_ms.filter(|_| !full), self.ahead_ms) };
        let (fired, another) = (done.fired + unproven, done.missed > 0);
        Ok(Seen { fired, now_ms: state.now_ms(), next_due_ms, more, another })
    }
}

impl State {
    /// How many keys wait for something.
    pub(super) fn hands(&self) -> usize {
        self.barrier.len() + self.not_before.len()
    }

    /// The server's clock, as far as is known, unix milliseconds.
    fn now_ms(&self) -> u64 {
        self.clock.map_or(0, |(ms, at)| ms + at.elapsed().as_millis() as u64)
    }

    /// Forgets what is over. Those whose time has come may stand where a turn would begin behind.
    fn tidy(&mut self) {
        let now_ms = self.now_ms();
        if self.captured.first().is_some_and(|(due_ms, _)| *due_ms < now_ms) {
            self.captured = self.captured.split_off(&(now_ms, Bytes::new()));
        }
        let before = self.not_before.len();
        self.not_before.retain(|_, at_ms| *at_ms > now_ms);
        if self.not_before.len() < before {
            self.place.reset();
        }
    }

    /// The turn is over. Answers when something is to be done next, unix milliseconds.
    fn finish(&mut self, next_due_ms: Option<u64>, ahead_ms: u64) -> Option<u64> {
        if let Some(strays) = self.strays.finish(self.place.is_whole()) {
            self.metrics.strays.set(strays);
        }
        let to_look = [next_due_ms, self.soonest_ms.take()].into_iter().flatten();
        let to_look = to_look.map(|due_ms| due_ms.saturating_add_signed(wake_shift(ahead_ms)));
        let to_nudge = self.place.finish(Instant::now()).map(|due_ms| due_ms + 1);
        to_look.chain(to_nudge).chain(self.not_before.values().copied()).min()
    }
}

impl Pass for NudgePass {
    const NAME: &'static str = "nudge";
    /// A key must not be in two pages at once.
    const IN_FLIGHT: usize = 1;

    async fn sweep(&self) -> Result<Seen> {
        let mut state = self.state.lock().await;
        let seen = self.page(&mut state).await;
        if seen.is_err() {
            state.strays.finish(false);
            state.place.reset();
        }
        seen
    }

    /// When a key at the barrier need not wait any more, or what was passed over must be read again.
    async fn stirred(&self) {
        let mut mets = self.watching.mets.clone();
        loop {
            let until = {
                let state = self.state.lock().await;
                if state.barrier.is_open(&mets.borrow_and_update(), Instant::now()) {
                    return;
                }
                state.barrier.until().into_iter().chain(state.place.until()).min()
            };
            let Some(until) = until else { return std::future::pending().await };
            tokio::select! {
                () = sleep_until(until) => return,
                // Whoever gives the positions may have ended: then only time counts.
                Ok(()) = mets.changed() => {}
            }
        }
    }
}
