//! `overdue dead`: lists, shows, replays or deletes dead letters.

mod filter;
pub(crate) mod letter;
mod rehearsal;
mod verb;

use self::filter::Letters;
use self::letter::{Line, Whole};
use self::verb::Verb;
use super::place::Place;
use crate::args::dead::{ChooseDead, Dead, ListDead, ShowDead};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command.
pub(crate) async fn run(args: &Dead, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    match args {
        Dead::List(args) => list(args, &Place::open(settings, &args.queue).await?, output).await,
        Dead::Show(args) => show(args, &Place::open(settings, &args.queue).await?, output).await,
        Dead::Replay(args) => choose(args, Verb::Replay, settings, output).await,
        Dead::Purge(args) => choose(args, Verb::Purge, settings, output).await,
    }
}

async fn choose(
    args: &ChooseDead,
    verb: Verb,
    settings: &Settings,
    output: &mut Output,
) -> Result<(), Failure> {
    if args.chooses_nothing() {
        let problem = format!(
            "which dead letters? Name them as `overdue dead list {}` prints them, or give --all, or a filter: --group, \
             --reason, --id, --before, --after",
            args.queue
        );
        return Err(Failure::new(Exit::Usage, problem));
    }
    verb::run(args, verb, &Place::open(settings, &args.queue).await?, output).await
}

async fn list(args: &ListDead, place: &Place, output: &mut Output) -> Result<(), Failure> {
    let mut left = if args.limit == 0 { u64::MAX } else { args.limit };
    let mut letters = Letters::open(place, &args.filter).await?;
    let mut table = output.table();
    let mut found = false;
    while let Some((partition, page)) = letters.next().await? {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let lines: Vec<_> =
            page.iter().take(most).map(|letter| Line::new(partition.number(), letter)).collect();
        found |= !lines.is_empty();
        left -= lines.len() as u64;
        table.page(&lines)?;
        if left == 0 {
            return output.say(format!("stopped after {}: --limit 0 shows all", args.limit));
        }
    }
    match letters.kept_back {
        _ if found => Ok(()),
        0 => output.say("no dead letters"),
        others => {
            output.say(format!("no dead letter is let through by these filters; {others} others are there"))
        }
    }
}

async fn show(args: &ShowDead, place: &Place, output: &mut Output) -> Result<(), Failure> {
    let gone = || {
        let problem =
            format!("there is no dead letter {} in {}: see `overdue dead list {1}`", args.letter, args.queue);
        Failure::new(Exit::NotThere, problem)
    };
    let partition = place.partitions().into_iter().nth(args.letter.partition as usize).ok_or_else(gone)?;
    let entry = place.store.entry(&partition.dead(), args.letter.entry).await?.ok_or_else(gone)?;
    let whole = Whole::new(&args.queue, partition.number(), &entry);
    output.object(&whole)?;
    if output.is_json() {
        return Ok(());
    }
    whole.lines(place.store.time_ms().await?).into_iter().try_for_each(|line| output.say(line))
}
