//! What can be set.

use std::time::Duration;

use overdue_protocol::call::{From, PAGE};
use overdue_protocol::{GroupName, QueueName};

/// The settings of a reconciler.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Only these queues; empty for all. Default: all.
    pub queues: Vec<QueueName>,
    /// How long a due timer is left to its notification before a sweep fires it. Default: 0, because a
    /// sweep is cheaper than a notification and does not depend on when Redis looks at its keys.
    pub grace: Duration,
    /// The most timers one sweep fires, 1 to 256. Default: 256.
    pub page: u32,
    /// The most dead letters a partition keeps. Default: 10,000.
    pub dead_max: u64,
    /// How long a dead letter is kept. Default: 90 days.
    pub dead_max_age: Duration,
    /// The groups whose consumers only read and acknowledge. Those of queues that are not swept here are left alone.
    /// Default: none.
    pub groups: Vec<GroupRule>,
    /// How long a consumer of a plain group must have been idle before its name is removed; never less than ten leases.
    /// Default: 1 hour.
    pub consumer_idle: Duration,
    /// The name of this process, for stepping back before others. Unique.
    pub process: String,
}

impl Settings {
    /// The defaults, for the process of this name.
    #[must_use]
    pub fn new(process: impl Into<String>) -> Self {
        Self {
            queues: Vec::new(),
            grace: Duration::ZERO,
            page: PAGE,
            dead_max: 10_000,
            dead_max_age: Duration::from_secs(90 * 24 * 3600),
            groups: Vec::new(),
            consumer_idle: Duration::from_secs(3600),
            process: process.into(),
        }
    }

    /// Whether a queue is one of those.
    pub(crate) fn works_for(&self, queue: &QueueName) -> bool {
        self.queues.is_empty() || self.queues.contains(queue)
    }
}

/// A plain group: its consumers read with XREADGROUP and acknowledge with XACK, and nothing else. What they did not
/// acknowledge in time is handed out again, with the next attempt, and at last a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRule {
    /// The queue that it reads.
    pub queue: QueueName,
    /// Its name; no two rules of a queue share one.
    pub name: GroupName,
    /// Where it begins when it is new.
    pub from: From,
    /// How long a consumer may hold a timeout. Nothing renews it.
    pub lease: Duration,
    /// The deliveries that a timeout gets, at least 1.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles each time, half of it at random.
    pub retry_wait: Duration,
    /// The longest wait between two attempts.
    pub retry_wait_max: Duration,
}
