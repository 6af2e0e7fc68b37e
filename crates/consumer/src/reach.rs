//! Whether what a handler works with can be reached: one for each route.
//!
//! ```text
//! Up --a handler says unreachable--> Down --a probe comes through--> Up
//!  `---------- a handler says halt ----------> Halted: until the process is started again
//! ```
//!
//! While it is down nothing begins but one probe at a time, the next 1 s after the first failure, then twice as late each
//! time, up to a bound. A probe is a timeout like any other: what would begin besides it, and what has failed, goes back
//! with the attempt it had. So an outage costs no attempt, no lease is held through it, a timeout that can't be
//! delivered for a reason of its own stands in nobody's way, and a consumer elsewhere may have better luck.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overdue_telemetry::Throttle;
use rand::RngExt;
use tokio::time::Instant;

/// The wait before the first probe.
const FIRST: Duration = Duration::from_secs(1);
/// What was handed back comes so many seconds later than the next probe, which should be through by then.
const AFTER: Range<f64> = 0.0..1.0;
/// And what has failed itself, for then it may be it alone that can't be delivered.
const AFTER_FAILING: Range<f64> = 1.0..4.0;

const UP: u8 = 0;
const DOWN: u8 = 1;
const HALTED: u8 = 2;

/// What one route's handler works with.
pub(crate) struct Reach {
    /// All that is looked at while things go well.
    level: AtomicU8,
    state: Mutex<State>,
    /// Whose it is, for the log.
    whose: String,
    /// The longest wait between two probes.
    most: Duration,
    /// One timeout that alone can't be delivered takes it down and brings it back again and again.
    throttle: Throttle,
}

struct State {
    since: Instant,
    next: Instant,
    failures: u32,
    probing: bool,
    reason: String,
}

/// What may be done with a timeout.
#[derive(Debug)]
pub(crate) enum Begin {
    /// Handle it; with a probe, the state depends on it.
    Run(Option<Probe>),
    /// Hand it back, to come again so much later.
    Wait(Duration),
}

/// The right to try while the others wait. Dropped without a word (the lease was lost, the process ends), another may.
#[derive(Debug)]
pub(crate) struct Probe(Arc<Reach>);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.state().probing = false;
    }
}

