//! Entries of the streams (PROTOCOL.md section 2).

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::Generation;
use crate::answer::Malformed;
use crate::name::{GroupName, QueueName, TimerId};
use crate::reply::Reply;

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

/// An entry as it stands in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEntry {
    /// Its id.
    pub id: EntryId,
    /// Its fields in order; empty when the entry was deleted while it was pending.
    pub fields: Vec<(Bytes, Bytes)>,
}

impl RawEntry {
    /// Reads `[id, [name, value, ...]]`, as XRANGE and our scripts answer it.
    ///
    /// # Errors
    /// Any other shape.
    pub fn from_reply(reply: Reply) -> Result<Self, Malformed> {
        let shape = Malformed("a stream entry is not [id, [name, value, ...]]");
        let mut parts = reply.into_array().ok_or(shape)?.into_iter();
        let id = parts.next().as_ref().and_then(Reply::as_str).ok_or(shape)?.parse()?;
        let flat = match parts.next() {
            Some(Reply::Array(flat)) => flat,
            Some(Reply::Nil) | None => vec![],
            Some(_) => return Err(shape),
        };
        let mut fields = Vec::with_capacity(flat.len() / 2);
        let mut flat = flat.into_iter().map(|part| part.into_bytes().ok_or(shape));
        while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
            fields.push((name?, value?));
        }
        Ok(Self { id, fields })
    }

    /// The value of a field, or `None`. The first one counts, as a script sees it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Bytes> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// The bytes of all values: what a page is measured by.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.field("payload").map_or(0, Bytes::len)
    }
}

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

/// A decoded entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of the timer.
    pub id: TimerId,
    /// The generation that fired.
    pub generation: Generation,
    /// The original deadline, unix milliseconds on the server's clock; the same in every retry.
    pub due_ms: u64,
    /// When it entered the stream, unix milliseconds on the server's clock.
    pub fired_ms: u64,
    /// What fired it.
    pub source: Source,
    /// The payload, opaque.
    pub payload: Bytes,
    /// How the payload is written, when known: raw, text, json, msgpack.
    pub encoding: Option<Bytes>,
    /// The group it is addressed to; `None` for all.
    pub group: Option<GroupName>,
    /// Which delivery of this timeout to a handler it is; 1 is the first.
    pub attempt: u32,
    /// What was wrong with its record, when something was.
    pub flaw: Option<Bytes>,
    /// The trace context of the scheduler, when it gave one.
    pub trace: Option<Bytes>,
}

impl Entry {
    /// Reads an entry; unknown fields are left alone.
    ///
    /// # Errors
    /// Names the first field that is missing or wrong. Such an entry is a dead letter.
    pub fn decode(raw: &RawEntry) -> Result<Self, Malformed> {
        let text = |name| raw.field(name).and_then(|value| std::str::from_utf8(value).ok());
        let number = |name| text(name).and_then(|digits| digits.parse::<u64>().ok());
        let id = raw.field("id").cloned().ok_or(Malformed("the entry has no id"))?;
        let group = match raw.field("group") {
            None => None,
            Some(_) => Some(
                text("group")
                    .and_then(|name| GroupName::new(name).ok())
                    .ok_or(Malformed("the entry's group is no name"))?,
            ),
        };
        Ok(Self {
            id: TimerId::new(id).map_err(|_| Malformed("the entry's id is empty or too long"))?,
            generation: number("gen").ok_or(Malformed("the entry's gen is no number"))?,
            due_ms: number("due").ok_or(Malformed("the entry's due is no number"))?,
            fired_ms: number("fired").ok_or(Malformed("the entry's fired is no number"))?,
            source: text("src").ok_or(Malformed("the entry has no src"))?.parse()?,
            payload: raw.field("payload").cloned().ok_or(Malformed("the entry has no payload"))?,
            encoding: raw.field("enc").cloned(),
            group,
            attempt: match raw.field("attempt") {
                None => 1,
                Some(_) => number("attempt")
                    .and_then(|n| u32::try_from(n).ok())
                    .filter(|&n| n > 0)
                    .ok_or(Malformed("the entry's attempt is no number"))?,
            },
            flaw: raw.field("flaw").cloned(),
            trace: raw.field("trace").cloned(),
        })
    }
}

/// Unreserved characters of RFC 3986 stay as they are.
const IN_KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The idempotency key as text: `queue/id/generation`, the id percent-encoded.
#[must_use]
pub fn idempotency_key(queue: &QueueName, id: &TimerId, generation: Generation) -> String {
    format!("{queue}/{}/{generation}", percent_encode(id.as_bytes(), IN_KEY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(fields: &[(&'static str, &'static str)]) -> RawEntry {
        let fields = fields.iter().map(|(n, v)| (Bytes::from(*n), Bytes::from(*v))).collect();
        RawEntry { id: EntryId { ms: 5, seq: 0 }, fields }
    }

    const GOOD: &[(&str, &str)] = &[
        ("id", "order-1"),
        ("gen", "17"),
        ("due", "1000"),
        ("fired", "1001"),
        ("src", "index"),
        ("kind", "timer"),
        ("payload", "p"),
        ("colour", "red"),
    ];

    #[test]
    fn a_field_of_tomorrow_is_left_alone() {
        let entry = Entry::decode(&raw(GOOD)).unwrap();
        assert_eq!((entry.generation, entry.due_ms, entry.attempt, entry.group), (17, 1000, 1, None));
    }

    #[test]
    fn every_missing_field_is_named() {
        for missing in ["id", "gen", "due", "fired", "src", "payload"] {
            let some: Vec<_> = GOOD.iter().copied().filter(|(name, _)| *name != missing).collect();
            let error = Entry::decode(&raw(&some)).unwrap_err().to_string();
            assert!(error.contains(missing), "{missing}: {error}");
        }
        for (name, value) in [("gen", "x"), ("attempt", "0"), ("src", "moon"), ("group", "A B"), ("id", "")] {
            let mut some: Vec<_> = GOOD.iter().copied().filter(|(n, _)| *n != name).collect();
            some.push((name, value));
            assert!(Entry::decode(&raw(&some)).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn the_idempotency_key_has_two_slashes_whatever_the_id() {
        let key = |id: &[u8]| {
            idempotency_key(&QueueName::new("orders").unwrap(), &TimerId::new(id.to_vec()).unwrap(), 7)
        };
        assert_eq!(key(b"order-1001"), "orders/order-1001/7");
        assert_eq!(key(b"a/b c"), "orders/a%2Fb%20c/7");
        assert_eq!(key(b"\xff"), "orders/%FF/7");
    }

    #[test]
    fn entry_ids_are_ordered_as_numbers() {
        let id = |text: &str| text.parse::<EntryId>().unwrap();
        assert!(id("9-10") > id("9-9") && id("10-0") > id("9-10"));
        assert!("9".parse::<EntryId>().is_err() && "a-1".parse::<EntryId>().is_err());
    }
}
