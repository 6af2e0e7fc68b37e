//! Looks for watched keys that nobody told of: SCAN over one feed, for each of its rules.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use overdue_protocol::watch::Rule;
use overdue_store::{Backoff, Capture, ErrorKind};
use overdue_telemetry::label::{ScanReason, ScanResult};
use overdue_telemetry::{Metric, Progress};
use overdue_watch::Ask;
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::context::{Context, about};
use super::feeds::FeedState;
use super::outcomes;
use super::queue::PAGE;
use super::walk::{Pace, Walk};

/// Between two SCANs while no notifications come, and how often an idle scanner reports.
const BLIND: Duration = Duration::from_secs(1);
/// Before a SCAN that Redis refused is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// Between two lines about a SCAN that takes long.
const SAY: Duration = Duration::from_secs(10);

/// The SCANs of one feed, one at a time, in a task of its own: SCAN itself expires what it meets, without proof, and
/// nobody may wait for it.
pub(super) struct Scanner {
    pub(super) context: Context,
    pub(super) state: Arc<FeedState>,
    pub(super) progress: Progress,
}

/// One SCAN under way.
struct Scan {
    reason: ScanReason,
    walk: Walk,
    pace: Pace,
    begun: Instant,
    said: Instant,
    asks: Vec<Ask>,
}

/// Why a SCAN, or a step of it, is given up.
enum GivenUp {
    /// Another begins, or the scanner stops.
    Over,
    /// Redis will not do it, however often it is asked.
    Refused,
}

