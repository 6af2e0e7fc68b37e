//! A lane fires what notifications name, in batches, one call at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overdue_protocol::call::{Fire, FiredWord, PAGE};
use overdue_protocol::{Partition, QueueName, TimerId};
use overdue_store::{Result, Store};
use overdue_telemetry::label::{GapReason, NotificationResult, Source, SuppressedReason};
use overdue_telemetry::{Metric, Throttle};
use tokio::sync::mpsc;

use crate::gaps::Gaps;

/// How long a batch that is not full waits for more.
const GATHER: Duration = Duration::from_millis(1);

/// A timer that a notification named.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) queue: QueueName,
    pub(crate) partition: u32,
    pub(crate) id: TimerId,
}

/// One lane. All notifications of one key take the same one, so that they stay in order.
pub(crate) struct Lane {
    pub(crate) store: Store,
    pub(crate) gaps: Gaps,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) named: mpsc::Receiver<Named>,
}

impl Lane {
    /// Runs until the listener closes the channel; what is in it is fired first.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(PAGE as usize);
        while self.gather(&mut batch).await {
            let mut by_partition: HashMap<(QueueName, u32), Vec<TimerId>> = HashMap::new();
            for named in batch.drain(..) {
                by_partition.entry((named.queue, named.partition)).or_default().push(named.id);
            }
            for ((queue, number), ids) in by_partition {
                let count = ids.len() as u64;
                if let Err(error) = self.fire(self.store.keyspace().partition(&queue, number), ids).await {
                    result(NotificationResult::Failed, count);
                    self.gaps.declare(GapReason::Overflow);
                    if let Some(pass) = self.throttle.pass("fire failed", Instant::now()) {
                        tracing::warn!(%queue, %error, "notified timers could not be fired; the sweep does it{pass}");
                    }
                }
            }
        }
    }

    /// Waits for one, then takes what comes within a moment. False at the end.
    async fn gather(&mut self, batch: &mut Vec<Named>) -> bool {
        let page = PAGE as usize;
        if self.named.recv_many(batch, page).await == 0 {
            return false;
        }
        let until = tokio::time::Instant::now() + GATHER;
        while batch.len() < page {
            let left = page - batch.len();
            match tokio::time::timeout_at(until, self.named.recv_many(batch, left)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        true
    }

    async fn fire(&self, partition: Partition, ids: Vec<TimerId>) -> Result<()> {
        let queue = partition.queue().clone();
        let lateness = Metric::Lateness.histogram(&[queue.as_str(), Source::Notification.as_str()]);
        let mut call = Fire { partition, ids };
        // Each answer settles at least one id, so this ends.
        while !call.ids.is_empty() {
            let fired = self.store.run(&call).await?;
            let mut counts = [0_u64; 3];
            let mut rest = Vec::new();
            for (id, word) in call.ids.drain(..).zip(&fired.words) {
                match word {
                    FiredWord::Fired(due_ms) => {
                        counts[0] += 1;
                        lateness.record(fired.now_ms.saturating_sub(*due_ms) as f64 / 1000.0);
                    }
                    FiredWord::Gone => counts[1] += 1,
                    FiredWord::Early(_) => counts[2] += 1,
                    FiredWord::More => rest.push(id),
                }
            }
            Metric::Fired.count(counts[0], &[queue.as_str(), Source::Notification.as_str()]);
            Metric::FiredFlawed.count(fired.flawed.into(), &[queue.as_str()]);
            for (reason, count) in [(SuppressedReason::Gone, counts[1]), (SuppressedReason::Early, counts[2])]
            {
                Metric::Suppressed.count(count, &[queue.as_str(), reason.as_str()]);
            }
            result(NotificationResult::Fired, counts[0]);
            result(NotificationResult::Gone, counts[1]);
            result(NotificationResult::Early, counts[2]);
            call.ids = rest;
        }
        Ok(())
    }
}

pub(crate) fn result(result: NotificationResult, count: u64) {
    Metric::Notifications.count(count, &[result.as_str()]);
}
