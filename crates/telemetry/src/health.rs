//! Is this process alive, and is it ready: the loops report, two rules decide.
//!
//! **Live** asks "would a restart help?". It fails only when a loop of ours has made no turn for 60 s
//! although Redis answered all that time. An outage of Redis never makes us restart.
//! **Ready** asks "does the work get done?". It fails when a registered loop has not succeeded within its
//! own bound, whoever is to blame, and while Redis does not answer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::label::Loop;
use crate::metric::Metric;

/// How long a loop may make no turn while Redis answers.
const STALL: Duration = Duration::from_secs(60);
/// Stands for "never" in the atomics below.
const NEVER: u64 = u64::MAX;

/// The health of one process. Clone it freely: there is one.
#[derive(Clone, Debug)]
pub struct Health {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// All times below are milliseconds since this.
    epoch: Instant,
    /// Since when Redis has answered without a break, or [`NEVER`] if it does not.
    answers_since: AtomicU64,
    /// Since when it has not, or [`NEVER`] if it does or was not asked yet.
    silent_since: AtomicU64,
    loops: Mutex<BTreeMap<(Loop, String), Arc<State>>>,
    degraded: Mutex<BTreeMap<String, String>>,
    broken: Mutex<BTreeMap<String, String>>,
    /// Whether a loop was ever entered.
    started: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    bound: Duration,
    beat: AtomicU64,
    success: AtomicU64,
    last_error: Mutex<Option<&'static str>>,
}

/// The answer of `/livez` or `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether to answer 200; else 503.
    pub ok: bool,
    /// One line on the whole, then one for each loop.
    pub text: String,
}

/// One loop's way to report. Dropping it without [`Progress::retire`] (a panic, a forgotten task) leaves
/// the loop in the books, where it goes stale and is seen.
#[derive(Debug)]
pub struct Progress {
    health: Health,
    key: (Loop, String),
    state: Arc<State>,
}

