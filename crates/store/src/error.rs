//! What can go wrong with Redis, and what to do about it.

use std::fmt;

/// The result of everything that talks to Redis.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, by what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The settings are wrong; nothing was sent.
    Settings,
    /// No connection, and the command was not sent.
    Unreachable,
    /// Redis refuses us: password, ACL rights, protected mode, a command that it does not offer.
    Refused,
    /// The server is older than 6.2.
    TooOld,
    /// Whatever answers there is not a Redis.
    NotRedis,
    /// Not executed, and will pass: LOADING, BUSY, MASTERDOWN, CLUSTERDOWN, READONLY, MISCONF, NOREPLICAS.
    Unavailable,
    /// Not executed: Redis is at `maxmemory` and may not evict.
    OutOfMemory,
    /// Sent, but no answer came: it may have been executed.
    OutcomeUnknown,
    /// The group or its stream does not exist.
    NoGroup,
    /// A key of ours holds another type.
    WrongType,
    /// A queue is in a format that this version does not know.
    NewerFormat,
    /// An answer or a stored value is not what the specification says.
    Malformed,
    /// The connection was closed by us.
    Closed,
    /// Any other error of Redis or of a script.
    Script,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Settings,
        Self::Unreachable,
        Self::Refused,
        Self::TooOld,
        Self::NotRedis,
        Self::Unavailable,
        Self::OutOfMemory,
        Self::OutcomeUnknown,
        Self::NoGroup,
        Self::WrongType,
        Self::NewerFormat,
        Self::Malformed,
        Self::Closed,
        Self::Script,
    ];

    /// The word in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::TooOld => "too_old",
            Self::NotRedis => "not_redis",
            Self::Unavailable => "unavailable",
            Self::OutOfMemory => "out_of_memory",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::NoGroup => "no_group",
            Self::WrongType => "wrong_type",
            Self::NewerFormat => "newer_format",
            Self::Malformed => "malformed",
            Self::Closed => "closed",
            Self::Script => "script",
        }
    }
}

/// Whether a failed call may have been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// It was not.
    No,
    /// It may have been, in part or in full.
    Unknown,
}

/// An error with what was being done, what happened and where, and what to do. One line, never with a password.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    doing: String,
    detail: String,
}

impl Error {
    /// An error of `kind` while `doing` something ("arm 3 timers in orders/0").
    #[must_use]
    pub fn new(kind: ErrorKind, doing: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, doing: doing.into(), detail: detail.into() }
    }

    /// The same for what the server at `place` said, with what to do about it.
    pub(crate) fn at(kind: ErrorKind, doing: impl Into<String>, place: &str, said: &str) -> Self {
        let said = said.trim_end_matches(['.', ':', ' ']);
        Self::new(kind, doing, format!("Redis at {place}: {said}: {}", advice(kind, said)))
    }

    /// A value that the specification does not know.
    pub(crate) fn malformed(doing: impl Into<String>, what: overdue_protocol::Malformed) -> Self {
        Self::new(ErrorKind::Malformed, doing, what.to_string())
    }

    /// What went wrong, by what a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened and what to do, without what was being done: for callers who say that in their own words.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether the same call may succeed later without anybody changing settings, rights or data.
    ///
    /// For `OutcomeUnknown` that is not the question to ask: see [`Error::was_executed`].
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        use ErrorKind::{OutOfMemory, OutcomeUnknown, Unavailable, Unreachable};
        matches!(self.kind, Unreachable | Unavailable | OutOfMemory | OutcomeUnknown)
    }

    /// Whether the call may have been executed.
    #[must_use]
    pub fn was_executed(&self) -> Executed {
        match self.kind {
            ErrorKind::OutcomeUnknown | ErrorKind::Malformed | ErrorKind::Script => Executed::Unknown,
            _ => Executed::No,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.doing, self.detail)
    }
}

impl std::error::Error for Error {}

/// What to do about it.
fn advice(kind: ErrorKind, said: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    match kind {
        ErrorKind::Settings if says(&["cluster support disabled"]) => {
            "write redis:// instead of redis-cluster://"
        }
        ErrorKind::Settings => "correct the settings",
        ErrorKind::Unreachable if says(&["(Expired"]) => {
            "renew the server's certificate; is the clock here right?"
        }
        ErrorKind::Unreachable if says(&["(NotValidForName"]) => {
            "use the host name that the server's certificate is for"
        }
        ErrorKind::Unreachable if says(&["certificate", "Certificate", "UnknownIssuer"]) => {
            "trust the server's authority with ca_file, or use the host name that its certificate is for"
        }
        ErrorKind::Unreachable if says(&["no answer", "reset by peer"]) => {
            "is it a Redis, does it hang, and is TLS right (redis:// or rediss://)?"
        }
        ErrorKind::Unreachable => {
            "is it running there? Give another address with --redis or OVERDUE_REDIS_URL"
        }
        ErrorKind::Refused if says(&["NOAUTH"]) => "it asks for a password; give user and password",
        ErrorKind::Refused if says(&["WRONGPASS", "password"]) => "check user and password",
        ErrorKind::Refused if says(&["DENIED"]) => {
            "set a password on the server, or connect from its own host"
        }
        ErrorKind::Refused if says(&["unknown command"]) => {
            "the server does not offer this command; allow it there"
        }
        ErrorKind::Refused => "give the user the rights that OPERATIONS.md lists",
        ErrorKind::TooOld => "upgrade it to 6.2 or later",
        ErrorKind::NotRedis => "is this the address of a Redis, and is TLS right (redis:// or rediss://)?",
        ErrorKind::Unavailable if says(&["READONLY"]) => {
            "it was not done; this is a replica, or a failover is under way"
        }
        ErrorKind::Unavailable if says(&["MISCONF"]) => "it was not done; look at the server's disk and log",
        ErrorKind::Unavailable => "it was not done; it can be tried again soon",
        ErrorKind::OutOfMemory => "it was not done; raise maxmemory or remove data",
        ErrorKind::OutcomeUnknown => "it may have been done; look before doing it again",
        ErrorKind::NoGroup => "the group or its stream is gone; join it again",
        ErrorKind::WrongType => "somebody else's data has the name of one of our keys; use another namespace",
        ErrorKind::NewerFormat => "upgrade this program",
        ErrorKind::Malformed => "is a newer or older version of Overdue at work on the same keys?",
        ErrorKind::Closed => "it was closed by this process",
        ErrorKind::Script => "please report this with the version of the server",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_that_says_what_to_do() {
        let error =
            Error::at(ErrorKind::OutOfMemory, "arm 3 timers in orders/0", "redis://h:6379/", "OOM no.");
        assert_eq!(
            error.to_string(),
            "cannot arm 3 timers in orders/0: Redis at redis://h:6379/: OOM no: it was not done; raise maxmemory or remove data"
        );
        assert_eq!((error.is_retryable(), error.was_executed()), (true, Executed::No));
    }
}
