//! The id of an entry.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::answer::Malformed;

/// The id of a stream entry, ordered as Redis orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId {
    /// Milliseconds; not the time of firing after the server's clock stepped back.
    pub ms: u64,
    /// The number within the millisecond.
    pub seq: u64,
}

impl EntryId {
    /// Before every entry.
    pub const ZERO: Self = Self { ms: 0, seq: 0 };

    /// As Redis takes it.
    #[must_use]
    pub fn to_bytes(self) -> Bytes {
        Bytes::from(self.to_string())
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl FromStr for EntryId {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let parse = || {
            let (ms, seq) = text.split_once('-')?;
            Some(Self { ms: ms.parse().ok()?, seq: seq.parse().ok()? })
        };
        parse().ok_or(Malformed("a stream entry id is not two numbers with a dash"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_ids_are_ordered_as_numbers() {
        let id = |text: &str| text.parse::<EntryId>().unwrap();
        assert!(id("9-10") > id("9-9") && id("10-0") > id("9-10"));
        assert!("9".parse::<EntryId>().is_err() && "a-1".parse::<EntryId>().is_err());
    }
}
