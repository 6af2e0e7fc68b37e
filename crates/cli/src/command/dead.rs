//! `overdue dead`: lists, shows, replays or deletes dead letters.

mod letter;
mod verb;

use self::letter::{Line, Whole};
use self::verb::Verb;
use super::pages::Pages;
use super::place::Place;
use crate::args::dead::{Dead, ListDead, ShowDead};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command.
pub(crate) async fn run(args: &Dead, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    match args {
        Dead::List(args) => list(args, &Place::open(settings, &args.queue).await?, output).await,
        Dead::Show(args) => show(args, &Place::open(settings, &args.queue).await?, output).await,
        Dead::Replay(args) => {
            verb::run(args, Verb::Replay, &Place::open(settings, &args.queue).await?, output).await
        }
        Dead::Purge(args) => {
            verb::run(args, Verb::Purge, &Place::open(settings, &args.queue).await?, output).await
        }
    }
}

async fn list(args: &ListDead, place: &Place, output: &mut Output) -> Result<(), Failure> {
    let mut left = if args.limit == 0 { u64::MAX } else { args.limit };
    let mut table = output.table();
    let mut found = false;
    for partition in place.partitions() {
        let mut pages = Pages::open(&place.store, partition.dead()).await?;
        while left > 0 {
            let page = pages.next().await?;
            if page.is_empty() {
                break;
            }
            let wanted = page.iter().filter(|entry| letter::is_of(entry, args.group.as_ref()));
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let lines: Vec<_> = wanted.take(most).map(|entry| Line::new(partition.number(), entry)).collect();
            left -= lines.len() as u64;
            found |= !lines.is_empty();
            table.page(&lines)?;
        }
    }
    if !found {
        output.say("no dead letters")?;
    }
    Ok(())
}

async fn show(args: &ShowDead, place: &Place, output: &mut Output) -> Result<(), Failure> {
    let gone =
        || Failure::new(Exit::NotThere, format!("there is no dead letter {} in {}", args.letter, args.queue));
    let partition = place.partitions().into_iter().nth(args.letter.partition as usize).ok_or_else(gone)?;
    let entry = place.store.entry(&partition.dead(), args.letter.entry).await?.ok_or_else(gone)?;
    let whole = Whole::new(&args.queue, partition.number(), &entry);
    output.object(&whole)?;
    whole.lines().into_iter().try_for_each(|line| output.say(line))
}
