//! `overdue groups`: lists or drops groups.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use overdue_protocol::call::Drop;
use overdue_protocol::retry::RetryMember;
use overdue_protocol::{GroupName, Partition, QueueName};
use overdue_store::Store;
use serde::Serialize;

use super::place::{self, PAGE, Place};
use crate::args::queues::{DropGroup, Groups, ListGroups};
use crate::exit::{Exit, Failure};
use crate::output::{Output, Row, text};
use crate::settings::Settings;

#[derive(Serialize)]
struct Group {
    queue: String,
    group: String,
    consumers: u64,
    /// `None` = Redis does not know: it is older than 7, or entries in between were deleted.
    undelivered: Option<u64>,
    pending: u64,
    retries: u64,
}

impl Row for Group {
    const COLUMNS: &'static [&'static str] =
        &["QUEUE", "GROUP", "CONSUMERS", "UNDELIVERED", "PENDING", "RETRIES"];

    fn cells(&self) -> Vec<String> {
        let undelivered = self.undelivered.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let group = text::printable(self.group.as_bytes());
        let (consumers, pending, retries) =
            (self.consumers.to_string(), self.pending.to_string(), self.retries.to_string());
        vec![self.queue.clone(), group, consumers, undelivered, pending, retries]
    }
}

#[derive(Serialize)]
struct Dropped<'a> {
    queue: &'a str,
    group: &'a str,
    dropped: bool,
    retries: u64,
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

/// The groups of a queue, over all its partitions.
async fn groups(place: &Place) -> Result<Vec<Group>, Failure> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut consumers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for partition in place.partitions() {
        let retries = waiting_retries(&place.store, &partition).await?;
        for info in place.store.groups(&partition).await? {
            let new = || new_group(&place.queue, &info.name);
            let group = groups.entry(info.name.clone()).or_insert_with(new);
            group.pending += info.pending;
            group.undelivered = group.undelivered.zip(info.lag).map(|(sum, lag)| sum + lag);
            // Only groups with names like ours can have retries.
            let Ok(name) = GroupName::new(&info.name) else {
                group.consumers = group.consumers.max(info.consumers);
                continue;
            };
            group.retries += retries.get(&name).copied().unwrap_or(0);
            let names =
                place.store.consumers(&partition, &name).await?.into_iter().map(|consumer| consumer.name);
            let all = consumers.entry(info.name).or_default();
            all.extend(names);
            group.consumers = all.len() as u64;
        }
    }
    Ok(groups.into_values().collect())
}

fn new_group(queue: &QueueName, name: &str) -> Group {
    Group {
        queue: queue.to_string(),
        group: name.to_owned(),
        consumers: 0,
        undelivered: Some(0),
        pending: 0,
        retries: 0,
    }
}

/// How many retries wait for each group.
pub(crate) async fn waiting_retries(
    store: &Store,
    partition: &Partition,
) -> Result<BTreeMap<GroupName, u64>, Failure> {
    let mut waiting = BTreeMap::new();
    let mut after: Option<(u64, Bytes)> = None;
    loop {
        let page = store.retry_page(partition, after, None, PAGE).await?;
        for member in page.iter().filter_map(|(member, _)| RetryMember::decode(member)) {
            *waiting.entry(member.group).or_insert(0) += 1;
        }
        after = page.last().map(|(member, due)| (*due, member.clone()));
        if page.len() < PAGE {
            return Ok(waiting);
        }
    }
}

async fn drop_group(args: &DropGroup, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = Place::open(settings, &args.queue).await?;
    let (queue, group) = (&args.queue, &args.group);
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
    output.object(&Dropped { queue: queue.as_str(), group: group.as_str(), dropped: existed, retries })?;
    if !existed && retries == 0 {
        let problem =
            format!("there is no group {group} in queue {queue}: see `overdue groups list {queue}`");
        return Err(Failure::new(Exit::NotThere, problem));
    }
    output.say(format!("dropped group {group} of {queue}; {retries} waiting retries went with it"))
}
