//! Reads depths and ages for the metrics. Every reconciler reports the same numbers.

mod groups;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use overdue_protocol::{Partition, QueueName};
use overdue_store::{Result, Store};
use overdue_telemetry::{Metric, Progress};
use tokio_util::sync::CancellationToken;

use self::groups::Groups;
use crate::Shared;

const EVERY: Duration = Duration::from_secs(2);

/// The numbers of one queue, summed over its partitions.
#[derive(Default)]
struct Sample {
    armed: u64,
    overdue: u64,
    oldest_ms: u64,
    /// The first due of all, unix milliseconds.
    next_ms: Option<u64>,
    retries: u64,
    entries: u64,
    dead: u64,
    watched: u64,
    watched_overdue: u64,
    groups: Groups,
    /// When it was taken, unix milliseconds on the server's clock.
    now_ms: u64,
}

/// Runs until `stop`.
pub(crate) async fn run(
    shared: Shared,
    partitions: Vec<Partition>,
    progress: Progress,
    stop: CancellationToken,
) {
    let Some(queue) = partitions.first().map(|partition| partition.queue().clone()) else { return };
    let mut known = BTreeSet::new();
    loop {
        match read(&shared.store, &partitions).await {
            Ok(sample) => {
                progress.succeed();
                report(&queue, &sample, partitions.len());
                sample.groups.report(queue.as_str(), sample.now_ms, &mut known);
            }
            Err(error) => {
                progress.fail(error.kind().as_str());
                if let Some(pass) = shared.throttle.pass("sample failed", Instant::now()) {
                    tracing::warn!(%queue, %error, "depths could not be read{pass}");
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
    progress.retire();
}

async fn read(store: &Store, partitions: &[Partition]) -> Result<Sample> {
    let now_ms = store.time_ms().await?;
    let mut sample = Sample { now_ms, ..Sample::default() };
    for partition in partitions {
        let (stream, dead) = (partition.stream(), partition.dead());
        let (armed, head, overdue, retries, entries, dead, watched, watched_overdue) = tokio::try_join!(
            store.depth(partition),
            store.head(partition),
            store.overdue_count(partition, now_ms),
            store.retry_depth(partition),
            store.length(&stream),
            store.length(&dead),
            store.watched_depth(partition),
            store.watched_overdue_count(partition, now_ms),
        )?;
        sample.armed += armed;
        sample.overdue += overdue;
        sample.oldest_ms = sample.oldest_ms.max(head.map_or(0, |due| now_ms.saturating_sub(due)));
        sample.next_ms = [sample.next_ms, head].into_iter().flatten().min();
        sample.retries += retries;
        sample.entries += entries;
        sample.dead += dead;
        sample.watched += watched;
        sample.watched_overdue += watched_overdue;
        sample.groups.add(store, partition).await?;
    }
    Ok(sample)
}

fn report(queue: &QueueName, sample: &Sample, partitions: usize) {
    let queue = queue.as_str();
    let set = |metric: Metric, value: u64| metric.set(value as f64, &[queue]);
    set(Metric::Armed, sample.armed);
    set(Metric::Overdue, sample.overdue);
    Metric::OldestOverdue.set(sample.oldest_ms as f64 / 1000.0, &[queue]);
    match sample.next_ms {
        Some(due_ms) => Metric::NextDue.set(due_ms as f64 / 1000.0, &[queue]),
        None => Metric::NextDue.clear(&[queue]),
    }
    set(Metric::RetriesWaiting, sample.retries);
    set(Metric::StreamEntries, sample.entries);
    set(Metric::DeadLetters, sample.dead);
    set(Metric::Watched, sample.watched);
    set(Metric::WatchedOverdue, sample.watched_overdue);
    set(Metric::Partitions, partitions as u64);
}
