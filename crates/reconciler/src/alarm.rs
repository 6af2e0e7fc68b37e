//! What ends a sleep before its time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use overdue_protocol::{Partition, QueueName};
use tokio::sync::Notify;

/// Nobody told of a deadline.
const NONE: u64 = u64::MAX;

/// What one loop is told while it sleeps.
#[derive(Debug)]
pub(crate) struct Alarm {
    rung: Notify,
    now: AtomicBool,
    earliest: AtomicU64,
    /// How long after a deadline it is to be looked at, milliseconds; before it when negative.
    shift_ms: i64,
}

/// What an alarm said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung {
    /// Sweep now: something may have been missed.
    Now,
    /// Something is to be looked at then, unix milliseconds on the server's clock.
    Due(u64),
}

impl Default for Alarm {
    fn default() -> Self {
        Self { rung: Notify::new(), now: AtomicBool::new(false), earliest: AtomicU64::new(NONE), shift_ms: 0 }
    }
}

impl Alarm {
    fn sweep_now(&self) {
        self.now.store(true, Ordering::Release);
        self.rung.notify_one();
    }

    /// Something is due at `due_ms`.
    pub(crate) fn due(&self, due_ms: u64) {
        self.earliest.fetch_min(due_ms.saturating_add_signed(self.shift_ms), Ordering::AcqRel);
        self.rung.notify_one();
    }

    /// Waits until somebody rings. Safe to drop: nothing is lost.
    pub(crate) async fn rung(&self) -> Rung {
        loop {
            if self.now.swap(false, Ordering::AcqRel) {
                return Rung::Now;
            }
            match self.earliest.swap(NONE, Ordering::AcqRel) {
                NONE => self.rung.notified().await,
                due_ms => return Rung::Due(due_ms),
            }
        }
    }
}

/// The alarms of the loops over each partition.
type Loops = HashMap<(QueueName, u32), Vec<Arc<Alarm>>>;

/// The alarms of all loops, and whether wake messages can be relied on.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    verified: AtomicBool,
    queues: Notify,
    loops: Mutex<Loops>,
}

impl Alarms {
    /// A new alarm for a loop over `partition`, which looks at what is due `shift_ms` after it is, or before.
    pub(crate) fn register(&self, partition: &Partition, shift_ms: i64) -> Arc<Alarm> {
        let alarm = Arc::new(Alarm { shift_ms, ..Alarm::default() });
        let key = (partition.queue().clone(), partition.number());
        self.with(|loops| loops.entry(key).or_default().push(Arc::clone(&alarm)));
        alarm
    }

    /// Something in a partition is due at `due_ms`.
    pub(crate) fn due(&self, partition: &(QueueName, u32), due_ms: u64) {
        self.with(|loops| loops.get(partition).into_iter().flatten().for_each(|alarm| alarm.due(due_ms)));
    }

    /// Something may have been missed anywhere.
    pub(crate) fn sweep_all(&self) {
        self.with(|loops| loops.values().flatten().for_each(|alarm| alarm.sweep_now()));
    }

    /// A queue is new, or may be.
    pub(crate) fn queues_changed(&self) {
        self.queues.notify_one();
    }

    /// Waits until a queue is new, or may be.
    pub(crate) async fn queue_change(&self) {
        self.queues.notified().await;
    }

    /// Whether the server confirmed the subscription to wake messages.
    pub(crate) fn are_verified(&self) -> bool {
        self.verified.load(Ordering::Acquire)
    }

    /// Sets [`Alarms::are_verified`].
    pub(crate) fn set_verified(&self, verified: bool) {
        self.verified.store(verified, Ordering::Release);
    }

    fn with<T>(&self, look: impl FnOnce(&mut Loops) -> T) -> T {
        look(&mut self.loops.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_ring_before_the_wait_is_not_lost_and_the_earliest_counts() {
        let alarm = Alarm::default();
        alarm.due(30);
        alarm.due(20);
        alarm.due(40);
        assert_eq!(alarm.rung().await, Rung::Due(20));
        alarm.due(50);
        alarm.sweep_now();
        assert_eq!(alarm.rung().await, Rung::Now);
        assert_eq!(alarm.rung().await, Rung::Due(50));
        let ahead = Alarm { shift_ms: -30, ..Alarm::default() };
        ahead.due(100);
        assert_eq!(ahead.rung().await, Rung::Due(70), "it is looked at before it is due");
    }
}