impl Scanner {
    /// Runs until `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut next = Instant::now() + about(self.context.settings.scan_every);
        Metric::ScanProgress.set(1.0, &[&self.label()]);
        while !stop.is_cancelled() {
            self.progress.succeed();
            let idle = tokio::select! {
                () = stop.cancelled() => break,
                () = self.state.scan.notified() => false,
                () = sleep(BLIND) => true,
            };
            let reason = match self.state.take_scan() {
                Some(reason) => reason,
                None if idle && self.state.is_blind() => ScanReason::Blind,
                None if Instant::now() >= next => ScanReason::Periodic,
                None => continue,
            };
            self.scan(reason, &stop).await;
            next = Instant::now() + about(self.context.settings.scan_every);
        }
        self.progress.retire();
    }

    async fn scan(&self, reason: ScanReason, stop: &CancellationToken) {
        let settings = &self.context.settings;
        let dbs = self.context.looker.rules().dbs().len().max(1) as u32;
        let mut scan = Scan {
            reason,
            walk: Walk::default(),
            // The databases of a node share its pace.
            pace: Pace::new(settings.scan_keys_per_s / dbs),
            begun: Instant::now(),
            said: Instant::now(),
            asks: Vec::with_capacity(PAGE),
        };
        let result = match self.walk(&mut scan, stop).await {
            Ok(()) => ScanResult::Done,
            Err(GivenUp::Over) => ScanResult::GivenUp,
            Err(GivenUp::Refused) => {
                stop.run_until_cancelled(sleep(AGAIN)).await;
                self.state.ask_scan(reason);
                ScanResult::GivenUp
            }
        };
        Metric::Scans.count(1, &[reason.as_str(), result.as_str()]);
        if result == ScanResult::GivenUp {
            return;
        }
        let label = self.label();
        Metric::ScanProgress.set(1.0, &[&label]);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Metric::ScanLastSuccess.set(unix.as_secs_f64(), &[&label]);
        // While it is blind there is one a second, and the canary has said so.
        if reason != ScanReason::Blind
            && let Some(pass) = self.context.throttle.pass("scanned", Instant::now())
        {
            let Walk { size, looked, taken, .. } = scan.walk;
            let took_ms = scan.begun.elapsed().as_millis() as u64;
            tracing::info!(feed = label, %reason, keys = size, looked, taken, took_ms, "scanned for watched keys{pass}");
        }
    }

    async fn walk(&self, scan: &mut Scan, stop: &CancellationToken) -> Result<(), GivenUp> {
        let (looker, feed) = (&self.context.looker, &self.state.feed);
        let rules: Vec<_> = looker.rules().all().iter().filter(|rule| rule.db == feed.db).collect();
        let empty = || looker.nodes().touch(feed, &[], Capture::NONE);
        scan.walk.size = self.repeat(stop, empty).await?.dbsize;
        scan.walk.rules = rules.len();
        for rule in rules {
            self.walk_for(rule, scan, stop).await?;
            // Here, so that a page is of one queue.
            self.look(scan, stop).await?;
            scan.walk.rules_done += 1;
            scan.walk.seen = 0;
        }
        Ok(())
    }

    async fn walk_for(
        &self,
        rule: &Arc<Rule>,
        scan: &mut Scan,
        stop: &CancellationToken,
    ) -> Result<(), GivenUp> {
        let (looker, feed) = (&self.context.looker, &self.state.feed);
        let (label, step) = (self.label(), scan.pace.step());
        let mut cursor = 0;
        loop {
            let page = || looker.nodes().scan(feed, cursor, rule.pattern.as_bytes(), step);
            let (next, keys) = self.repeat(stop, page).await?;
            scan.walk.seen += u64::from(step);
            Metric::ScanKeys.count(step.into(), &[&label]);
            for key in keys {
                // An earlier rule has its own turn.
                if looker.rules().rule_for(feed.db, &key).is_some_and(|first| Arc::ptr_eq(first, rule)) {
                    scan.asks.push(Ask { key, rule: Arc::clone(rule), removal: false });
                }
                if scan.asks.len() >= PAGE {
                    self.look(scan, stop).await?;
                }
            }
            self.say(scan, &label);
            if next == 0 {
                return Ok(());
            }
            cursor = next;
            stop.run_until_cancelled(sleep_until(scan.pace.next())).await;
        }
    }

    async fn look(&self, scan: &mut Scan, stop: &CancellationToken) -> Result<(), GivenUp> {
        if scan.asks.is_empty() {
            return Ok(());
        }
        let asks = std::mem::take(&mut scan.asks);
        let looker = &self.context.looker;
        let looked = match self.repeat(stop, || looker.look(&self.state.feed, asks.clone())).await {
            Ok(looked) => looked,
            // What is wrong with one queue must not cost the others.
            Err(GivenUp::Refused) => return Ok(()),
            Err(over) => return Err(over),
        };
        scan.walk.looked += looked.len() as u64;
        scan.walk.taken += outcomes::looked(&looked);
        Metric::ScanLooks.count(looked.len() as u64, &[&self.label()]);
        Ok(())
    }

    fn say(&self, scan: &mut Scan, label: &str) {
        Metric::ScanProgress.set(scan.walk.progress(), &[label]);
        if scan.said.elapsed() >= SAY {
            scan.said = Instant::now();
            let percent = (scan.walk.progress() * 100.0) as u32;
            let Walk { size, looked, taken, .. } = scan.walk;
            tracing::info!(feed = label, reason = %scan.reason, percent, keys = size, looked, taken, "scanning for watched keys");
        }
    }

    /// Calls until it works: the walk goes on from where it was. When another one is wanted by then, that one begins.
    async fn repeat<T, F: Future<Output = overdue_store::Result<T>>>(
        &self,
        stop: &CancellationToken,
        call: impl Fn() -> F,
    ) -> Result<T, GivenUp> {
        let mut backoff = Backoff::default();
        loop {
            let error = match call().await {
                _ if stop.is_cancelled() => return Err(GivenUp::Over),
                Ok(answer) => {
                    self.progress.succeed();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            self.progress.fail(error.kind().as_str());
            if let Some(pass) = self.context.throttle.pass("scan failed", Instant::now()) {
                tracing::warn!(feed = %self.state.feed, %error, "the scan for watched keys is held up{pass}");
            }
            // Rights are given while we run.
            if !error.is_retryable() && error.kind() != ErrorKind::Refused {
                return Err(GivenUp::Refused);
            }
            stop.run_until_cancelled(sleep(backoff.next_wait())).await;
            if self.state.wants_scan() {
                return Err(GivenUp::Over);
            }
        }
    }

    fn label(&self) -> String {
        self.state.feed.to_string()
    }
}
