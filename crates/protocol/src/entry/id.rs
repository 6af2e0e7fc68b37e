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
        // By hand: the formatter takes as long as the rest of an acknowledgement.
        let (mut text, mut at) = ([0; 41], 41);
        put(self.seq, &mut text, &mut at);
        at -= 1;
        text[at] = b'-';
        put(self.ms, &mut text, &mut at);
        Bytes::copy_from_slice(&text[at..])
    }
}

/// Writes digits before `at`, which is where they begin then.
fn put(mut number: u64, text: &mut [u8; 41], at: &mut usize) {
    loop {
        *at -= 1;
        text[*at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return;
        }
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
    fn an_id_is_written_as_it_is_read() {
        for (ms, seq) in [(0, 0), (9, 10), (1_764_540_000_000, 7), (u64::MAX, u64::MAX)] {
            let id = EntryId { ms, seq };
            assert_eq!(id.to_bytes(), id.to_string());
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn entry_ids_are_ordered_as_numbers() {
        let id = |text: &str| text.parse::<EntryId>().unwrap();
        assert!(id("9-10") > id("9-9") && id("10-0") > id("9-10"));
        assert!("9".parse::<EntryId>().is_err() && "a-1".parse::<EntryId>().is_err());
    }
}