impl Reach {
    pub(crate) fn new(whose: String, most: Duration) -> Arc<Self> {
        let now = Instant::now();
        let state = State { since: now, next: now, failures: 0, probing: false, reason: String::new() };
        Arc::new(Self {
            level: AtomicU8::new(UP),
            state: Mutex::new(state),
            whose,
            most,
            throttle: Throttle::default(),
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.level.load(Ordering::Relaxed) == UP
    }

    /// A handler is about to begin.
    pub(crate) fn begin(self: &Arc<Self>) -> Begin {
        if self.is_up() {
            return Begin::Run(None);
        }
        let mut state = self.state();
        match self.level.load(Ordering::Relaxed) {
            UP => Begin::Run(None),
            DOWN if !state.probing && state.next <= Instant::now() => {
                state.probing = true;
                drop(state);
                Begin::Run(Some(Probe(self.clone())))
            }
            _ => Begin::Wait(self.again(&state, AFTER)),
        }
    }

    /// A handler says that it could not reach it; answers when its timeout should come again.
    pub(crate) fn failed(&self, reason: &str, probe: Option<Probe>) -> Duration {
        let mut state = self.state();
        let level = self.level.load(Ordering::Relaxed);
        if level == UP {
            if let Some(pass) = self.throttle.pass("down", std::time::Instant::now()) {
                let whose = &self.whose;
                tracing::warn!(
                    reason,
                    "{whose} can reach nothing; it tries again until it can, no attempt is spent{pass}"
                );
            }
            self.level.store(DOWN, Ordering::Relaxed);
            (state.since, state.failures) = (Instant::now(), 0);
        }
        // Whoever had begun before says nothing new.
        if level == UP || level == DOWN && probe.is_some() {
            let wait = FIRST.saturating_mul(1 << state.failures.min(16)).min(self.most);
            state.failures += 1;
            state.next = Instant::now() + wait.mul_f64(rand::rng().random_range(0.8..=1.0));
        }
        if level != HALTED {
            reason.clone_into(&mut state.reason);
        }
        let again = self.again(&state, AFTER_FAILING);
        drop(state);
        drop(probe);
        again
    }

    /// A handler had an answer, whatever it was.
    pub(crate) fn reached(&self, probe: Option<Probe>) {
        let Some(probe) = probe else { return };
        let state = self.state();
        if self.level.compare_exchange(DOWN, UP, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && let Some(pass) = self.throttle.pass("back", std::time::Instant::now())
        {
            let (whose, after) = (&self.whose, state.since.elapsed());
            tracing::info!(?after, tries = state.failures, "{whose} reaches what it works with again{pass}");
        }
        drop(state);
        drop(probe);
    }

    /// Nothing more until a person has acted; answers when its timeout should come again.
    pub(crate) fn halt(&self, reason: &str, probe: Option<Probe>) -> Duration {
        let mut state = self.state();
        if self.level.swap(HALTED, Ordering::Relaxed) != HALTED {
            state.since = Instant::now();
            reason.clone_into(&mut state.reason);
            tracing::error!(
                reason,
                "{} is halted: nothing is handled until this process is started again; see to the reason first",
                self.whose
            );
        }
        let again = self.again(&state, AFTER_FAILING);
        drop(state);
        drop(probe);
        again
    }

    fn again(&self, state: &State, after: Range<f64>) -> Duration {
        let wait = match self.level.load(Ordering::Relaxed) {
            HALTED => self.most,
            _ => state.next.saturating_duration_since(Instant::now()),
        };
        wait + Duration::from_secs_f64(rand::rng().random_range(after))
    }

    fn wants_probe(&self) -> bool {
        if self.level.load(Ordering::Relaxed) != DOWN {
            return false;
        }
        let state = self.state();
        !state.probing && state.next <= Instant::now()
    }

    /// What is wrong; `None` when it is up.
    fn trouble(&self) -> Option<String> {
        let state = self.state();
        let word = match self.level.load(Ordering::Relaxed) {
            UP => return None,
            DOWN => "down",
            _ => "halted",
        };
        let since = Duration::from_secs(state.since.elapsed().as_secs());
        Some(format!("{} has been {word} for {since:?}: {}", self.whose, state.reason))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reach").field(&self.whose).finish()
    }
}

/// Those of all routes of a consumer.
pub(crate) struct Reaches(Vec<Arc<Reach>>);

impl Reaches {
    pub(crate) fn new(all: Vec<Arc<Reach>>) -> Self {
        Self(all)
    }

    /// Whether anything should be read: a route is up, or one waits for its probe.
    pub(crate) fn read_on(&self) -> ReadOn {
        if self.0.iter().any(|reach| reach.is_up()) {
            ReadOn::All
        } else if self.0.iter().any(|reach| reach.wants_probe()) {
            ReadOn::One
        } else {
            ReadOn::Nothing
        }
    }

    /// For the gauge: the worst of them.
    pub(crate) fn gauge(&self) -> f64 {
        let worst = self.0.iter().map(|reach| reach.level.load(Ordering::Relaxed)).max();
        1.0 - f64::from(worst.unwrap_or(UP))
    }

    /// For the list of members; empty when all are up.
    pub(crate) fn trouble(&self) -> String {
        self.0.iter().filter_map(|reach| reach.trouble()).collect::<Vec<_>>().join("; ")
    }
}

/// How much is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOn {
    /// As much as can be started.
    All,
    /// One timeout, to probe with.
    One,
    /// Nothing would be started.
    Nothing,
}

#[cfg(test)]
mod tests;
