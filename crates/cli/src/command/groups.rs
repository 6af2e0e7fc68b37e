//! `overdue groups`: lists or drops groups.

mod count;
mod row;

use overdue_protocol::GroupName;
use overdue_protocol::call::Drop;
use overdue_store::Store;
use serde::Serialize;

use self::count::groups;
pub(crate) use self::count::waiting_retries;
use self::row::Group;
use super::place::{self, Place};
use crate::args::queues::{DropGroup, Groups, ListGroups};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;

#[derive(Serialize)]
struct Dropped<'a> {
    queue: &'a str,
    group: &'a str,
    dropped: bool,
    #[serde(skip_serializing_if = "is_false")]
    dry_run: bool,
    undelivered: Option<u64>,
    pending: u64,
    retries: u64,
    /// Consumers that were seen lately: they create it again.
    live: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Runs the command.
pub(crate) async fn run(args: &Groups, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    match args {
        Groups::List(args) => list(args, settings, output).await,
        Groups::Drop(args) => drop_group(args, settings, output).await,
    }
}

async fn list(args: &ListGroups, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let places = match &args.queue {
        Some(queue) => vec![Place::open(settings, queue).await?],
        None => every_queue(&place::connect(settings).await?).await?,
    };
    let mut table = output.table();
    let mut found = false;
    for place in places {
        let groups = groups(&place).await?;
        found |= !groups.is_empty();
        table.page(&groups)?;
    }
    if !found {
        output.say("no groups: `overdue consume` creates the one it reads for")?;
    }
    Ok(())
}

async fn every_queue(store: &Store) -> Result<Vec<Place>, Failure> {
    let place = |(queue, info)| Place { store: store.clone(), queue, info };
    Ok(store.queues().await?.into_iter().map(place).collect())
}

async fn drop_group(args: &DropGroup, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = Place::open(settings, &args.queue).await?;
    let (queue, group) = (&args.queue, &args.group);
    let known = groups(&place).await?.into_iter().find(|known| known.group == group.as_str());
    let is_known = known.is_some();
    let known = known.unwrap_or_else(|| Group::new(queue, group.as_str()));
    let (mut existed, mut retries) = (is_known, known.retries);
    if !args.dry_run {
        (existed, retries) = drop_everywhere(&place, group).await?;
        // A group that is gone has books that went.
        existed |= is_known;
    }
    output.object(&Dropped {
        queue: queue.as_str(),
        group: group.as_str(),
        dropped: existed && !args.dry_run,
        dry_run: args.dry_run,
        undelivered: known.undelivered,
        pending: known.pending,
        retries,
        live: known.live,
    })?;
    if !existed && retries == 0 {
        let problem =
            format!("there is no group {group} in queue {queue}: see `overdue groups list {queue}`");
        return Err(Failure::new(Exit::NotThere, problem));
    }
    let undelivered = known.undelivered.map_or_else(|| "an unknown number".to_owned(), |n| n.to_string());
    let what = format!(
        "{undelivered} undelivered, {} pending, {retries} waiting retries, and its part of the books",
        known.pending
    );
    match args.dry_run {
        true => output.say(format!("would drop group {group} of {queue}: {what}; nothing was done"))?,
        false => output.say(format!("dropped group {group} of {queue}: {what}"))?,
    }
    match known.live {
        0 => Ok(()),
        n => output.say(format!(
            "{n} of its consumers were seen in the last 15 s: if they run, they create it again"
        )),
    }
}

/// Answers whether it was there, and how many retries went with it.
async fn drop_everywhere(place: &Place, group: &GroupName) -> Result<(bool, u64), Failure> {
    let (mut existed, mut retries) = (false, 0);
    for partition in place.partitions() {
        let mut call = Drop { partition, group: group.clone(), cursor: None };
        loop {
            let dropped = place.store.run(&call).await?;
            existed |= dropped.existed;
            retries += dropped.retries;
            call.cursor = dropped.cursor;
            if call.cursor.is_none() {
                break;
            }
        }
    }
    Ok((existed, retries))
}
