//! `overdue discard`: throws away the waiting retries and the fired, unhandled timeouts of an id.

use overdue_protocol::call::{Discard as Call, DiscardItem, Discarded};
use overdue_protocol::{GroupName, Partition};
use serde::Serialize;

use super::pages::Pages;
use super::place::Place;
use super::retries::{Retries, Retry};
use crate::args::timers::Discard;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::output::text::{self, IdText};
use crate::settings::Settings;

/// The most items of one call.
const ITEMS: usize = 256;

#[derive(Serialize)]
struct Taken {
    queue: String,
    #[serde(flatten)]
    id: IdText,
    retries: u64,
    timeouts: u64,
    /// Timeouts that stay: other groups need the entry, and the asked-for one has not read it.
    unread: u64,
}

/// Runs the command.
pub(crate) async fn run(args: &Discard, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = Place::open(settings, &args.queue).await?;
    let partition = place.partition_of(&args.id);
    // A retry that is swept meanwhile is in the stream when that is read.
    let retries = waiting(args, &place, &partition).await?;
    let retries = discard(&place, &partition, retries).await?;
    let timeouts = fired(args, &place, &partition).await?;
    let taken = Taken {
        queue: args.queue.to_string(),
        id: IdText::new(args.id.as_bytes()),
        retries: count(&retries, Discarded::Ok),
        timeouts: count(&timeouts, Discarded::Ok),
        unread: count(&timeouts, Discarded::Unread),
    };
    output.object(&taken)?;
    report(args, &taken, output)
}

fn count(words: &[Discarded], word: Discarded) -> u64 {
    words.iter().filter(|one| **one == word).count() as u64
}

fn report(args: &Discard, taken: &Taken, output: &mut Output) -> Result<(), Failure> {
    let (queue, id) = (&args.queue, text::printable(args.id.as_bytes()));
    let whose = args.group.as_ref().map(|group| format!(" of group {group}")).unwrap_or_default();
    let stay = match taken.unread {
        0 => String::new(),
        n => format!(
            "; {n} stay: other groups need the entry, and it can be discarded for a group that has read it"
        ),
    };
    if taken.retries + taken.timeouts == 0 {
        let problem = format!(
            "nothing of {id} in {queue} to discard{whose}: no retry waits, nothing fired is unhandled{stay}"
        );
        return Err(Failure::new(Exit::NotThere, problem));
    }
    output.say(format!(
        "discarded {} waiting retries and {} fired timeouts of {id}{whose}{stay}",
        taken.retries, taken.timeouts
    ))
}

/// The waiting retries of the id.
async fn waiting(args: &Discard, place: &Place, partition: &Partition) -> Result<Vec<DiscardItem>, Failure> {
    let is_asked_for = |retry: &Retry| {
        retry.of.id == args.id && args.group.as_ref().is_none_or(|group| *group == retry.of.group)
    };
    let mut found = Vec::new();
    let mut retries = Retries::of(&place.store, partition);
    while let Some(page) = retries.next().await? {
        found.extend(page.into_iter().filter(is_asked_for).map(|retry| DiscardItem::Retry(retry.member)));
    }
    Ok(found)
}

/// Takes out, page by page, what stands in the stream with the id.
async fn fired(args: &Discard, place: &Place, partition: &Partition) -> Result<Vec<Discarded>, Failure> {
    let groups = match &args.group {
        Some(group) => vec![group.clone()],
        None => {
            let groups = place.store.groups(partition).await?;
            groups.iter().filter_map(|group| GroupName::new(&group.name).ok()).collect()
        }
    };
    let mut words = Vec::new();
    let mut pages = Pages::open(&place.store, partition.stream()).await?;
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            return Ok(words);
        }
        let entries = page.iter().filter(|entry| entry.field("id") == Some(args.id.as_bytes()));
        let for_each_group = |entry: overdue_protocol::entry::EntryId| {
            groups.iter().map(move |group| DiscardItem::Entry(entry, group.clone()))
        };
        let items = entries.flat_map(|entry| for_each_group(entry.id)).collect();
        words.extend(discard(place, partition, items).await?);
    }
}

async fn discard(
    place: &Place,
    partition: &Partition,
    items: Vec<DiscardItem>,
) -> Result<Vec<Discarded>, Failure> {
    let mut words = Vec::new();
    for items in items.chunks(ITEMS) {
        let call = Call { partition: partition.clone(), items: items.to_vec() };
        words.extend(place.store.run(&call).await?);
    }
    Ok(words)
}
