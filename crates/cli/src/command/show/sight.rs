//! Something of an id that was found somewhere.

use bytes::Bytes;
use overdue_protocol::entry::{EntryId, idempotency_key};
use overdue_protocol::watch::Captured;
use overdue_protocol::{QueueName, RawEntry, Record, TimerId};
use serde::Serialize;

use crate::command::dead::letter::{lossy, number};
use crate::output::text::{self, IdText, PayloadText};
use crate::output::watched::Watched;

/// Where it is.
#[derive(Debug, Serialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub(super) enum Where {
    /// A timer waits for its deadline.
    Armed,
    /// A watched key whose end is known.
    Watched,
    /// In the stream; the group was not given it yet. `None` = no group reads the queue.
    Unread {
        group: Option<String>,
        /// Whether that group reads the queue.
        group_is_there: bool,
        entry: String,
    },
    /// In the stream; a consumer of the group has it.
    Held {
        group: String,
        by: String,
        /// Since it was taken, or its lease renewed.
        idle_ms: u64,
        /// How often it was begun alone, after its holder had died.
        begun_alone: u64,
        entry: String,
    },
    /// In the stream; the group has finished it, others have not.
    Finished { group: String, entry: String },
    /// A retry waits for its time.
    Waiting { group: String, not_before: String, not_before_ms: u64 },
    /// A dead letter.
    Dead {
        letter: String,
        group: Option<String>,
        reason: Option<String>,
        detail: Option<String>,
        buried: String,
        buried_ms: u64,
        by: Option<String>,
    },
    /// In the history.
    Done { group: Option<String>, done: String, done_ms: u64, by: Option<String> },
}

/// What is known of the timeout there.
#[derive(Debug, Serialize)]
pub(super) struct Body {
    pub(super) queue: String,
    pub(super) partition: u32,
    #[serde(flatten)]
    pub(super) id: IdText,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) due: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) due_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fired: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    #[serde(flatten)]
    pub(super) watched: Watched,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flaw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<usize>,
    #[serde(flatten)]
    payload: Option<PayloadText>,
    #[serde(skip)]
    pub(super) raw: Option<Bytes>,
}

impl Body {
    /// As an entry has it; any field may be missing or malformed.
    pub(super) fn new(queue: &QueueName, partition: u32, id: &TimerId, entry: &RawEntry) -> Self {
        let generation = number(entry, "gen");
        let payload = entry.field("payload");
        Self {
            queue: queue.to_string(),
            partition,
            id: IdText::new(id.as_bytes()),
            generation,
            key: generation.map(|generation| idempotency_key(queue, id, generation)),
            attempt: number(entry, "attempt"),
            due: number(entry, "due").map(text::time),
            due_ms: number(entry, "due"),
            fired: number(entry, "fired").map(text::time),
            source: lossy(entry, "src"),
            watched: entry.into(),
            flaw: lossy(entry, "flaw"),
            trace: lossy(entry, "trace"),
            encoding: lossy(entry, "enc"),
            bytes: payload.map(Bytes::len),
            payload: payload.map(|payload| PayloadText::new(payload)),
            raw: payload.cloned(),
        }
    }

    /// The first delivery goes without a number.
    pub(super) fn delivered(mut self) -> Self {
        self.attempt = self.attempt.or(Some(1));
        self
    }
}

/// A record as the entry that it becomes.
pub(super) fn as_entry(record: Option<Record>) -> RawEntry {
    let mut fields = Vec::new();
    match record {
        Some(record) => {
            fields.push(("gen".into(), record.generation.to_string().into()));
            fields.push(("payload".into(), record.payload));
            fields.extend(record.extras);
        }
        None => fields.push(("flaw".into(), "no record: it fires all the same, raw".into())),
    }
    RawEntry { id: EntryId::ZERO, fields }
}

/// A watched key as the entry that its end becomes.
pub(super) fn watched_as_entry(db: usize, due_ms: u64, captured: Option<Captured>) -> RawEntry {
    let number = |n: u64| Bytes::from(n.to_string());
    let mut fields =
        vec![("kind".into(), "key".into()), ("db".into(), number(db as u64)), ("due".into(), number(due_ms))];
    if let Some(Captured { captured_ms, encoding, payload, flaw }) = captured {
        fields.push(("captured_ms".into(), number(captured_ms)));
        match flaw {
            "" => fields.extend([("payload".into(), payload), ("enc".into(), encoding.into())]),
            flaw => fields.push(("flaw".into(), flaw.into())),
        }
    }
    RawEntry { id: EntryId::ZERO, fields }
}

/// An object of `--json`.
#[derive(Serialize)]
pub(super) struct Sight<'a> {
    #[serde(flatten)]
    pub(super) place: &'a Where,
    #[serde(flatten)]
    pub(super) body: &'a Body,
}
