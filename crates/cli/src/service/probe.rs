//! Does Redis answer at all? Without it, standing still is no reason to be started anew.

use std::time::Duration;

use overdue_store::Store;
use overdue_telemetry::Health;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Between two questions.
const EVERY: Duration = Duration::from_secs(1);

/// Asks until `stop`.
pub(super) async fn run(store: Store, health: Health, stop: CancellationToken) {
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        health.redis_answered(store.time_ms().await.is_ok());
    }
}
