//! What a notification says.

use overdue_telemetry::label::WatchEvent;

/// What happened to a key, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Its time was up.
    Expired,
    /// Redis needed the memory.
    Evicted,
    /// It may end at another time, or not at all, or there is one more.
    Changed,
    /// It was deleted, or is called otherwise.
    Removed,
}

impl Event {
    /// The names that are asked for where the server sends events by their names.
    pub(super) const NAMES: [&str; 11] = [
        "expired",
        "evicted",
        "expire",
        "persist",
        "restore",
        "rename_to",
        "copy_to",
        "move_to",
        "del",
        "rename_from",
        "move_from",
    ];

    /// By Redis' name for it; `None` for all that changes no end. (RESTORE, COPY, RENAME and MOVE bring a TTL without
    /// any `expire`.)
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        match name {
            b"expired" => Some(Self::Expired),
            b"evicted" => Some(Self::Evicted),
            b"expire" | b"persist" | b"restore" | b"rename_to" | b"copy_to" | b"move_to" => {
                Some(Self::Changed)
            }
            b"del" | b"rename_from" | b"move_from" => Some(Self::Removed),
            _ => None,
        }
    }

    /// Its word in the metrics.
    pub(super) fn label(self) -> WatchEvent {
        match self {
            Self::Expired => WatchEvent::Expired,
            Self::Evicted => WatchEvent::Evicted,
            Self::Changed => WatchEvent::Changed,
            Self::Removed => WatchEvent::Removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_asked_for_means_something() {
        assert!(Event::NAMES.iter().all(|name| Event::of(name.as_bytes()).is_some()));
        for other in ["set", "hexpire", "expired_", "EXPIRED", "", "new", "overdue-mark"] {
            assert_eq!(Event::of(other.as_bytes()), None, "{other}");
        }
    }
}
