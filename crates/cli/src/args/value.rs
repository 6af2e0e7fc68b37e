//! Values that several commands take.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::str::FromStr;

use clap::builder::{OsStringValueParser, TypedValueParser};
use overdue_protocol::entry::EntryId;
use overdue_protocol::partition::MAX_PARTITIONS;
use overdue_protocol::watch::Glob;
use overdue_protocol::{InvalidName, TimerId};

/// A timer's id as the shell hands it over: any bytes, UTF-8 or not.
pub(crate) fn timer_id() -> impl TypedValueParser<Value = TimerId> {
    OsStringValueParser::new()
        .try_map(|text: OsString| -> Result<TimerId, InvalidName> { TimerId::new(text.into_vec()) })
}

/// The id of a timer or the name of a watched key, as the shell hands it over: any bytes.
pub(crate) fn id_or_key() -> impl TypedValueParser<Value = TimerId> {
    OsStringValueParser::new()
        .try_map(|text: OsString| -> Result<TimerId, InvalidName> { TimerId::of_key(text.into_vec()) })
}

/// A pattern for ids, which are any bytes.
pub(crate) fn glob() -> impl TypedValueParser<Value = Glob> {
    OsStringValueParser::new().map(|text: OsString| Glob::new(text.into_vec()))
}

/// Names one dead letter, as `dead list` prints it: `partition-entry`, such as `0-1767225600000-0`. The
/// partition may be left out when it is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Letter {
    pub(crate) partition: u32,
    pub(crate) entry: EntryId,
}

impl std::fmt::Display for Letter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.partition, self.entry)
    }
}

impl FromStr for Letter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str =
            "not a dead letter: write it as `overdue dead list` prints it, such as 0-1767225600000-0";
        // An entry has one dash of its own.
        let named = text.split_once('-').filter(|(_, entry)| entry.contains('-'));
        let (partition, entry) = named.unwrap_or(("0", text));
        let partition = partition.parse().ok().filter(|number| *number < MAX_PARTITIONS).ok_or(RULE)?;
        Ok(Self { partition, entry: entry.parse().map_err(|_| RULE)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_read_as_it_is_printed() {
        let letter = Letter { partition: 3, entry: EntryId { ms: 1_767_225_600_000, seq: 7 } };
        assert_eq!(letter.to_string(), "3-1767225600000-7");
        assert_eq!("3-1767225600000-7".parse(), Ok(letter));
        assert_eq!("5-0".parse(), Ok(Letter { partition: 0, entry: EntryId { ms: 5, seq: 0 } }));
        for bad in ["", "5", "order-1", "3-", "-5-0", "1024-5-0", "-1-5-0", "0-5-0-0", "0/5-0"] {
            assert!(bad.parse::<Letter>().unwrap_err().starts_with("not a dead letter"), "{bad}");
        }
    }
}
