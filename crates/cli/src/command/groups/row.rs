//! A group of a queue, as the list shows it.

use overdue_protocol::QueueName;
use serde::Serialize;

use crate::output::{Row, text};

#[derive(Serialize)]
pub(super) struct Group {
    pub(super) queue: String,
    pub(super) group: String,
    pub(super) kind: Kind,
    /// How many consumers were seen lately.
    pub(super) live: u64,
    /// How many there are, with those that left and were not retired yet.
    pub(super) consumers: u64,
    /// All that waits for it, by its books; without books, what Redis knows.
    pub(super) backlog: Option<u64>,
    /// `None` = Redis does not know: it is older than 7, or entries in between were deleted.
    pub(super) undelivered: Option<u64>,
    pub(super) pending: u64,
    pub(super) retries: u64,
    /// How long ago the oldest entry fired that it has not finished.
    pub(super) oldest_age_ms: Option<u64>,
}

/// Who reads for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Consumers of ours.
    Overdue,
    /// Consumers that only acknowledge: a reconciler does the rest.
    Plain,
    /// Nobody of ours joined it: it has no books.
    Foreign,
    /// It has books, but a stream has no such group: somebody removed it, or the stream.
    Gone,
}

impl Row for Group {
    const COLUMNS: &'static [&'static str] =
        &["QUEUE", "GROUP", "KIND", "LIVE", "BACKLOG", "UNDELIVERED", "PENDING", "RETRIES", "OLDEST"];

    fn cells(&self) -> Vec<String> {
        let or_unknown = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let kind = match self.kind {
            Kind::Overdue => "overdue",
            Kind::Plain => "plain",
            Kind::Foreign => "foreign",
            Kind::Gone => "gone",
        };
        vec![
            self.queue.clone(),
            text::printable(self.group.as_bytes()),
            kind.to_owned(),
            self.live.to_string(),
            or_unknown(self.backlog),
            or_unknown(self.undelivered),
            self.pending.to_string(),
            self.retries.to_string(),
            self.oldest_age_ms.map_or_else(|| "-".to_owned(), text::span),
        ]
    }
}

impl Group {
    /// Of which nothing is known yet.
    pub(super) fn new(queue: &QueueName, name: &str) -> Self {
        Self {
            queue: queue.to_string(),
            group: name.to_owned(),
            kind: Kind::Foreign,
            live: 0,
            consumers: 0,
            backlog: None,
            undelivered: Some(0),
            pending: 0,
            retries: 0,
            oldest_age_ms: None,
        }
    }
}
