//! A dead letter on paper.

use std::collections::BTreeMap;

use overdue_protocol::entry::idempotency_key;
use overdue_protocol::{QueueName, RawEntry, TimerId};
use serde::Serialize;

use crate::args::value::Letter;
use crate::output::Row;
use crate::output::text::{self, IdText, PayloadText};
use crate::output::watched::Watched;

/// How many characters of a reason a list shows.
const REASON: usize = 100;
/// The fields of a letter that have a line of their own.
const KNOWN: [&str; 22] = [
    "group",
    "reason",
    "detail",
    "buried",
    "by",
    "entry",
    "id",
    "gen",
    "due",
    "fired",
    "src",
    "kind",
    "payload",
    "enc",
    "attempt",
    "flaw",
    "trace",
    "rule",
    "db",
    "proof",
    "captured_ms",
    "cause",
];

/// When it was buried, unix ms. A letter that does not say so was not written by a script of ours: then it is its
/// place in the stream.
pub(crate) fn buried_ms(letter: &RawEntry) -> u64 {
    number(letter, "buried").unwrap_or(letter.id.ms)
}

/// A letter in a list. Any field may be missing: malformed entries are dead letters.
#[derive(Serialize)]
pub(crate) struct Line {
    pub(crate) letter: String,
    buried: String,
    buried_ms: u64,
    group: Option<String>,
    attempts: Option<u64>,
    by: Option<String>,
    reason: Option<String>,
    detail: Option<String>,
    #[serde(flatten)]
    id: Option<IdText>,
    #[serde(skip)]
    shown: String,
}

impl Line {
    pub(crate) fn new(partition: u32, entry: &RawEntry) -> Self {
        let id = entry.field("id");
        let buried_ms = buried_ms(entry);
        Self {
            letter: Letter { partition, entry: entry.id }.to_string(),
            buried: text::time(buried_ms),
            buried_ms,
            group: lossy(entry, "group"),
            attempts: entry.field("attempt").map_or(Some(1), |_| number(entry, "attempt")),
            by: lossy(entry, "by"),
            reason: lossy(entry, "reason"),
            detail: lossy(entry, "detail"),
            id: id.map(|id| IdText::new(id)),
            shown: id.map_or_else(|| "-".to_owned(), |id| text::id(id)),
        }
    }

    /// Why it is dead, on one line.
    fn why(&self) -> String {
        let reason = or_dash(self.reason.as_ref());
        match self.detail.as_deref().filter(|detail| !detail.is_empty()) {
            Some(detail) => format!("{reason}: {}", text::payload(detail.as_bytes(), REASON)),
            None => reason,
        }
    }
}

fn or_dash(text: Option<&String>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text::printable(text.as_bytes()))
}

impl Row for Line {
    const COLUMNS: &'static [&'static str] = &["LETTER", "BURIED", "GROUP", "ATTEMPTS", "BY", "ID", "REASON"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.letter.clone(),
            self.buried.clone(),
            or_dash(self.group.as_ref()),
            self.attempts.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            or_dash(self.by.as_ref()),
            self.shown.clone(),
            self.why(),
        ]
    }
}

/// A letter with all its fields.
#[derive(Serialize)]
pub(crate) struct Whole {
    #[serde(flatten)]
    line: Line,
    queue: String,
    key: Option<String>,
    generation: Option<u64>,
    due: Option<String>,
    due_ms: Option<u64>,
    fired: Option<String>,
    source: Option<String>,
    entry: Option<String>,
    #[serde(flatten)]
    watched: Watched,
    encoding: Option<String>,
    flaw: Option<String>,
    trace: Option<String>,
    bytes: usize,
    #[serde(flatten)]
    payload: Option<PayloadText>,
    /// Fields that this version does not know.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    other: BTreeMap<String, String>,
    #[serde(skip)]
    whole_id: Option<String>,
    #[serde(skip)]
    shown: String,
}

impl Whole {
    pub(crate) fn new(queue: &QueueName, partition: u32, entry: &RawEntry) -> Self {
        let id = entry.field("id").and_then(|id| TimerId::of_key(id.clone()).ok());
        let generation = number(entry, "gen");
        let payload = entry.field("payload");
        let is_other = |name: &[u8]| !KNOWN.iter().any(|known| known.as_bytes() == name);
        let lossy_pair =
            |name: &[u8], value: &[u8]| [name, value].map(|b| String::from_utf8_lossy(b).into_owned());
        let other = entry.fields.iter().filter(|(name, _)| is_other(name));
        Self {
            line: Line::new(partition, entry),
            queue: queue.to_string(),
            key: id.zip(generation).map(|(id, generation)| idempotency_key(queue, &id, generation)),
            generation,
            due: number(entry, "due").map(text::time),
            due_ms: number(entry, "due"),
            fired: number(entry, "fired").map(text::time),
            source: lossy(entry, "src"),
            entry: lossy(entry, "entry"),
            watched: entry.into(),
            encoding: lossy(entry, "enc"),
            flaw: lossy(entry, "flaw"),
            trace: lossy(entry, "trace"),
            bytes: payload.map_or(0, |payload| payload.len()),
            payload: payload.map(|payload| PayloadText::new(payload)),
            other: other.map(|(name, value)| lossy_pair(name, value).into()).collect(),
            whole_id: entry.field("id").map(|id| text::printable(id)),
            shown: payload.map_or_else(String::new, |payload| text::payload(payload, usize::MAX)),
        }
    }

    /// For people: a line for each field that is there, the payload last.
    pub(crate) fn lines(&self, now_ms: u64) -> Vec<String> {
        let attempts = self.line.attempts.map(|n| n.to_string());
        let buried = format!("{} ({})", self.line.buried, text::distance(self.line.buried_ms, now_ms));
        let fields = [
            ("letter", Some(&self.line.letter)),
            ("key", self.key.as_ref()),
            ("group", self.line.group.as_ref()),
            ("reason", self.line.reason.as_ref()),
            ("detail", self.line.detail.as_ref().filter(|detail| !detail.is_empty())),
            ("attempts", attempts.as_ref()),
            ("buried", Some(&buried)),
            ("by", self.line.by.as_ref()),
            ("due", self.due.as_ref()),
            ("fired", self.fired.as_ref()),
            ("source", self.source.as_ref()),
            ("entry", self.entry.as_ref()),
            ("flaw", self.flaw.as_ref()),
            ("trace", self.trace.as_ref()),
        ];
        let watched = self.watched.lines();
        let known = watched.iter().map(|(name, value)| (*name, Some(value)));
        let other = self.other.iter().map(|(name, value)| (name.as_str(), Some(value)));
        let mut lines: Vec<String> = self.whole_id.iter().map(|id| format!("id       {id}")).collect();
        for (name, value) in fields.into_iter().chain(known).chain(other) {
            lines.extend(value.into_iter().flat_map(|value| text::field::<8>(name, value)));
        }
        let encoding = self.encoding.as_deref().unwrap_or("raw");
        lines.push(format!("payload  {} bytes, {}", self.bytes, text::printable(encoding.as_bytes())));
        lines.extend(Some(self.shown.clone()).filter(|shown| !shown.is_empty()));
        lines
    }
}

pub(crate) fn number(entry: &RawEntry, name: &str) -> Option<u64> {
    std::str::from_utf8(entry.field(name)?).ok()?.parse().ok()
}

pub(crate) fn lossy(entry: &RawEntry, name: &str) -> Option<String> {
    entry.field(name).map(|value| String::from_utf8_lossy(value).into_owned())
}
