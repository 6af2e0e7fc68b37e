//! What a replay or a purge would do.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use overdue_protocol::{Partition, RawEntry};
use serde::Serialize;

use super::letter::Line;
use super::verb::{Outcome, Verb};
use crate::command::place::Place;
use crate::exit::Failure;
use crate::output::{Output, Row};

/// How many letters people see; machines see all.
const SHOWN: usize = 100;

/// A letter, and what would become of it.
#[derive(Serialize)]
struct Would {
    #[serde(flatten)]
    line: Line,
    result: Outcome,
}

impl Row for Would {
    const COLUMNS: &'static [&'static str] = Line::COLUMNS;

    fn cells(&self) -> Vec<String> {
        self.line.cells()
    }
}

/// Looks at letters as the script would.
#[derive(Default)]
pub(super) struct Rehearsal {
    /// The groups of each partition met.
    groups: BTreeMap<u32, BTreeSet<String>>,
    /// The first of them, for people.
    rows: Vec<Would>,
    unseen: usize,
}

impl Rehearsal {
    /// What would become of each.
    pub(super) async fn outcomes(
        &mut self,
        verb: Verb,
        place: &Place,
        partition: &Partition,
        letters: &[RawEntry],
    ) -> Result<Vec<Outcome>, Failure> {
        if verb == Verb::Purge {
            return Ok(vec![Outcome::WouldPurge; letters.len()]);
        }
        let groups = match self.groups.entry(partition.number()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let groups = place.store.groups(partition).await?;
                unknown.insert(groups.into_iter().map(|group| group.name).collect())
            }
        };
        Ok(letters.iter().map(|letter| would_replay(letter, groups)).collect())
    }

    /// Writes one down: for machines now, for people at the end.
    pub(super) fn note(
        &mut self,
        partition: u32,
        letter: &RawEntry,
        result: Outcome,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if output.is_json() {
            return output.object(&Would { line: Line::new(partition, letter), result });
        }
        match self.rows.len() {
            SHOWN => self.unseen += 1,
            _ => self.rows.push(Would { line: Line::new(partition, letter), result }),
        }
        Ok(())
    }

    /// Shows them to people.
    pub(super) fn finish(self, output: &mut Output) -> Result<(), Failure> {
        output.table().page(&self.rows)?;
        if self.unseen > 0 {
            output.say(format!("... and {} more", self.unseen))?;
        }
        Ok(())
    }
}

fn would_replay(letter: &RawEntry, groups: &BTreeSet<String>) -> Outcome {
    let whole = ["id", "gen", "due", "payload"].iter().all(|name| letter.field(name).is_some());
    let group = letter.field("group").and_then(|group| std::str::from_utf8(group).ok());
    match group {
        _ if !whole => Outcome::Malformed,
        Some(group) if groups.contains(group) => Outcome::WouldReplay,
        _ => Outcome::NoGroup,
    }
}
