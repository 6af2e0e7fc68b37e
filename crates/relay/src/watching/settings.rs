//! What can be set.

use std::time::Duration;

/// How the relay hears of watched keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Notifications {
    /// By `__keyspace@` channels: the server sends what the patterns match.
    #[default]
    Keyspace,
    /// By `__keyevent@` channels: the server sends the events of every key.
    Keyevent,
}

impl Notifications {
    /// The flags that `notify-keyspace-events` must have for it.
    #[must_use]
    pub const fn flags(self) -> &'static str {
        match self {
            Self::Keyspace => "Kgxe",
            Self::Keyevent => "Egxe",
        }
    }
}

/// The settings of a watcher.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    /// How notifications are heard. Default: by keyspace channels.
    pub mode: Notifications,
    /// How many notifications may wait on their way in, and how many looks may wait to be made; four times as many
    /// expiries may wait to be fired. What comes on top is dropped and made up for. Default: 65,536.
    pub capacity: usize,
    /// How many keys SCAN walks over in a second, on each node. Default: 50,000.
    pub scan_keys_per_s: u32,
    /// Between two SCANs that nothing asked for. Default: 10 minutes.
    pub scan_every: Duration,
    /// Whether the process is ready although no notifications come. Default: no.
    pub ready_when_blind: bool,
    /// The name of this process, for the canaries. Unique.
    pub process: String,
}

impl WatchSettings {
    /// The defaults, for the process of this name.
    #[must_use]
    pub fn new(process: impl Into<String>) -> Self {
        Self {
            mode: Notifications::Keyspace,
            capacity: 65_536,
            scan_keys_per_s: 50_000,
            scan_every: Duration::from_secs(600),
            ready_when_blind: false,
            process: process.into(),
        }
    }
}
