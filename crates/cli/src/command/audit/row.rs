//! The books as tables: each equation on one line.

use super::account::{Group, Timers};
use crate::output::Row;

impl Row for Timers {
    const COLUMNS: &'static [&'static str] =
        &["SCHEDULED", "FOREIGN", "=", "REPLACED", "CANCELLED", "FIRED", "ARMED", "LOST", "TWICE"];

    fn cells(&self) -> Vec<String> {
        let numbers = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>();
        let left = numbers(&[self.scheduled, self.foreign]);
        let right = numbers(&[self.replaced, self.cancelled, self.fired, self.armed]);
        let difference = numbers(&[self.difference.lost, self.difference.twice]);
        [left, vec!["=".to_owned()], right, difference].concat()
    }
}

impl Row for Group {
    const COLUMNS: &'static [&'static str] = &[
        "GROUP",
        "FIRED",
        "WATCHED",
        "-BASE",
        "REPLAYED",
        "=",
        "DONE",
        "BURIED",
        "DISCARDED",
        "WAITING",
        "LIVE",
        "LOST",
        "TWICE",
    ];

    fn cells(&self) -> Vec<String> {
        let numbers = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>();
        let left = numbers(&[self.fired, self.watched, -self.base, self.replayed]);
        let right = numbers(&[self.done, self.buried, self.discarded, self.waiting, self.live]);
        let difference = match self.kept {
            true => numbers(&[self.difference.lost, self.difference.twice]),
            false => vec!["?".to_owned(), "?".to_owned()],
        };
        let plain = if self.plain { " (plain)" } else { "" };
        [vec![format!("{}{plain}", self.group)], left, vec!["=".to_owned()], right, difference].concat()
    }
}
