//! What can be set.

use overdue_protocol::QueueName;

/// What to do about the server's `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeyspaceEvents {
    /// Add the flags that are missing; others' flags stay, and the server's file is not rewritten.
    #[default]
    Add,
    /// Say which flags are missing.
    Check,
    /// Do not look.
    Ignore,
}

/// The settings of a listener.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Only keys of these queues; empty for all. Default: all.
    pub queues: Vec<QueueName>,
    /// How many notifications may wait on their way in; what comes on top is dropped and swept for.
    /// Default: 65,536.
    pub capacity: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { queues: Vec::new(), capacity: 65_536 }
    }
}
