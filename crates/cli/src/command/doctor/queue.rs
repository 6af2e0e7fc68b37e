//! Looks at one queue: overdue timers, groups without a reader, dead letters, pause.

use std::collections::{BTreeMap, BTreeSet};

use overdue_protocol::member::Member;
use overdue_protocol::{GroupName, QueueInfo, QueueName, tally};
use overdue_store::Store;

use super::finding::{Finding, Level};
use super::relays::{self, SEEN_MS};
use crate::command::place;
use crate::exit::Failure;
use crate::output::text;

/// How long a timer may be overdue: longer than a relay takes to come back.
const LATE_MS: u64 = 5_000;

/// What all partitions of a queue hold together.
#[derive(Default)]
struct Holdings {
    /// Due times of the earliest timer and of the earliest retry.
    earliest_ms: Option<u64>,
    overdue: u64,
    armed: u64,
    entries: u64,
    dead: u64,
    groups: BTreeMap<String, Group>,
    /// Another number of partitions than the queue says.
    disagree: BTreeSet<String>,
}

#[derive(Default)]
struct Group {
    /// Delivered and not acknowledged.
    pending: u64,
    /// Something is not delivered, or not acknowledged.
    waits: bool,
    consumers: u64,
    /// A consumer asked for work lately.
    read: bool,
}

/// Findings about a queue.
pub(super) async fn look(
    store: &Store,
    queue: &QueueName,
    info: &QueueInfo,
    alive: &[Member],
    now_ms: u64,
) -> Result<Vec<Finding>, Failure> {
    let holdings = read(store, queue, info, now_ms).await?;
    let mut findings = vec![overdue(queue, &holdings, now_ms)];
    findings.extend(relays::missing_for(queue, alive));
    findings.extend(disagreement(queue, info, &holdings));
    findings.extend(groups(queue, &holdings, alive));
    if holdings.dead > 0 {
        let finding = format!("queue {queue}: dead letters: {}", holdings.dead);
        let advice = format!("see why: overdue dead list {queue}; then replay or purge them");
        findings.push(Finding::warn("dead letters", finding, advice));
    }
    if info.paused {
        let finding = format!("queue {queue} is paused: it fires, and nothing is handed out");
        findings.push(Finding::warn("paused", finding, format!("overdue resume {queue}")));
    }
    Ok(findings)
}

async fn read(store: &Store, queue: &QueueName, info: &QueueInfo, now_ms: u64) -> Result<Holdings, Failure> {
    let mut holdings = Holdings::default();
    for partition in place::partitions(store, queue, info) {
        let heads = [store.head(&partition).await?, store.retry_head(&partition).await?];
        holdings.earliest_ms = heads.into_iter().flatten().chain(holdings.earliest_ms).min();
        holdings.overdue += store.overdue_count(&partition, now_ms).await?;
        holdings.armed += store.depth(&partition).await? + store.retry_depth(&partition).await?;
        holdings.entries += store.length(&partition.stream()).await?;
        holdings.dead += store.length(&partition.dead()).await?;
        let told = store.tally(&partition).await?.remove(tally::PARTITIONS);
        holdings.disagree.extend(told.filter(|number| *number != info.partitions.to_string()));
        for group in store.groups(&partition).await? {
            let known = holdings.groups.entry(group.name.clone()).or_default();
            known.pending += group.pending;
            known.waits |= group.pending > 0 || group.lag.is_some_and(|lag| lag > 0);
            known.consumers += group.consumers;
            if let Ok(name) = GroupName::new(&group.name) {
                let consumers = store.consumers(&partition, &name).await?;
                known.read |= consumers.iter().any(|consumer| consumer.idle_ms <= SEEN_MS);
            }
        }
    }
    Ok(holdings)
}

fn overdue(queue: &QueueName, holdings: &Holdings, now_ms: u64) -> Finding {
    let late = holdings.earliest_ms.map_or(0, |due| now_ms.saturating_sub(due));
    if late <= LATE_MS {
        return Finding::ok("overdue", format!("queue {queue}: {} wait, none is late", holdings.armed));
    }
    let (overdue, span) = (holdings.overdue, text::span(late));
    let finding = match overdue {
        0 => format!("queue {queue}: retries are overdue, the oldest by {span}"),
        _ => format!("queue {queue}: overdue timers: {overdue}; the oldest timer or retry is late by {span}"),
    };
    Finding::bad(
        "overdue",
        finding,
        "is a relay running for this queue, and does it log errors? See its /metrics",
    )
}

fn disagreement(queue: &QueueName, info: &QueueInfo, holdings: &Holdings) -> Option<Finding> {
    let theirs = Vec::from_iter(holdings.disagree.iter().map(String::as_str)).join(", ");
    let finding = format!(
        "queue {queue} says {} partitions, its data says {theirs}: nothing can be armed",
        info.partitions
    );
    let advice = "its entry in the hash of queues was replaced: put the old number back";
    (!theirs.is_empty()).then(|| Finding::bad("partitions", finding, advice))
}

fn groups(queue: &QueueName, holdings: &Holdings, alive: &[Member]) -> Vec<Finding> {
    let work = holdings.armed + holdings.entries > 0;
    // An empty queue may be new; one with work in it is read by nobody.
    let level = if work { Level::Bad } else { Level::Warn };
    if holdings.groups.is_empty() {
        let finding = format!("queue {queue} has no group: nobody handles its timeouts, and they pile up");
        let advice = format!("start a consumer: overdue consume --queue {queue} --group NAME ...");
        return vec![Finding::bad("groups", finding, advice).at(level)];
    }
    let look = |(name, group): (&String, &Group)| {
        let member = format!("{queue}/{name}");
        let by_us = alive.iter().any(|one| one.role == "consumer" && one.queues.contains(&member));
        let name = text::printable(name.as_bytes());
        if by_us || group.read {
            return Finding::ok(
                "groups",
                format!("group {name} of {queue} has a consumer, {} pending", group.pending),
            );
        }
        let finding = format!(
            "group {name} of {queue} has no consumer that asked for work in the last {} s",
            SEEN_MS / 1000
        );
        let advice = format!(
            "start one, or delete the group with all it has not handled: overdue groups drop {queue} {name}"
        );
        // Before 7.2 Redis does not count waiting as asking: where nothing fired for a while, nobody shows.
        let quiet = group.consumers > 0 && !group.waits;
        Finding::bad("groups", finding, advice).at(if quiet { Level::Warn } else { level })
    };
    holdings.groups.iter().map(look).collect()
}
