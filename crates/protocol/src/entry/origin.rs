//! What fired a timeout, and what it is the timeout of.

use std::str::FromStr;

use bytes::Bytes;

use crate::answer::Malformed;

/// What fired a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A notification named it.
    Notification,
    /// A sweep of the index found it due.
    Index,
    /// A dead letter was put back.
    Replay,
}

impl Source {
    /// The word in entries and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Notification => "notification",
            Source::Index => "index",
            Source::Replay => "replay",
        }
    }
}

impl FromStr for Source {
    type Err = Malformed;

    fn from_str(word: &str) -> Result<Self, Malformed> {
        [Source::Notification, Source::Index, Source::Replay]
            .into_iter()
            .find(|source| source.as_str() == word)
            .ok_or(Malformed("src is none of notification, index, replay"))
    }
}

/// What has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A timer: its deadline has passed.
    Timer,
    /// A watched key: it expired, or was evicted.
    Key,
    /// Something that only a later version knows.
    Other,
}

impl Kind {
    /// The word in entries; an unknown one is [`Kind::Other`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Timer => "timer",
            Kind::Key => "key",
            Kind::Other => "other",
        }
    }

    /// Reads the field of an entry. Timers may do without.
    pub(super) fn of(field: Option<&Bytes>) -> Self {
        match field.map(AsRef::as_ref) {
            None | Some(b"timer") => Kind::Timer,
            Some(b"key") => Kind::Key,
            Some(_) => Kind::Other,
        }
    }
}

/// What says that a watched key has expired (PROTOCOL.md section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Proof {
    /// Its notification.
    Event,
    /// A touch of ours made it expire.
    Nudge,
    /// Nothing: it was gone when it was due. It may have been deleted.
    Unproven,
}

impl Proof {
    /// The word in entries and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Proof::Event => "event",
            Proof::Nudge => "nudge",
            Proof::Unproven => "none",
        }
    }

    /// Reads the field of an entry; `None` for a word that only a later version knows.
    pub(super) fn of(field: &Bytes) -> Option<Self> {
        [Proof::Event, Proof::Nudge, Proof::Unproven].into_iter().find(|proof| field == proof.as_str())
    }
}