impl Default for Health {
    fn default() -> Self {
        let inner = Inner {
            epoch: Instant::now(),
            answers_since: AtomicU64::new(NEVER),
            silent_since: AtomicU64::new(NEVER),
            loops: Mutex::default(),
            degraded: Mutex::default(),
            broken: Mutex::default(),
            started: watch::Sender::new(false),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Health {
    /// Enters a loop. `of` tells it from others of its kind, such as `orders:0` or `orders/billing:0`. It is
    /// ready while its last success is at most `bound` old; it must beat at least every few seconds, idle
    /// or not. A second loop of the same name takes the place of the first.
    #[must_use]
    pub fn register(&self, kind: Loop, of: &str, bound: Duration) -> Progress {
        let state = Arc::new(State {
            bound,
            beat: AtomicU64::new(self.now()),
            success: AtomicU64::new(NEVER),
            last_error: Mutex::default(),
        });
        let key = (kind, of.to_owned());
        lock(&self.inner.loops).insert(key.clone(), Arc::clone(&state));
        self.inner.started.send_replace(true);
        Progress { health: self.clone(), key, state }
    }

    /// Waits until the first loop is entered: the process has come through its start.
    pub async fn started(&self) {
        let mut started = self.inner.started.subscribe();
        // The sender lives in `self`.
        let _ = started.wait_for(|&started| started).await;
    }

    /// Says whether Redis answered a probe just now. Until the first call, or while it says no, the
    /// process is live whatever its loops do; and while it says no, it is not ready.
    pub fn redis_answered(&self, answered: bool) {
        self.redis_answered_at(answered, self.now());
    }

    fn redis_answered_at(&self, answered: bool, now: u64) {
        let (answers, silent) = (&self.inner.answers_since, &self.inner.silent_since);
        let (now_so, no_more) = if answered { (answers, silent) } else { (silent, answers) };
        // A failed exchange means that it was so before: the older time stands.
        let _ = now_so.compare_exchange(NEVER, now, Ordering::Relaxed, Ordering::Relaxed);
        no_more.store(NEVER, Ordering::Relaxed);
    }

    /// Shows something in `/readyz` that works worse than it should and fails nothing, such as
    /// notifications that are switched off. `None` clears it.
    pub fn set_degraded(&self, what: &str, why: Option<String>) {
        set(&self.inner.degraded, what, why);
    }

    /// Makes `/readyz` fail, with the reason, although every loop makes progress: the work does not get done as it
    /// should, such as notifications that do not come. `None` clears it.
    pub fn set_broken(&self, what: &str, why: Option<String>) {
        set(&self.inner.broken, what, why);
    }

    /// What makes `/readyz` fail although every loop makes progress, in words for a person; empty for nothing.
    #[must_use]
    pub fn broken(&self) -> String {
        let broken = lock(&self.inner.broken);
        broken.iter().map(|(what, why)| format!("{what}: {why}")).collect::<Vec<_>>().join("; ")
    }

    /// The answer of `/livez`.
    #[must_use]
    pub fn live(&self) -> Report {
        self.live_at(self.now())
    }

    fn live_at(&self, now: u64) -> Report {
        let since = self.inner.answers_since.load(Ordering::Relaxed);
        let mut text = String::new();
        let mut ok = true;
        for ((kind, of), state) in lock(&self.inner.loops).iter() {
            let beat = state.beat.load(Ordering::Relaxed);
            let stalled = since != NEVER && age(now, beat.max(since)) > STALL;
            ok &= !stalled;
            let verdict = if stalled { "STALLED" } else { "ok" };
            line(&mut text, *kind, of, verdict, &format!("last turn {} ago", seconds(age(now, beat))));
        }
        let redis =
            if since == NEVER { "redis does not answer, or was not asked yet" } else { "redis answers" };
        Report { ok, text: format!("{}: {redis}\n{text}", if ok { "live" } else { "not live" }) }
    }

    /// The answer of `/readyz`.
    #[must_use]
    pub fn ready(&self) -> Report {
        self.ready_at(self.now())
    }

    fn ready_at(&self, now: u64) -> Report {
        let loops = lock(&self.inner.loops);
        let mut ok = !loops.is_empty();
        let mut text = String::new();
        for ((kind, of), state) in loops.iter() {
            let success = state.success.load(Ordering::Relaxed);
            let fresh = success != NEVER && age(now, success) <= state.bound;
            ok &= fresh;
            let last = match success {
                NEVER => "no success yet".to_owned(),
                at => format!("last success {} ago", seconds(age(now, at))),
            };
            let error = lock(&state.last_error).filter(|_| !fresh).map(|e| format!(", last error: {e}"));
            let detail = format!("{last} (bound {}){}", seconds(state.bound), error.unwrap_or_default());
            line(&mut text, *kind, of, if fresh { "ok" } else { "LATE" }, &detail);
        }
        // A loop that waits in a long read would find out only later.
        let silent = self.inner.silent_since.load(Ordering::Relaxed);
        if silent != NEVER {
            ok = false;
            let _ = writeln!(text, "BROKEN    redis: no answer for {}", seconds(age(now, silent)));
        }
        for (what, why) in lock(&self.inner.broken).iter() {
            ok = false;
            let _ = writeln!(text, "BROKEN    {what}: {why}");
        }
        for (what, why) in lock(&self.inner.degraded).iter() {
            let _ = writeln!(text, "degraded  {what}: {why}");
        }
        let head = match (ok, loops.is_empty()) {
            (true, _) => "ready",
            (false, true) => "not ready: no loop has started yet",
            (false, false) => "not ready",
        };
        Report { ok, text: format!("{head}\n{text}") }
    }

    /// Sets [`Metric::LoopLastSuccess`]. Call it before rendering the metrics.
    pub fn publish(&self) {
        let now = self.now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut oldest: BTreeMap<Loop, f64> = BTreeMap::new();
        for ((kind, _), state) in lock(&self.inner.loops).iter() {
            let at = match state.success.load(Ordering::Relaxed) {
                NEVER => 0.0,
                success => unix.saturating_sub(age(now, success)).as_secs_f64(),
            };
            let entry = oldest.entry(*kind).or_insert(at);
            *entry = entry.min(at);
        }
        for (kind, at) in oldest {
            Metric::LoopLastSuccess.set(at, &[kind.as_str()]);
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.inner.epoch.elapsed().as_millis()).unwrap_or(NEVER - 1)
    }
}

impl Progress {
    /// The loop has come round once more, whatever came of it.
    pub fn beat(&self) {
        self.state.beat.store(self.health.now(), Ordering::Relaxed);
    }

    /// The loop has come round and Redis did what it asked.
    pub fn succeed(&self) {
        let now = self.health.now();
        self.state.beat.store(now, Ordering::Relaxed);
        self.state.success.store(now, Ordering::Relaxed);
    }

    /// The loop has come round without success; `kind` is a short constant word for the error. Counts
    /// [`Metric::LoopErrors`].
    pub fn fail(&self, kind: &'static str) {
        self.beat();
        *lock(&self.state.last_error) = Some(kind);
        Metric::LoopErrors.count(1, &[self.key.0.as_str(), kind]);
    }

    /// Takes the loop out of the books: it ended because it should.
    pub fn retire(self) {
        let mut loops = lock(&self.health.inner.loops);
        // A successor of the same name stays.
        if loops.get(&self.key).is_some_and(|state| Arc::ptr_eq(state, &self.state)) {
            loops.remove(&self.key);
        }
    }
}

fn set(texts: &Mutex<BTreeMap<String, String>>, what: &str, why: Option<String>) {
    match why {
        Some(why) => drop(lock(texts).insert(what.to_owned(), why)),
        None => drop(lock(texts).remove(what)),
    }
}

fn line(text: &mut String, kind: Loop, of: &str, verdict: &str, detail: &str) {
    let name = if of.is_empty() { kind.to_string() } else { format!("{kind} {of}") };
    let _ = writeln!(text, "{verdict:<8}  {name}: {detail}");
}

fn age(now: u64, then: u64) -> Duration {
    Duration::from_millis(now.saturating_sub(then))
}

fn seconds(age: Duration) -> String {
    format!("{:.1} s", age.as_secs_f64())
}

/// A panic elsewhere does not make these maps wrong: each holds whole values at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
