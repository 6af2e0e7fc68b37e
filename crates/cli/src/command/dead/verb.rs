//! Does something to chosen dead letters: replay or purge.

use std::collections::{BTreeMap, BTreeSet};

use overdue_protocol::call::{PAGE_BYTES, Replay, Replayed};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Partition, RawEntry};
use serde::Serialize;

use super::filter::Letters;
use super::rehearsal::Rehearsal;
use crate::args::dead::{ChooseDead, EFFECTS_INCOMPLETE};
use crate::args::value::Letter;
use crate::command::place::Place;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::stage::progress::Progress;

/// Letters in one call: a replay of 256 held a busy Redis up for 14 ms.
const LETTERS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Replay,
    Purge,
}

/// What became of one letter, or would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Replayed,
    Purged,
    WouldReplay,
    WouldPurge,
    Absent,
    Malformed,
    NoGroup,
    EffectsIncomplete,
}

impl Outcome {
    /// Why nothing is done, or `None`.
    fn problem(self) -> Option<&'static str> {
        match self {
            Self::Replayed | Self::Purged | Self::WouldReplay | Self::WouldPurge => None,
            Self::Absent => Some("it is not there"),
            Self::Malformed => Some(
                "it lacks id, generation, due or payload: look at it with `overdue dead show`, then purge it",
            ),
            Self::NoGroup => Some("its group is gone: start a consumer of that group, then replay it"),
            Self::EffectsIncomplete => Some(
                "some of its effects were written and would be written again: name it, or give --reason effects_incomplete",
            ),
        }
    }
}

#[derive(Serialize)]
struct Line {
    letter: String,
    result: Outcome,
}

/// Does it to all that were chosen, says what became of them, and fails with exit code 1 if one was left.
pub(super) async fn run(
    args: &ChooseDead,
    verb: Verb,
    place: &Place,
    output: &mut Output,
) -> Result<(), Failure> {
    let rehearsal = args.dry_run.then(Rehearsal::default);
    let progress = Progress::of_a_command(output);
    let mut work = Work { place, verb, output, rehearsal, progress, done: 0, left: BTreeMap::new() };
    if args.letters.is_empty() {
        let mut letters = Letters::open(place, &args.filter).await?;
        while let Some((partition, page)) = letters.next().await? {
            let asked_for = verb == Verb::Purge || args.filter.reason.is_some();
            let is_safe = |letter: &RawEntry| {
                asked_for || letter.field("reason").is_none_or(|reason| reason != EFFECTS_INCOMPLETE)
            };
            let (safe, unsafe_): (Vec<_>, Vec<_>) = page.into_iter().partition(is_safe);
            work.carry(&partition, &safe).await?;
            unsafe_
                .iter()
                .try_for_each(|letter| work.note(&partition, letter, Outcome::EffectsIncomplete))?;
        }
    } else {
        work.named(&args.letters).await?;
    }
    work.finish(args)
}

struct Work<'a> {
    place: &'a Place,
    verb: Verb,
    output: &'a mut Output,
    /// Only look.
    rehearsal: Option<Rehearsal>,
    progress: Progress,
    done: u64,
    left: BTreeMap<Outcome, u64>,
}

