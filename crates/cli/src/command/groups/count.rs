//! Counts what stands before each group of a queue.

use std::collections::{BTreeMap, BTreeSet};

use overdue_protocol::tally::{self, GroupCounter};
use overdue_protocol::{GroupName, Partition};
use overdue_store::{ConsumerInfo, GroupInfo, Store};

use super::row::{Group, Kind};
use crate::command::doctor::relays::{SEEN_MS, is_alive, reads};
use crate::command::place::Place;
use crate::command::retries::Retries;
use crate::exit::Failure;

/// The groups of a queue, over all its partitions.
pub(super) async fn groups(place: &Place) -> Result<Vec<Group>, Failure> {
    let now_ms = place.store.time_ms().await?;
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut consumers: BTreeMap<String, Consumers> = BTreeMap::new();
    for partition in place.partitions() {
        let retries = waiting_retries(&place.store, &partition).await?;
        let tally = place.store.tally(&partition).await?;
        let unfinished = place.store.unfinished(&partition).await?;
        let infos = place.store.groups(&partition).await?;
        for name in tally::groups(&tally) {
            if !infos.iter().any(|info| info.name == name.as_str()) {
                let group =
                    groups.entry(name.to_string()).or_insert_with(|| Group::new(&place.queue, name.as_str()));
                group.kind = Kind::Gone;
                group.retries += retries.get(&name).copied().unwrap_or(0);
                group.backlog = Some(group.backlog.unwrap_or(0) + tally::backlog(&tally, &name));
            }
        }
        for info in infos {
            let group =
                groups.entry(info.name.clone()).or_insert_with(|| Group::new(&place.queue, &info.name));
            let oldest = unfinished.iter().find(|one| one.group == info.name);
            let unread = oldest.is_some_and(|one| one.unread.is_some());
            group.pending += info.pending;
            let lag = undelivered(place, &partition, &info, unread).await?;
            group.undelivered = group.undelivered.zip(lag).map(|(sum, lag)| sum + lag);
            let age_ms = oldest.and_then(|one| one.since_ms()).map(|since| now_ms.saturating_sub(since));
            group.oldest_age_ms = group.oldest_age_ms.max(age_ms);
            // Only groups with names like ours can have books and retries.
            let Ok(name) = GroupName::new(&info.name) else {
                group.consumers = group.consumers.max(info.consumers);
                continue;
            };
            group.retries += retries.get(&name).copied().unwrap_or(0);
            if tally.contains_key(&GroupCounter::Base.field(&name)) {
                group.backlog = Some(group.backlog.unwrap_or(0) + tally::backlog(&tally, &name));
            }
            if group.kind != Kind::Gone {
                group.kind = kind(group.kind, &tally, &name);
            }
            consumers.entry(info.name).or_default().add(place.store.consumers(&partition, &name).await?);
        }
    }
    let alive = place.store.members().await?;
    for group in groups.values_mut() {
        let ours =
            alive.values().filter(|one| is_alive(one, now_ms) && reads(one, &place.queue, &group.group));
        let known = consumers.remove(&group.group).unwrap_or_default();
        group.consumers = group.consumers.max(known.names.len() as u64);
        // Before 7.2 Redis does not count waiting as asking; but ours write themselves down.
        group.live = (known.asked.len() as u64).max(ours.count() as u64);
        group.backlog = group.backlog.or_else(|| Some(group.undelivered? + group.pending));
    }
    Ok(groups.into_values().collect())
}

/// What a group is by the books of one partition more.
fn kind(before: Kind, tally: &BTreeMap<String, String>, group: &GroupName) -> Kind {
    match before {
        _ if tally.contains_key(&tally::plain(group)) => Kind::Plain,
        Kind::Foreign if tally.contains_key(&GroupCounter::Base.field(group)) => Kind::Overdue,
        _ => before,
    }
}

/// Consumers by name: one has a share in each partition.
#[derive(Default)]
struct Consumers {
    names: BTreeSet<String>,
    /// Those that asked for something lately.
    asked: BTreeSet<String>,
}

impl Consumers {
    fn add(&mut self, consumers: Vec<ConsumerInfo>) {
        for one in consumers {
            if one.idle_ms <= SEEN_MS {
                self.asked.insert(one.name.clone());
            }
            self.names.insert(one.name);
        }
    }
}

/// How many entries a group was not given yet. Redis does not always know; all and none are easy all the same.
async fn undelivered(
    place: &Place,
    partition: &Partition,
    info: &GroupInfo,
    unread: bool,
) -> Result<Option<u64>, Failure> {
    if !unread {
        return Ok(Some(0));
    }
    if info.lag.is_some() {
        return Ok(info.lag);
    }
    let stream = partition.stream();
    let first = place.store.entries(&stream, None, 1).await?;
    match first.first().is_some_and(|first| info.last_delivered < first.id) {
        true => Ok(Some(place.store.length(&stream).await?)),
        false => Ok(None),
    }
}

/// How many retries wait for each group.
pub(crate) async fn waiting_retries(
    store: &Store,
    partition: &Partition,
) -> Result<BTreeMap<GroupName, u64>, Failure> {
    let mut waiting = BTreeMap::new();
    let mut retries = Retries::of(store, partition);
    while let Some(page) = retries.next().await? {
        for retry in page {
            *waiting.entry(retry.of.group).or_insert(0) += 1;
        }
    }
    Ok(waiting)
}
