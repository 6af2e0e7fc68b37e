//! The rows of a view as texts.

use super::view::{Group, Need, Process, Queue};
use crate::output::text;

/// A row of a list.
pub(super) trait Cells {
    /// The heads of the columns, what matters most first; those that hold numbers begin with a blank.
    const HEADS: &'static [&'static str];

    /// One text for each column.
    fn cells(&self) -> Vec<String>;

    /// How it is painted.
    fn need(&self) -> Need;
}

impl Cells for Queue {
    const HEADS: &'static [&'static str] = &[
        "QUEUE",
        " ARMED",
        " NEXT",
        " OVERDUE",
        " FIRED/S",
        " STREAM",
        " RETRIES",
        " DEAD",
        " LAST DEAD",
        " LATENESS",
    ];

    fn cells(&self) -> Vec<String> {
        let next = self.next_in_ms.map(|ms| match ms {
            0.. => format!("in {}", text::span(ms.unsigned_abs())),
            _ => format!("{} ago", text::span(ms.unsigned_abs())),
        });
        vec![
            if self.paused { format!("{} (paused)", self.queue) } else { self.queue.clone() },
            text::count(self.armed),
            next.unwrap_or_else(none),
            text::count(self.overdue),
            self.fired_per_s.map_or_else(none, per_second),
            text::count(self.stream),
            text::count(self.retries),
            text::count(self.dead),
            self.last_dead_age_ms.map_or_else(none, |age| format!("{} ago", text::span(age))),
            self.lateness_ms.map_or_else(none, text::span),
        ]
    }

    fn need(&self) -> Need {
        self.level
    }
}

impl Cells for Group {
    const HEADS: &'static [&'static str] =
        &["QUEUE", "GROUP", " LIVE", " BACKLOG", " PENDING", " DONE/S", " OLDEST"];

    fn cells(&self) -> Vec<String> {
        let group = text::printable(self.group.as_bytes());
        vec![
            self.queue.clone(),
            if self.gone { format!("{group} (gone)") } else { group },
            text::count(self.live),
            self.backlog.map_or_else(|| "?".to_owned(), text::count),
            text::count(self.pending),
            self.done_per_s.map_or_else(none, per_second),
            self.oldest_age_ms.map_or_else(none, text::span),
        ]
    }

    fn need(&self) -> Need {
        self.level
    }
}

impl Cells for Process {
    const HEADS: &'static [&'static str] = &["ROLE", "HOST", " PID", "VERSION", " UP", "WORKS ON"];

    fn cells(&self) -> Vec<String> {
        let printable = |text: &str| text::printable(text.as_bytes());
        let mut works_on =
            if self.works_on.is_empty() { "every queue".to_owned() } else { self.works_on.join(", ") };
        if !self.trouble.is_empty() {
            works_on += &format!(": {}", self.trouble);
        }
        vec![
            printable(&self.role),
            printable(&self.host),
            self.pid.to_string(),
            printable(&self.version),
            text::span(self.up_ms),
            printable(&works_on),
        ]
    }

    fn need(&self) -> Need {
        self.level
    }
}

fn none() -> String {
    "-".to_owned()
}

/// Few are told exactly, many need no tenths.
fn per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { text::count(rate.round() as u64) }
}
