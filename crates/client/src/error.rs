//! What can go wrong for a producer, and what to do about it.

use std::fmt;

use overdue_protocol::TimerId;
use overdue_store as store;

use crate::answer::Scheduled;

/// The result of everything that a producer does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// What was given breaks a limit: an id, a payload, a deadline, a name. Nothing was sent.
    Invalid,
    /// The settings are wrong. Nothing was sent.
    Settings,
    /// Redis cannot be reached, or cannot do it now (loading, failing over). Not executed; it was tried again
    /// until the deadline.
    Unavailable,
    /// Redis refuses us: password, ACL rights, too old, or not a Redis at all. Not executed.
    Refused,
    /// Redis is at `maxmemory`. Not executed, and answered at once.
    OutOfMemory,
    /// The answer was lost, and Redis could not confirm this call. It may have been executed, once.
    OutcomeUnknown,
    /// The queue's data and its entry in `overdue:queues` differ in the number of partitions. Nothing was written.
    PartitionsDisagree,
    /// The timer is armed, but fewer replicas than asked for have it: see [`Error::scheduled`].
    NotReplicated,
    /// The queue is in a format that this version does not know. Nothing was touched.
    NewerFormat,
    /// What is stored cannot be read as what was asked for.
    Unreadable,
    /// The client was closed.
    Closed,
    /// Redis or a script answered what it should not: a key of another type, an unknown answer.
    Server,
}

impl From<store::ErrorKind> for ErrorKind {
    fn from(kind: store::ErrorKind) -> Self {
        use store::ErrorKind as Kind;
        match kind {
            Kind::Settings => ErrorKind::Settings,
            Kind::Unreachable | Kind::Unavailable => ErrorKind::Unavailable,
            Kind::Refused | Kind::TooOld | Kind::NotRedis => ErrorKind::Refused,
            Kind::OutOfMemory => ErrorKind::OutOfMemory,
            Kind::OutcomeUnknown => ErrorKind::OutcomeUnknown,
            Kind::NewerFormat => ErrorKind::NewerFormat,
            Kind::Closed => ErrorKind::Closed,
            Kind::NoGroup | Kind::WrongType | Kind::Malformed | Kind::Script => ErrorKind::Server,
        }
    }
}

/// An error with what was being done, to what, what happened and what to do. One line, never with a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    doing: String,
    detail: String,
    scheduled: Option<Scheduled>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, doing: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, doing: doing.into(), detail: detail.into(), scheduled: None }
    }

    /// The error of something that changes nothing: a lost answer is no unknown outcome there.
    pub(crate) fn of_look(error: &store::Error, doing: &str) -> Self {
        let kind = match ErrorKind::from(error.kind()) {
            ErrorKind::OutcomeUnknown => ErrorKind::Unavailable,
            kind => kind,
        };
        Self::new(kind, doing, error.detail())
    }

    pub(crate) fn with(mut self, scheduled: Option<Scheduled>) -> Self {
        self.scheduled = scheduled;
        self
    }

    /// What went wrong, by what a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later, and can be made again without arming anything twice.
    ///
    /// [`ErrorKind::OutcomeUnknown`] is not: look with `get` first. (A cancel can always be made again.)
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::OutOfMemory)
    }

    /// What was armed all the same, when the kind is [`ErrorKind::NotReplicated`].
    #[must_use]
    pub fn scheduled(&self) -> Option<Scheduled> {
        self.scheduled
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.doing, self.detail)
    }
}

impl std::error::Error for Error {}

/// An id for an error: as text, in quotes, not longer than a line.
pub(crate) fn shown(id: &TimerId) -> String {
    let text = String::from_utf8_lossy(id.as_bytes());
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_in_an_error_stays_on_one_line() {
        let id = |bytes: &[u8]| TimerId::new(bytes.to_vec()).unwrap();
        assert_eq!(shown(&id(b"a\nb\xff")), "\"a\\nb\u{fffd}\"");
        assert_eq!(shown(&id(&[b'x'; 512])).len(), 85);
    }
}
