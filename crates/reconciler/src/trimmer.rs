//! Deletes what every group has finished, once a second.

use std::time::{Duration, Instant};

use overdue_protocol::Partition;
use overdue_protocol::call::Trim;
use overdue_store::Backoff;
use overdue_telemetry::{Metric, Progress};
use tokio_util::sync::CancellationToken;

use crate::Shared;

/// Between two passes when there is nothing left to delete.
const EVERY: Duration = Duration::from_secs(1);
/// Between two passes when there is more: deleting must not crowd out firing.
const SOON: Duration = Duration::from_millis(20);

/// Runs until `stop`.
pub(crate) async fn run(shared: Shared, partition: Partition, progress: Progress, stop: CancellationToken) {
    let trimmed = Metric::Trimmed.counter(&[partition.queue().as_str()]);
    let call = Trim {
        partition,
        dead_max: shared.settings.dead_max,
        dead_max_age_ms: shared.settings.dead_max_age.as_millis() as u64,
    };
    let mut backoff = Backoff::default();
    loop {
        let wait = match shared.store.run(&call).await {
            Ok(done) => {
                progress.succeed();
                backoff.reset();
                trimmed.increment(done.deleted);
                if done.dead_deleted > 0
                    && let Some(pass) = shared.throttle.pass("dead letters deleted", Instant::now())
                {
                    let queue = call.partition.queue();
                    tracing::warn!(%queue, count = done.dead_deleted, "dead letters beyond their bounds were deleted{pass}");
                }
                if done.more { SOON } else { EVERY }
            }
            Err(error) => {
                progress.fail(error.kind().as_str());
                if let Some(pass) = shared.throttle.pass("trim failed", Instant::now()) {
                    tracing::warn!(queue = %call.partition.queue(), %error, "trim failed{pass}");
                }
                EVERY.max(backoff.next_wait())
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
    progress.retire();
}
