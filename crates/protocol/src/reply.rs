//! What Redis answered, free of any client library.

use bytes::Bytes;

/// A reply of Redis, as scripts and reads return it.
///
/// Errors are not a case: the store turns them into its own error before anybody sees a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// No value.
    Nil,
    /// An integer.
    Int(i64),
    /// A string, binary-safe.
    Bytes(Bytes),
    /// A list, possibly nested.
    Array(Vec<Reply>),
}

impl Reply {
    /// The list inside, or `None` for anything else.
    #[must_use]
    pub fn into_array(self) -> Option<Vec<Reply>> {
        match self {
            Reply::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The string inside, or `None` for anything else.
    #[must_use]
    pub fn into_bytes(self) -> Option<Bytes> {
        match self {
            Reply::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The string inside as text, or `None` for anything else, not UTF-8 included.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// A number, whether it came as an integer or as decimal text (scores do).
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Reply::Int(n) => u64::try_from(*n).ok(),
            Reply::Bytes(_) => {
                let text = self.as_str()?;
                text.parse().ok().or_else(|| {
                    let score = text.parse::<f64>().ok()?;
                    (score >= 0.0 && score.fract() == 0.0 && score < 9e15).then_some(score as u64)
                })
            }
            _ => None,
        }
    }
}

impl From<i64> for Reply {
    fn from(n: i64) -> Self {
        Reply::Int(n)
    }
}

impl From<&'static str> for Reply {
    fn from(text: &'static str) -> Self {
        Reply::Bytes(Bytes::from_static(text.as_bytes()))
    }
}
