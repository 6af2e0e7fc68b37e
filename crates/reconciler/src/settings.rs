//! What can be set.

use std::time::Duration;

use overdue_protocol::QueueName;
use overdue_protocol::call::PAGE;

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
            process: process.into(),
        }
    }
}
