//! A dead letter on paper.

use bytes::Bytes;
use overdue_protocol::entry::idempotency_key;
use overdue_protocol::{GroupName, QueueName, RawEntry, TimerId};
use serde::Serialize;

use crate::args::value::Letter;
use crate::output::Row;
use crate::output::text::{self, IdText, PayloadText};
use crate::output::watched::Watched;

/// How many characters of a reason a list shows.
const REASON: usize = 100;

/// Whether a letter is of `group`; every letter is of `None`.
pub(super) fn is_of(letter: &RawEntry, group: Option<&GroupName>) -> bool {
    group.is_none_or(|group| letter.field("group").is_some_and(|name| name == group.as_str()))
}

/// A letter in a list. Any field may be missing: malformed entries are dead letters.
#[derive(Serialize)]
pub(super) struct Line {
    letter: String,
    buried: Option<String>,
    group: Option<String>,
    attempt: Option<u64>,
    reason: Option<String>,
    detail: Option<String>,
    #[serde(flatten)]
    id: Option<IdText>,
    #[serde(skip)]
    shown: String,
}

impl Line {
    pub(super) fn new(partition: u32, entry: &RawEntry) -> Self {
        let id = entry.field("id");
        Self {
            letter: Letter { partition, entry: entry.id }.to_string(),
            buried: number(entry, "buried").map(text::time),
            group: lossy(entry, "group"),
            attempt: entry.field("attempt").map_or(Some(1), |_| number(entry, "attempt")),
            reason: lossy(entry, "reason"),
            detail: lossy(entry, "detail"),
            id: id.map(|id| IdText::new(id)),
            shown: id.map_or_else(|| "-".to_owned(), |id| text::id(id)),
        }
    }
}

impl Row for Line {
    const COLUMNS: &'static [&'static str] = &["LETTER", "BURIED", "GROUP", "ATTEMPT", "ID", "REASON"];

    fn cells(&self) -> Vec<String> {
        let or_dash = |text: &Option<String>| {
            text.clone().map_or_else(|| "-".to_owned(), |t| text::printable(t.as_bytes()))
        };
        let attempt = self.attempt.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let detail = self.detail.as_deref().filter(|detail| !detail.is_empty());
        let reason = match detail {
            Some(detail) => {
                format!("{}: {}", or_dash(&self.reason), text::payload(detail.as_bytes(), REASON))
            }
            None => or_dash(&self.reason),
        };
        vec![
            self.letter.clone(),
            or_dash(&self.buried),
            or_dash(&self.group),
            attempt,
            self.shown.clone(),
            reason,
        ]
    }
}

/// A letter with all its fields.
#[derive(Serialize)]
pub(super) struct Whole {
    #[serde(flatten)]
    line: Line,
    queue: String,
    key: Option<String>,
    generation: Option<u64>,
    due: Option<String>,
    due_ms: Option<u64>,
    fired: Option<String>,
    source: Option<String>,
    #[serde(flatten)]
    watched: Watched,
    encoding: Option<String>,
    by: Option<String>,
    flaw: Option<String>,
    #[serde(flatten)]
    payload: Option<PayloadText>,
    #[serde(skip)]
    whole_id: Option<String>,
    #[serde(skip)]
    bytes: Bytes,
}

impl Whole {
    pub(super) fn new(queue: &QueueName, partition: u32, entry: &RawEntry) -> Self {
        let id = entry.field("id").and_then(|id| TimerId::of_key(id.clone()).ok());
        let whole_id = entry.field("id").map(|id| text::printable(id));
        let generation = number(entry, "gen");
        let payload = entry.field("payload");
        Self {
            line: Line::new(partition, entry),
            queue: queue.to_string(),
            key: id.zip(generation).map(|(id, generation)| idempotency_key(queue, &id, generation)),
            generation,
            due: number(entry, "due").map(text::time),
            due_ms: number(entry, "due"),
            fired: number(entry, "fired").map(text::time),
            source: lossy(entry, "src"),
            watched: entry.into(),
            encoding: lossy(entry, "enc"),
            by: lossy(entry, "by"),
            flaw: lossy(entry, "flaw"),
            payload: payload.map(|payload| PayloadText::new(payload)),
            whole_id,
            bytes: payload.cloned().unwrap_or_default(),
        }
    }

    /// For people: a line for each field that is there, the payload last.
    pub(super) fn lines(&self) -> Vec<String> {
        let attempt = self.line.attempt.map(|n| n.to_string());
        let fields = [
            ("letter", Some(&self.line.letter)),
            ("id", self.whole_id.as_ref()),
            ("key", self.key.as_ref()),
            ("group", self.line.group.as_ref()),
            ("reason", self.line.reason.as_ref()),
            ("detail", self.line.detail.as_ref().filter(|detail| !detail.is_empty())),
            ("buried", self.line.buried.as_ref()),
            ("by", self.by.as_ref()),
            ("attempt", attempt.as_ref()),
            ("due", self.due.as_ref()),
            ("fired", self.fired.as_ref()),
            ("source", self.source.as_ref()),
            ("flaw", self.flaw.as_ref()),
        ];
        let shown = |name: &str, value: &str| match name {
            "id" => value.to_owned(),
            _ => text::printable(value.as_bytes()),
        };
        let line =
            |(name, value): (&str, Option<&String>)| Some(format!("{name:<8} {}", shown(name, value?)));
        let watched = self.watched.lines();
        let known = watched.iter().map(|(name, value)| (*name, Some(value)));
        let mut lines: Vec<String> = fields.into_iter().chain(known).filter_map(line).collect();
        let encoding = self.encoding.as_deref().unwrap_or("raw");
        lines.push(format!("payload  {} bytes, {}", self.bytes.len(), text::printable(encoding.as_bytes())));
        if !self.bytes.is_empty() {
            lines.push(text::payload(&self.bytes, usize::MAX));
        }
        lines
    }
}

fn number(entry: &RawEntry, name: &str) -> Option<u64> {
    std::str::from_utf8(entry.field(name)?).ok()?.parse().ok()
}

fn lossy(entry: &RawEntry, name: &str) -> Option<String> {
    entry.field(name).map(|value| String::from_utf8_lossy(value).into_owned())
}
