//! One timeout as `tail` shows it.

use overdue_protocol::entry::idempotency_key;
use overdue_protocol::{Entry, Generation, QueueName, RawEntry};
use serde::Serialize;

use crate::output::Row;
use crate::output::text::{self, IdText, PayloadText};
use crate::output::watched::Watched;

/// How many characters of a payload people see.
const PAYLOAD: usize = 80;

/// An entry of the stream.
#[derive(Serialize)]
pub(super) struct Line {
    partition: u32,
    entry: String,
    #[serde(flatten)]
    timeout: Option<Timeout>,
    /// Why it is no timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    malformed: Option<&'static str>,
}

#[derive(Serialize)]
struct Timeout {
    #[serde(flatten)]
    id: IdText,
    generation: Generation,
    key: String,
    due: String,
    due_ms: u64,
    fired: String,
    fired_ms: u64,
    source: &'static str,
    attempt: u32,
    #[serde(flatten)]
    watched: Watched,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flaw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(flatten)]
    payload: PayloadText,
    #[serde(skip)]
    shown: [String; 2],
}

impl Line {
    /// Reads an entry; one that is malformed is shown too.
    pub(super) fn new(queue: &QueueName, partition: u32, raw: &RawEntry) -> Self {
        let (timeout, malformed) = match Entry::decode(raw) {
            Ok(entry) => (Some(timeout(queue, &entry)), None),
            Err(malformed) => (None, Some(malformed.0)),
        };
        Self { partition, entry: raw.id.to_string(), timeout, malformed }
    }
}

fn timeout(queue: &QueueName, entry: &Entry) -> Timeout {
    let lossy = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    Timeout {
        id: IdText::new(entry.id.as_bytes()),
        generation: entry.generation,
        key: idempotency_key(queue, &entry.id, entry.generation),
        due: text::time(entry.due_ms),
        due_ms: entry.due_ms,
        fired: text::time(entry.fired_ms),
        fired_ms: entry.fired_ms,
        source: entry.source.as_str(),
        attempt: entry.attempt,
        watched: entry.into(),
        group: entry.group.as_ref().map(ToString::to_string),
        encoding: entry.encoding.as_ref().map(lossy),
        flaw: entry.flaw.as_ref().map(lossy),
        trace: entry.trace.as_ref().map(lossy),
        payload: PayloadText::new(&entry.payload),
        shown: [text::id(entry.id.as_bytes()), text::payload(&entry.payload, PAYLOAD)],
    }
}

impl Row for Line {
    // The blanks leave room for what comes: the first page sets the widths.
    const COLUMNS: &'static [&'static str] = &[
        "FIRED                   ",
        "LATE   ",
        "SOURCE      ",
        "ATTEMPT",
        "GROUP",
        "WATCHED BY",
        "ID",
        "PAYLOAD",
    ];

    fn cells(&self) -> Vec<String> {
        let Some(timeout) = &self.timeout else {
            let malformed = format!("malformed: {}", self.malformed.unwrap_or_default());
            let dash = || "-".to_owned();
            return vec![self.entry.clone(), dash(), dash(), dash(), dash(), dash(), dash(), malformed];
        };
        let [id, payload] = timeout.shown.clone();
        let late = text::span(timeout.fired_ms.saturating_sub(timeout.due_ms));
        let group = timeout.group.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            timeout.fired.clone(),
            late,
            timeout.source.to_owned(),
            timeout.attempt.to_string(),
            group,
            timeout.watched.brief().unwrap_or_else(|| "-".to_owned()),
            id,
            payload,
        ]
    }
}
