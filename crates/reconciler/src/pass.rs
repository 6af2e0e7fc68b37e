//! One pass over one of the two indexes: what is swept, and what it reports.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use overdue_protocol::Partition;
use overdue_protocol::call::{Sweep, SweepRetries};
use overdue_store::{Result, Store};
use overdue_telemetry::label::{Source, SweepResult};
use overdue_telemetry::{Counter, Histogram, Metric, Throttle};

use crate::Shared;

/// What a pass says about the index after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) fired: u32,
    /// The server's now, unix milliseconds.
    pub(crate) now_ms: u64,
    /// The next deadline, unix milliseconds.
    pub(crate) next_due_ms: Option<u64>,
    /// More is due already.
    pub(crate) more: bool,
    /// Another process fires here.
    pub(crate) another: bool,
}

/// One pass; a test may call it without a loop.
pub(crate) trait Pass: Clone + Send + Sync + 'static {
    /// What it is called in the log.
    const NAME: &'static str = "sweep";
    /// Passes under way at once while there is a backlog: the server never waits for us.
    const IN_FLIGHT: usize = 2;

    /// Fires at most one page.
    fn sweep(&self) -> impl Future<Output = Result<Seen>> + Send;

    /// Waits until there is something to do that no deadline and no wake message tells of. Safe to drop.
    fn stirred(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Fires what is due from the index.
#[derive(Clone)]
pub(crate) struct IndexPass {
    store: Store,
    call: Sweep,
    grace_ms: u64,
    metrics: SweepMetrics,
    lateness: Histogram,
}

#[derive(Clone)]
struct SweepMetrics {
    took: Histogram,
    full: Counter,
    fired: Counter,
    flawed: Counter,
    with_work: Counter,
    empty: Counter,
    failed: Counter,
}

impl SweepMetrics {
    fn new(queue: &str) -> Self {
        let sweeps = |result: SweepResult| Metric::Sweeps.counter(&[queue, result.as_str()]);
        Self {
            took: Metric::SweepSeconds.histogram(&[queue]),
            full: Metric::FullSweeps.counter(&[queue]),
            fired: Metric::Fired.counter(&[queue, Source::Index.as_str()]),
            flawed: Metric::FiredFlawed.counter(&[queue]),
            with_work: sweeps(SweepResult::Fired),
            empty: sweeps(SweepResult::Empty),
            failed: sweeps(SweepResult::Failed),
        }
    }

    fn record(&self, fired: u32, flawed: u32, more: bool, started: Instant) {
        self.took.record(started.elapsed().as_secs_f64());
        self.flawed.increment(flawed.into());
        self.full.increment(more.into());
        if fired > 0 { &self.with_work } else { &self.empty }.increment(1);
    }
}

impl IndexPass {
    pub(crate) fn new(shared: &Shared, partition: &Partition) -> Self {
        let queue = partition.queue().as_str();
        let grace_ms = shared.settings.grace.as_millis() as u64;
        Self {
            store: shared.store.clone(),
            call: Sweep {
                partition: partition.clone(),
                limit: shared.settings.page,
                grace_ms,
                sweeper: Bytes::from(shared.settings.process.clone()),
            },
            grace_ms,
            metrics: SweepMetrics::new(queue),
            lateness: Metric::Lateness.histogram(&[queue, Source::Index.as_str()]),
        }
    }
}

impl Pass for IndexPass {
    async fn sweep(&self) -> Result<Seen> {
        let started = Instant::now();
        let swept = self.store.run(&self.call).await.inspect_err(|_| self.metrics.failed.increment(1))?;
        self.metrics.record(swept.fired, swept.flawed, swept.more, started);
        self.metrics.fired.increment(swept.fired.into());
        for due_ms in &swept.dues_ms {
            self.lateness.record(swept.now_ms.saturating_sub(*due_ms) as f64 / 1000.0);
        }
        Ok(Seen {
            fired: swept.fired,
            now_ms: swept.now_ms,
            next_due_ms: swept.next_due_ms.map(|due| due + self.grace_ms),
            more: swept.more,
            another: swept.another,
        })
    }
}

/// Fires what is due from the retry index. Retries are not counted as fired: their timeout was.
#[derive(Clone)]
pub(crate) struct RetryPass {
    store: Store,
    call: SweepRetries,
    metrics: SweepMetrics,
    throttle: Arc<Throttle>,
}

impl RetryPass {
    pub(crate) fn new(shared: &Shared, partition: &Partition) -> Self {
        Self {
            store: shared.store.clone(),
            call: SweepRetries { partition: partition.clone(), limit: shared.settings.page },
            metrics: SweepMetrics::new(partition.queue().as_str()),
            throttle: Arc::clone(&shared.throttle),
        }
    }
}

impl Pass for RetryPass {
    async fn sweep(&self) -> Result<Seen> {
        let started = Instant::now();
        let swept = self.store.run(&self.call).await.inspect_err(|_| self.metrics.failed.increment(1))?;
        self.metrics.record(swept.fired, swept.flawed, swept.more, started);
        if swept.group_gone > 0
            && let Some(pass) = self.throttle.pass("group gone", Instant::now())
        {
            let queue = self.call.partition.queue();
            tracing::warn!(%queue, count = swept.group_gone, "retries of a dropped group went to the dead letters{pass}");
        }
        Ok(Seen {
            fired: swept.fired + swept.group_gone,
            now_ms: swept.now_ms,
            next_due_ms: swept.next_due_ms,
            more: swept.more,
            another: false,
        })
    }
}
