//! What can go wrong around a private server.

use std::fmt;

/// Why a private server could not be started or asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No redis-server is installed.
    NotInstalled,
    /// It did not start, or did not answer before its deadline.
    Start,
    /// A connection failed, or no answer came before the deadline.
    Io,
    /// Redis answered with an error; [`Error::detail`] is its text, unchanged.
    Redis,
}

/// An error that says what was being done, and what happened.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    doing: String,
    detail: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, doing: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, doing: doing.into(), detail: detail.into() }
    }

    /// The same, of something larger that was being done.
    pub(crate) fn during(self, doing: String) -> Self {
        Self { doing, ..self }
    }

    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened; for [`ErrorKind::Redis`] exactly what Redis said, such as `WRONGTYPE Operation ...`.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.doing, self.detail)
    }
}

impl std::error::Error for Error {}
