//! Entries of the streams (PROTOCOL.md section 2).

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::Generation;
use crate::answer::Malformed;
use crate::name::{GroupName, QueueName, TimerId};

mod id;
mod origin;
mod raw;

pub use id::EntryId;
pub use origin::{Kind, Proof, Source};
pub use raw::RawEntry;

/// A decoded entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of the timer, or the name of the watched key.
    pub id: TimerId,
    /// The generation that fired.
    pub generation: Generation,
    /// The original deadline, unix milliseconds on the server's clock; the same in every retry.
    pub due_ms: u64,
    /// When it entered the stream, unix milliseconds on the server's clock.
    pub fired_ms: u64,
    /// What fired it.
    pub source: Source,
    /// What has ended.
    pub kind: Kind,
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
    /// Watched keys: the name of the rule.
    pub rule: Option<Bytes>,
    /// Watched keys: the database.
    pub db: Option<u8>,
    /// Watched keys: what says that it expired. `None` also for a word that only a later version knows.
    pub proof: Option<Proof>,
    /// Watched keys: when the payload was read from the key, unix milliseconds on the server's clock.
    pub captured_ms: Option<u64>,
    /// Watched keys: why it ended, when it did not expire: [`EVICTED`].
    pub cause: Option<Bytes>,
}

/// The `cause` of a watched key that Redis evicted.
pub const EVICTED: &str = "evicted";

impl Entry {
    /// Reads an entry; unknown fields are left alone.
    ///
    /// # Errors
    /// Names the first field that is missing or wrong. Such an entry is a dead letter. What only tells more about a
    /// watched key can't be wrong: a value that means nothing here is `None`.
    pub fn decode(raw: &RawEntry) -> Result<Self, Malformed> {
        let fields = Fields::of(raw);
        let id = fields.id.cloned().ok_or(Malformed("the entry has no id"))?;
        let kind = Kind::of(fields.kind);
        let id = if kind == Kind::Timer { TimerId::new(id) } else { TimerId::of_key(id) };
        let group = match fields.group {
            None => None,
            Some(group) => Some(
                text(group)
                    .and_then(|name| GroupName::new(name).ok())
                    .ok_or(Malformed("the entry's group is no name"))?,
            ),
        };
        Ok(Self {
            id: id.map_err(|_| Malformed("the entry's id is empty or too long"))?,
            generation: fields
                .generation
                .and_then(number)
                .ok_or(Malformed("the entry's gen is no number"))?,
            due_ms: fields.due.and_then(number).ok_or(Malformed("the entry's due is no number"))?,
            fired_ms: fields.fired.and_then(number).ok_or(Malformed("the entry's fired is no number"))?,
            source: fields.src.and_then(text).ok_or(Malformed("the entry has no src"))?.parse()?,
            kind,
            payload: fields.payload.cloned().ok_or(Malformed("the entry has no payload"))?,
            encoding: fields.enc.cloned(),
            group,
            attempt: match fields.attempt {
                None => 1,
                Some(attempt) => number(attempt)
                    .and_then(|n| u32::try_from(n).ok())
                    .filter(|&n| n > 0)
                    .ok_or(Malformed("the entry's attempt is no number"))?,
            },
            flaw: fields.flaw.cloned(),
            trace: fields.trace.cloned(),
            rule: fields.rule.cloned(),
            db: fields.db.and_then(number).and_then(|db| u8::try_from(db).ok()),
            proof: fields.proof.and_then(Proof::of),
            captured_ms: fields.captured_ms.and_then(number),
            cause: fields.cause.cloned(),
        })
    }
}

fn text(value: &Bytes) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

fn number(value: &Bytes) -> Option<u64> {
    text(value)?.parse().ok()
}

/// The fields that are known, each where it stands first: found in one walk, as there are many and each is wanted.
#[derive(Default)]
struct Fields<'a> {
    id: Option<&'a Bytes>,
    generation: Option<&'a Bytes>,
    due: Option<&'a Bytes>,
    fired: Option<&'a Bytes>,
    src: Option<&'a Bytes>,
    kind: Option<&'a Bytes>,
    payload: Option<&'a Bytes>,
    enc: Option<&'a Bytes>,
    group: Option<&'a Bytes>,
    attempt: Option<&'a Bytes>,
    flaw: Option<&'a Bytes>,
    trace: Option<&'a Bytes>,
    rule: Option<&'a Bytes>,
    db: Option<&'a Bytes>,
    proof: Option<&'a Bytes>,
    captured_ms: Option<&'a Bytes>,
    cause: Option<&'a Bytes>,
}

impl<'a> Fields<'a> {
    fn of(raw: &'a RawEntry) -> Self {
        let mut fields = Self::default();
        for (name, value) in &raw.fields {
            let field = match &name[..] {
                b"id" => &mut fields.id,
                b"gen" => &mut fields.generation,
                b"due" => &mut fields.due,
                b"fired" => &mut fields.fired,
                b"src" => &mut fields.src,
                b"kind" => &mut fields.kind,
                b"payload" => &mut fields.payload,
                b"enc" => &mut fields.enc,
                b"group" => &mut fields.group,
                b"attempt" => &mut fields.attempt,
                b"flaw" => &mut fields.flaw,
                b"trace" => &mut fields.trace,
                b"rule" => &mut fields.rule,
                b"db" => &mut fields.db,
                b"proof" => &mut fields.proof,
                b"captured_ms" => &mut fields.captured_ms,
                b"cause" => &mut fields.cause,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        fields
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

    fn with(more: &[(&'static str, &'static str)]) -> Result<Entry, Malformed> {
        let names: Vec<_> = more.iter().map(|(name, _)| *name).collect();
        let mut fields: Vec<_> = GOOD.iter().copied().filter(|(name, _)| !names.contains(name)).collect();
        fields.extend(more);
        Entry::decode(&raw(&fields))
    }

    #[test]
    fn a_watched_key_says_all_that_is_known_of_it() {
        let key = with(&[
            ("kind", "key"),
            ("rule", "sessions"),
            ("db", "3"),
            ("proof", "none"),
            ("captured_ms", "990"),
            ("cause", "evicted"),
        ])
        .unwrap();
        assert_eq!((key.kind, key.db, key.proof), (Kind::Key, Some(3), Some(Proof::Unproven)));
        assert_eq!(
            (key.captured_ms, key.rule.unwrap(), key.cause.unwrap()),
            (Some(990), "sessions".into(), EVICTED.into())
        );
        let timer = Entry::decode(&raw(GOOD)).unwrap();
        assert_eq!((timer.kind, timer.rule, timer.db, timer.proof), (Kind::Timer, None, None, None));
    }

    #[test]
    fn a_word_of_tomorrow_is_no_dead_letter() {
        let odd =
            [("kind", "key"), ("db", "300"), ("proof", "oath"), ("captured_ms", "soon"), ("cause", "flood")];
        let entry = with(&odd).unwrap();
        assert_eq!((entry.db, entry.proof, entry.captured_ms), (None, None, None));
        assert_eq!(with(&[("kind", "season")]).unwrap().kind, Kind::Other);
    }

    #[test]
    fn only_the_name_of_a_key_is_longer_than_an_id() {
        let long: &'static str = "x".repeat(70_000).leak();
        let key = with(&[("kind", "key"), ("id", long)]).unwrap();
        assert_eq!(key.id.as_bytes().len(), 70_000);
        assert!(with(&[("id", long)]).is_err() && with(&[("kind", "key"), ("id", "")]).is_err());
        let measured = raw(&[("id", long), ("payload", "p"), ("rule", "r")]);
        assert_eq!(measured.size(), 70_001);
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
}
