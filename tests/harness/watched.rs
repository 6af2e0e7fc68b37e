//! Timeouts of watched keys made by hand: what a script that fires them leaves behind.

use bytes::Bytes;
use overdue_protocol::Partition;
use overdue_protocol::entry::EntryId;

use crate::Wire;

/// The entry of a watched key with every field that one can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredKey {
    fields: Vec<(&'static str, Bytes)>,
}

impl FiredKey {
    /// Key `name` of db 3, proven by a nudge, due at 1000, of rule `sessions`, with the value `{"user":"7"}` captured.
    #[must_use]
    pub fn new(name: impl Into<Bytes>, generation: u64) -> Self {
        let text = Bytes::from_static;
        Self {
            fields: vec![
                ("id", name.into()),
                ("gen", generation.to_string().into()),
                ("due", text(b"1000")),
                ("fired", text(b"1003")),
                ("src", text(b"index")),
                ("kind", text(b"key")),
                ("payload", text(br#"{"user":"7"}"#)),
                ("rule", text(b"sessions")),
                ("db", text(b"3")),
                ("proof", text(b"nudge")),
                ("enc", text(b"json")),
                ("captured_ms", text(b"950")),
            ],
        }
    }

    /// The same with another value of a field, or with one more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Bytes>) -> Self {
        let value = value.into();
        match self.fields.iter_mut().find(|(field, _)| *field == name) {
            Some(field) => field.1 = value,
            None => self.fields.push((name, value)),
        }
        self
    }

    /// The fields that stay the same in every retry, release, dead letter and replay.
    pub fn kept(&self) -> impl Iterator<Item = (&'static str, &Bytes)> {
        let moves = ["fired", "src"];
        self.fields.iter().filter(move |(name, _)| !moves.contains(name)).map(|(name, value)| (*name, value))
    }

    /// Puts it into the stream and into the books.
    ///
    /// # Panics
    /// The server refuses it.
    pub fn fire(&self, wire: &mut Wire, partition: &Partition) -> EntryId {
        let (stream, tally) = (partition.stream(), partition.tally());
        let mut args: Vec<&[u8]> = vec![b"XADD", &stream, b"*"];
        args.extend(self.fields.iter().flat_map(|(name, value)| [name.as_bytes(), value]));
        let id = wire.call(&args).unwrap_or_else(|error| panic!("firing by hand: {error}"));
        let counted = wire.call(&[b"HINCRBY".as_slice(), &tally, b"watched_fired", b"1"]);
        counted.unwrap_or_else(|error| panic!("counting by hand: {error}"));
        id.as_str().and_then(|id| id.parse().ok()).expect("XADD answers the id of the entry")
    }
}
