//! Reading answers: `{n, {...}}` or `{WORD, {...}}` (PROTOCOL.md section 3, rule 6).

use bytes::Bytes;

use crate::reply::Reply;

/// A reply or value that is not what the specification says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; is a newer or older version of Overdue at work on the same keys?", self.0)
    }
}

impl std::error::Error for Malformed {}

/// The side error of an answer `{n, {side error, ...}}`; `None` for every other.
pub(crate) fn side_error(reply: &Reply) -> Option<&str> {
    let Reply::Array(parts) = reply else { return None };
    match parts.as_slice() {
        [Reply::Int(_), Reply::Array(nested), ..] => {
            nested.first()?.as_str().filter(|error| !error.is_empty())
        }
        _ => None,
    }
}

/// Walks the nested part of an answer.
pub(crate) struct Answer {
    head: Reply,
    rest: std::vec::IntoIter<Reply>,
}

impl Answer {
    pub(crate) fn open(reply: Reply) -> Result<Self, Malformed> {
        let shape = Malformed("a script's answer is not {head, {...}}");
        let mut items = reply.into_array().ok_or(shape)?.into_iter();
        let head = items.next().ok_or(shape)?;
        let rest = items.next().unwrap_or(Reply::Array(vec![])).into_array().ok_or(shape)?;
        Ok(Self { head, rest: rest.into_iter() })
    }

    /// The head as one of our words, or `None` when it is a number.
    pub(crate) fn word(&self) -> Option<&str> {
        self.head.as_str()
    }

    /// The head as a number.
    pub(crate) fn count(&self) -> Result<u64, Malformed> {
        self.head.as_u64().ok_or(Malformed("a script's answer does not begin with a number"))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.next()?.as_u64().ok_or(Malformed("a number is missing in a script's answer"))
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, Malformed> {
        self.next()?.into_bytes().ok_or(Malformed("a string is missing in a script's answer"))
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.bytes()?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Steps over the side error that begins the nested part of every script that writes the books.
    pub(crate) fn side_error(&mut self) -> Result<(), Malformed> {
        self.bytes().map(drop)
    }

    pub(crate) fn array(&mut self) -> Result<Vec<Reply>, Malformed> {
        self.next()?.into_array().ok_or(Malformed("a list is missing in a script's answer"))
    }

    /// What has not been read yet.
    pub(crate) fn rest(self) -> std::vec::IntoIter<Reply> {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.as_slice().is_empty()
    }

    fn next(&mut self) -> Result<Reply, Malformed> {
        self.rest.next().ok_or(Malformed("a script's answer is too short"))
    }
}
