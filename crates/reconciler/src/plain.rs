//! Looks after a plain group in one partition: creates it, hands out again what its consumers did not acknowledge in
//! time, and removes the names of those that left.
//!
//! Its consumers know XREADGROUP and XACK only. So nothing tells a dead one from a slow one but the lease, and nobody
//! but us counts attempts: the script does both, by Redis' own clock. Any number of reconcilers may look after a group.

use std::time::{Duration, Instant};

use overdue_protocol::Partition;
use overdue_protocol::call::{Join, Joined, PAGE, PAGE_BYTES, Reclaim};
use overdue_store::{Backoff, Result, Store};
use overdue_telemetry::label::ReclaimResult;
use overdue_telemetry::{Counter, Metric, Progress};
use tokio_util::sync::CancellationToken;

use crate::{GroupRule, Shared};

/// Between two passes when nothing is left to hand out again.
const EVERY: Duration = Duration::from_secs(1);
/// Between two passes when there is more: it must not crowd out firing.
const SOON: Duration = Duration::from_millis(20);
/// Between two looks for consumers that left.
const RETIRE_EVERY: Duration = Duration::from_secs(60);

/// The loop of one group in one partition.
pub(crate) struct Plain {
    shared: Shared,
    rule: GroupRule,
    join: Join,
    retried: Counter,
    buried: Counter,
    retire_at: Instant,
}

impl Plain {
    pub(crate) fn new(shared: &Shared, partition: &Partition, rule: &GroupRule) -> Self {
        let labels = [rule.queue.as_str(), rule.name.as_str()];
        let count =
            |result: ReclaimResult| Metric::Reclaimed.counter(&[labels[0], labels[1], result.as_str()]);
        Self {
            shared: shared.clone(),
            rule: rule.clone(),
            join: Join { partition: partition.clone(), group: rule.name.clone(), from: rule.from },
            retried: count(ReclaimResult::Retried),
            buried: count(ReclaimResult::Buried),
            retire_at: Instant::now(),
        }
    }

    /// Runs until `stop`.
    pub(crate) async fn run(mut self, progress: Progress, stop: CancellationToken) {
        let mut backoff = Backoff::default();
        loop {
            let wait = match self.pass().await {
                Ok(more) => {
                    progress.succeed();
                    backoff.reset();
                    if more { SOON } else { EVERY }
                }
                Err(error) => {
                    progress.fail(error.kind().as_str());
                    if let Some(pass) = self.shared.throttle.pass("plain group failed", Instant::now()) {
                        let (queue, group) = (&self.rule.queue, &self.rule.name);
                        tracing::warn!(%queue, %group, %error, "a plain group could not be looked after{pass}");
                    }
                    backoff.next_wait()
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
            }
        }
        progress.retire();
    }

    /// One turn; answers whether there is more to hand out again.
    async fn pass(&mut self) -> Result<bool> {
        // Some microseconds where the group is there; and its consumers are at work again a second after it was not.
        self.joined(self.shared.store.run(&self.join).await?);
        let done = self.shared.store.run(&self.reclaim()).await?;
        self.retried.increment(done.retried);
        self.buried.increment(done.buried);
        if done.buried > 0 {
            Metric::Buried.count(done.buried, &[self.rule.queue.as_str(), self.rule.name.as_str()]);
            if let Some(pass) = self.shared.throttle.pass("plain group buried", Instant::now()) {
                let (queue, group, count) = (&self.rule.queue, &self.rule.name, done.buried);
                tracing::warn!(%queue, %group, count, "timeouts were not acknowledged at any attempt and are dead letters{pass}");
            }
        }
        if !done.more && self.retire_at <= Instant::now() {
            self.retire_at = Instant::now() + RETIRE_EVERY.min(self.idle());
            self.retire(&self.shared.store).await?;
        }
        Ok(done.more)
    }

    fn joined(&self, joined: Joined) {
        let (queue, group) = (&self.rule.queue, &self.rule.name);
        match joined {
            Joined::Exists => {}
            Joined::Created => {
                tracing::info!(%queue, %group, partition = self.join.partition.number(), "created a plain group");
            }
            Joined::Recreated => {
                Metric::GroupRecreated.count(1, &[queue.as_str(), group.as_str()]);
                tracing::warn!(
                    %queue, %group, partition = self.join.partition.number(),
                    "a plain group was gone and is created again: what it finished may be handed out again"
                );
            }
        }
    }

    fn reclaim(&self) -> Reclaim {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Reclaim {
            partition: self.join.partition.clone(),
            group: self.rule.name.clone(),
            lease_ms: ms(self.rule.lease),
            attempts: self.rule.attempts,
            first_ms: ms(self.rule.retry_wait),
            most_ms: ms(self.rule.retry_wait_max),
            chance: rand::random_range(0.5..=1.0),
            limit: PAGE,
            bytes: u64::from(PAGE_BYTES),
        }
    }

    /// How long a consumer may be silent before its name is removed.
    fn idle(&self) -> Duration {
        self.shared.settings.consumer_idle.max(self.rule.lease * 10)
    }

    /// Consumers that were started under a new name each time would pile up in the group.
    async fn retire(&self, store: &Store) -> Result<()> {
        let retired = store.retire_idle(&self.join.partition, &self.rule.name, self.idle(), "").await?;
        if !retired.is_empty() {
            let (queue, group, count) = (&self.rule.queue, &self.rule.name, retired.len());
            tracing::info!(%queue, %group, count, "retired consumers that were idle for long");
        }
        Ok(())
    }
}
