//! Which queues there are, and the loops that each needs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use overdue_protocol::{Partition, QueueName};
use overdue_store::{Backoff, Result};
use overdue_telemetry::label::Loop;
use overdue_telemetry::{Metric, Progress};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::pass::{IndexPass, RetryPass};
use crate::plain::Plain;
use crate::sweeper::Sweeper;
use crate::{Shared, sample, trimmer};

/// Between two looks at the list of queues.
const EVERY: Duration = Duration::from_secs(10);
/// A sweep must have succeeded within this, or the process is not ready.
const SWEEP_BOUND: Duration = Duration::from_secs(5);
/// The same for what may be a little later.
const SLOW_BOUND: Duration = Duration::from_secs(15);

/// The queues and their loops.
pub(crate) struct Directory {
    shared: Shared,
    progress: Progress,
    /// The most partitions ever seen: a number that was lowered by mistake must not strand timers.
    seen: BTreeMap<QueueName, u32>,
    running: BTreeMap<QueueName, Running>,
    loops: TaskTracker,
}

struct Running {
    partitions: u32,
    sampler: CancellationToken,
}

impl Directory {
    pub(crate) fn new(shared: Shared) -> Self {
        let progress = shared.health.register(Loop::Queues, "", EVERY * 3);
        Self { shared, progress, seen: BTreeMap::new(), running: BTreeMap::new(), loops: TaskTracker::new() }
    }

    /// Creates the queues of plain groups: their consumers can't.
    pub(crate) async fn create_missing(&self) -> Result<()> {
        let Shared { store, settings, .. } = &self.shared;
        for queue in settings.groups.iter().map(|rule| &rule.queue).filter(|queue| settings.works_for(queue))
        {
            let (_, created) = store.create_queue(queue, store.default_partitions()).await?;
            if created {
                tracing::info!(%queue, "created the queue of a plain group");
            }
        }
        Ok(())
    }

    /// Reads the list; writes back what is missing in it.
    pub(crate) async fn read(&mut self) -> Result<()> {
        let store = &self.shared.store;
        let stored = store.queues().await?;
        for (queue, partitions) in &self.seen {
            if !stored.contains_key(queue) {
                // A flush or a lost write took it: without it others would make it anew, with another number.
                store.create_queue(queue, *partitions).await?;
                tracing::warn!(%queue, partitions, "the queue was missing in the list and is written back");
            }
        }
        for (queue, info) in stored {
            if self.shared.settings.works_for(&queue) {
                Metric::QueuePaused.set(f64::from(u8::from(info.paused)), &[queue.as_str()]);
                let most = self.seen.entry(queue).or_default();
                *most = info.partitions.max(*most);
            }
        }
        self.progress.succeed();
        Ok(())
    }

    /// Starts the loops and looks for new queues until `stop`; then waits for the loops.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut reconnects = self.shared.store.reconnects();
        let mut backoff = Backoff::default();
        loop {
            self.start_missing(&stop);
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(EVERY) => {}
                () = self.shared.alarms.queue_change() => {}
                changed = reconnects.changed() => {
                    if changed.is_err() {
                        break; // The store was closed under us: nothing is left to do.
                    }
                    self.shared.alarms.sweep_all();
                }
            }
            if let Err(error) = self.read().await {
                self.progress.fail(error.kind().as_str());
                if let Some(pass) = self.shared.throttle.pass("queues failed", Instant::now()) {
                    tracing::warn!(%error, "the list of queues could not be read{pass}");
                }
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(backoff.next_wait()) => {}
                }
                self.shared.alarms.queues_changed(); // what was asked for is still to be done
            } else {
                backoff.reset();
            }
        }
        self.loops.close();
        self.loops.wait().await;
        self.progress.retire();
    }

    fn start_missing(&mut self, stop: &CancellationToken) {
        for (queue, &partitions) in &self.seen {
            let before = self.running.get(queue).map_or(0, |running| running.partitions);
            if partitions == before {
                continue;
            }
            tracing::info!(%queue, partitions, "sweeping");
            let all: Vec<_> =
                (0..partitions).map(|n| self.shared.store.keyspace().partition(queue, n)).collect();
            for partition in &all[before as usize..] {
                start(&self.shared, partition, stop, &self.loops);
            }
            let sampler = stop.child_token();
            let progress = self.shared.health.register(Loop::Sample, queue.as_str(), SLOW_BOUND);
            self.loops.spawn(sample::run(self.shared.clone(), all, progress, sampler.clone()));
            if let Some(old) = self.running.insert(queue.clone(), Running { partitions, sampler }) {
                old.sampler.cancel();
            }
        }
    }
}

/// The three loops of a partition, and one for each plain group.
fn start(shared: &Shared, partition: &Partition, stop: &CancellationToken, loops: &TaskTracker) {
    let name = format!("{}:{}", partition.queue(), partition.number());
    let progress = |kind, of: &str, bound| shared.health.register(kind, of, bound);
    let alarm = || shared.alarms.register(partition, 0);
    let index = IndexPass::new(shared, partition);
    let sweeping = progress(Loop::Sweep, &name, SWEEP_BOUND);
    loops.spawn(Sweeper::new(shared, partition, index, alarm(), sweeping).run(stop.clone()));
    let retries = RetryPass::new(shared, partition);
    let sweeping = progress(Loop::Sweep, &format!("{name} retries"), SWEEP_BOUND);
    loops.spawn(Sweeper::new(shared, partition, retries, alarm(), sweeping).run(stop.clone()));
    let trimming = progress(Loop::Trim, &name, SLOW_BOUND);
    loops.spawn(trimmer::run(shared.clone(), partition.clone(), trimming, stop.clone()));
    for rule in shared.settings.groups.iter().filter(|rule| rule.queue == *partition.queue()) {
        let looking = progress(Loop::Plain, &format!("{name} {}", rule.name), SLOW_BOUND);
        loops.spawn(Plain::new(shared, partition, rule).run(looking, stop.clone()));
    }
}
