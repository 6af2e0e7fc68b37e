//! Does something to chosen dead letters: replay or purge.

use overdue_protocol::Partition;
use overdue_protocol::call::{PAGE, PAGE_BYTES, Replay, Replayed};
use overdue_protocol::entry::EntryId;
use serde::Serialize;

use super::letter;
use crate::args::dead::ChooseDead;
use crate::args::value::Letter;
use crate::command::pages::Pages;
use crate::command::place::Place;
use crate::exit::{Exit, Failure};
use crate::output::Output;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Replay,
    Purge,
}

/// What became of one letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Replayed,
    Purged,
    Absent,
    Malformed,
    NoGroup,
}

impl Outcome {
    /// Why nothing was done, or `None`.
    fn problem(self) -> Option<&'static str> {
        match self {
            Self::Replayed | Self::Purged => None,
            Self::Absent => Some("it is not there"),
            Self::Malformed => Some(
                "it lacks id, generation, due or payload: look at it with `overdue dead show`, then purge it",
            ),
            Self::NoGroup => Some("its group is gone: start a consumer of that group, then replay it"),
        }
    }
}

#[derive(Serialize)]
struct Line {
    letter: String,
    result: Outcome,
}

/// A letter, and how many bytes of payload it has.
type Sized = (EntryId, usize);

/// Does it to all that were chosen, says what became of them, and fails with exit code 1 if one was left.
pub(super) async fn run(
    args: &ChooseDead,
    verb: Verb,
    place: &Place,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut work = Work { place, verb, output, done: 0, left: 0 };
    if args.all {
        for partition in place.partitions() {
            let mut pages = Pages::open(&place.store, partition.dead()).await?;
            loop {
                let page = pages.next().await?;
                if page.is_empty() {
                    break;
                }
                let wanted = page.iter().filter(|entry| letter::is_of(entry, args.group.as_ref()));
                work.carry(&partition, &wanted.map(|entry| (entry.id, entry.size())).collect::<Vec<_>>())
                    .await?;
            }
        }
    } else {
        for (number, partition) in (0..).zip(place.partitions()) {
            let letters = args.letters.iter().filter(|letter| letter.partition == number);
            let found = work.find(&partition, letters).await?;
            work.carry(&partition, &found).await?;
        }
        let beyond = args.letters.iter().filter(|letter| letter.partition >= place.info.partitions);
        beyond.into_iter().try_for_each(|letter| work.note(*letter, Outcome::Absent))?;
    }
    work.finish(args)
}

struct Work<'a> {
    place: &'a Place,
    verb: Verb,
    output: &'a mut Output,
    done: u64,
    left: u64,
}

impl Work<'_> {
    /// Looks up named letters; notes those that are not there.
    async fn find(
        &mut self,
        partition: &Partition,
        letters: impl Iterator<Item = &Letter>,
    ) -> Result<Vec<Sized>, Failure> {
        let mut found = Vec::new();
        for letter in letters {
            match self.place.store.entry(&partition.dead(), letter.entry).await? {
                Some(entry) => found.push((entry.id, entry.size())),
                None => self.note(*letter, Outcome::Absent)?,
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Does it, in calls of at most 256 letters and 1 MiB of payload.
    async fn carry(&mut self, partition: &Partition, letters: &[Sized]) -> Result<(), Failure> {
        for batch in batches(letters) {
            let ids: Vec<EntryId> = batch.iter().map(|(id, _)| *id).collect();
            let results = match self.verb {
                Verb::Replay => self.replay(partition, &ids).await?,
                Verb::Purge => {
                    self.place.store.delete_dead(partition, &ids).await?;
                    vec![Outcome::Purged; ids.len()]
                }
            };
            for (entry, result) in ids.into_iter().zip(results) {
                self.note(Letter { partition: partition.number(), entry }, result)?;
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

    fn note(&mut self, letter: Letter, result: Outcome) -> Result<(), Failure> {
        self.output.object(&Line { letter: letter.to_string(), result })?;
        match result.problem() {
            None => {
                self.done += 1;
                Ok(())
            }
            Some(problem) => {
                self.left += 1;
                self.output.say(format!("{letter}: {problem}"))
            }
        }
    }

    fn finish(self, args: &ChooseDead) -> Result<(), Failure> {
        let what = match self.verb {
            Verb::Replay => "replayed",
            Verb::Purge => "purged",
        };
        self.output.say(format!("{what} {} dead letters of {}", self.done, args.queue))?;
        if self.left == 0 {
            return Ok(());
        }
        let problem = format!("{} of {} dead letters were not {what}", self.left, self.left + self.done);
        Err(Failure::new(Exit::NotThere, problem))
    }
}

/// Cuts letters into calls that a script can take.
fn batches(letters: &[Sized]) -> Vec<&[Sized]> {
    let mut batches = Vec::new();
    let mut rest = letters;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |(_, size): &&Sized| {
            bytes += size;
            bytes <= PAGE_BYTES as usize
        };
        let count = rest.iter().take(PAGE as usize).take_while(fits).count().max(1);
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
    fn a_call_holds_256_letters_and_1_mib_but_always_one() {
        let sizes = |sizes: &[usize]| {
            let letters: Vec<Sized> = sizes.iter().map(|size| (EntryId::ZERO, *size)).collect();
            batches(&letters).iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[10; 300]), [256, 44]);
        assert_eq!(sizes(&[600_000, 600_000, 3_000_000, 1, 1]), [1, 1, 1, 2]);
    }
}