impl Work<'_> {
    /// Does it to named letters; notes those that are not there.
    async fn named(&mut self, letters: &[Letter]) -> Result<(), Failure> {
        let partitions = self.place.partitions();
        for letter in BTreeSet::from_iter(letters) {
            let found = match partitions.get(letter.partition as usize) {
                Some(partition) => {
                    self.place.store.entry(&partition.dead(), letter.entry).await?.zip(Some(partition))
                }
                None => None,
            };
            match found {
                Some((entry, partition)) => self.carry(partition, &[entry]).await?,
                None => self.count(*letter, Outcome::Absent)?,
            }
        }
        Ok(())
    }

    /// Does it, in calls of at most 64 letters and 1 MiB of payload.
    async fn carry(&mut self, partition: &Partition, letters: &[RawEntry]) -> Result<(), Failure> {
        for batch in batches(letters) {
            let ids: Vec<EntryId> = batch.iter().map(|letter| letter.id).collect();
            let results = match (&mut self.rehearsal, self.verb) {
                (Some(rehearsal), verb) => rehearsal.outcomes(verb, self.place, partition, batch).await?,
                (None, Verb::Replay) => self.replay(partition, &ids).await?,
                (None, Verb::Purge) => {
                    self.place.store.delete_dead(partition, &ids).await?;
                    vec![Outcome::Purged; ids.len()]
                }
            };
            for (letter, result) in batch.iter().zip(results) {
                self.note(partition, letter, result)?;
            }
            // A rehearsal shows each of them.
            if self.rehearsal.is_none() {
                self.progress.is_at(&format!("{} letters done", self.done));
            }
        }
        Ok(())
    }

    async fn replay(&self, partition: &Partition, ids: &[EntryId]) -> Result<Vec<Outcome>, Failure> {
        let call = Replay { partition: partition.clone(), letters: ids.to_vec() };
        let words = self.place.store.run(&call).await?;
        let result = |word| match word {
            Replayed::Ok => Outcome::Replayed,
            Replayed::Absent => Outcome::Absent,
            Replayed::Bad => Outcome::Malformed,
            Replayed::NoGroup => Outcome::NoGroup,
        };
        Ok(words.into_iter().map(result).collect())
    }

    fn note(&mut self, partition: &Partition, letter: &RawEntry, result: Outcome) -> Result<(), Failure> {
        let number = partition.number();
        match &mut self.rehearsal {
            Some(rehearsal) => {
                rehearsal.note(number, letter, result, self.output)?;
                self.tally(result);
                Ok(())
            }
            None => self.count(Letter { partition: number, entry: letter.id }, result),
        }
    }

    fn tally(&mut self, result: Outcome) {
        match result.problem() {
            None => self.done += 1,
            Some(_) => *self.left.entry(result).or_insert(0) += 1,
        }
    }

    fn count(&mut self, letter: Letter, result: Outcome) -> Result<(), Failure> {
        self.tally(result);
        self.output.object(&Line { letter: letter.to_string(), result })?;
        match result.problem() {
            None => Ok(()),
            Some(problem) => {
                self.progress.end();
                self.output.say(format!("{letter}: {problem}"))
            }
        }
    }

    fn finish(self, args: &ChooseDead) -> Result<(), Failure> {
        self.progress.end();
        let left: u64 = self.left.values().sum();
        let (done, base) = match self.verb {
            Verb::Replay => ("replayed", "replay"),
            Verb::Purge => ("purged", "purge"),
        };
        let Some(rehearsal) = self.rehearsal else {
            self.output.say(format!("{done} {} dead letters of {}", self.done, args.queue))?;
            let problem = format!("{left} of {} dead letters were not {done}", left + self.done);
            return if left == 0 { Ok(()) } else { Err(Failure::new(Exit::NotThere, problem)) };
        };
        rehearsal.finish(self.output)?;
        self.output
            .say(format!("would {base} {} dead letters of {}; nothing was done", self.done, args.queue))?;
        for (outcome, n) in &self.left {
            self.output.say(format!("would leave {n}: {}", outcome.problem().unwrap_or_default()))?;
        }
        let problem = format!("{left} of {} dead letters would not be {done}", left + self.done);
        if left == 0 { Ok(()) } else { Err(Failure::new(Exit::NotThere, problem)) }
    }
}

/// Cuts letters into calls that a script can take.
fn batches(letters: &[RawEntry]) -> Vec<&[RawEntry]> {
    let mut batches = Vec::new();
    let mut rest = letters;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |letter: &&RawEntry| {
            bytes += letter.size();
            bytes <= PAGE_BYTES as usize
        };
        let count = rest.iter().take(LETTERS).take_while(fits).count().max(1);
        let (batch, behind) = rest.split_at(count);
        batches.push(batch);
        rest = behind;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_holds_64_letters_and_1_mib_but_always_one() {
        let letter = |size: &usize| RawEntry {
            id: EntryId::ZERO,
            fields: vec![("payload".into(), vec![0; *size].into())],
        };
        let sizes = |sizes: &[usize]| {
            let letters: Vec<_> = sizes.iter().map(letter).collect();
            batches(&letters).iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[10; 100]), [64, 36]);
        assert_eq!(sizes(&[600_000, 600_000, 3_000_000, 1, 1]), [1, 1, 1, 2]);
    }
}
