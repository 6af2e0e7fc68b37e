//! Looks at one queue: overdue timers, its groups, dead letters, pause.

use std::collections::BTreeSet;

use overdue_protocol::member::Member;
use overdue_protocol::{QueueInfo, QueueName, tally};
use overdue_store::Store;

use super::finding::Finding;
use super::groups::{Around, Groups};
use super::relays;
use crate::command::place;
use crate::exit::Failure;
use crate::output::text;

/// How long a timer may be overdue: longer than a relay takes to come back.
pub(crate) const LATE_MS: u64 = 5_000;
/// A dead letter that is younger than this says that more come.
const NEW_MS: u64 = 600_000;

/// What all partitions of a queue hold together.
#[derive(Default)]
struct Holdings {
    /// Due times of the earliest timer and of the earliest retry.
    earliest_ms: Option<u64>,
    overdue: u64,
    armed: u64,
    entries: u64,
    dead: u64,
    /// When the newest dead letter was written.
    last_dead_ms: Option<u64>,
    groups: Groups,
    /// Another number of partitions than the queue says.
    disagree: BTreeSet<String>,
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
    let work = holdings.armed + holdings.entries > 0;
    findings.extend(holdings.groups.look(&Around { queue, alive, work, paused: info.paused, now_ms }));
    if holdings.dead > 0 {
        let age = holdings.last_dead_ms.map(|at| now_ms.saturating_sub(at)).filter(|age| *age < NEW_MS);
        let growing = age.map(|age| format!(", and growing: the newest came {} ago", text::span(age)));
        let finding =
            format!("queue {queue}: dead letters: {}{}", holdings.dead, growing.unwrap_or_default());
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
        let dead = store.length(&partition.dead()).await?;
        if dead > 0 {
            holdings.dead += dead;
            let last = store.last_entries(&partition.dead(), 1).await?.first().map(|letter| letter.id.ms);
            holdings.last_dead_ms = holdings.last_dead_ms.max(last);
        }
        let books = store.tally(&partition).await?;
        let told = books.get(tally::PARTITIONS).cloned();
        holdings.disagree.extend(told.filter(|number| *number != info.partitions.to_string()));
        holdings.groups.add(store, &partition, &books).await?;
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
