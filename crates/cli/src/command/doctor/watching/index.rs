//! Looks at the watched keys of one queue: whether each that is due is settled, and how many went without proof.

use overdue_protocol::watch::WatchedKey;
use overdue_protocol::{Partition, QueueInfo, QueueName, tally};
use overdue_store::Store;

use super::Watching;
use crate::command::doctor::finding::Finding;
use crate::command::place;
use crate::exit::Failure;
use crate::output::text;

const CHECK: &str = "watched keys";
/// How long a key may be overdue: as long as relays leave alone what no rule of theirs matches.
const LATE_MS: u64 = 60_000;

/// What all partitions of a queue hold together.
#[derive(Default)]
struct Holdings {
    known: u64,
    overdue: u64,
    /// One of the overdue, the first of no rule here if there is one.
    example: Option<(String, bool)>,
    fired: u64,
    unproven: u64,
    dropped: u64,
}

/// At most two findings; none for a queue that never had a watched key.
pub(in crate::command::doctor) async fn look(
    store: &Store,
    queue: &QueueName,
    info: &QueueInfo,
    watching: &Watching,
    now_ms: u64,
) -> Result<Vec<Finding>, Failure> {
    let mut all = Holdings::default();
    for partition in place::partitions(store, queue, info) {
        add(&mut all, store, &partition, watching, now_ms.saturating_sub(LATE_MS)).await?;
    }
    let mut findings = vec![];
    if all.overdue > 0 {
        findings.push(overdue(queue, &all, watching));
    }
    if all.known + all.fired + all.dropped > 0 {
        let Holdings { known, fired, unproven, dropped, .. } = all;
        let finding = format!(
            "queue {queue}: {known} keys have their end in the index; {fired} fired, {unproven} of them without proof; \
             {dropped} dropped without proof"
        );
        findings.push(Finding::ok(CHECK, finding));
    }
    Ok(findings)
}

async fn add(
    all: &mut Holdings,
    store: &Store,
    partition: &Partition,
    watching: &Watching,
    before_ms: u64,
) -> Result<(), Failure> {
    all.known += store.watched_depth(partition).await?;
    let overdue = store.watched_overdue_count(partition, before_ms).await?;
    all.overdue += overdue;
    let tally = store.tally(partition).await?;
    let count = |name: &str| tally.get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    all.fired += count(tally::WATCHED_FIRED);
    all.unproven += count(tally::WATCHED_UNPROVEN);
    all.dropped += count(tally::WATCHED_DROPPED);
    if overdue > 0 && !all.example.as_ref().is_some_and(|(_, stray)| *stray) {
        let page = store.watched_page(partition, None, Some(before_ms), place::PAGE).await?;
        let is_stray = |(member, _): &&(_, u64)| {
            WatchedKey::parse(member).is_none_or(|key| watching.rules.rule_for(key.db, &key.key).is_none())
        };
        let stray = if watching.rules.is_empty() { None } else { page.iter().find(is_stray) };
        let example = stray.or(page.first()).map(|(member, _)| (text::id(member), stray.is_some()));
        all.example = example.or(all.example.take());
    }
    Ok(())
}

fn overdue(queue: &QueueName, all: &Holdings, watching: &Watching) -> Finding {
    let (example, stray) = all.example.clone().unwrap_or_default();
    let of_no_rule = if stray { ", which no rule of this call matches" } else { "" };
    let finding = format!(
        "queue {queue}: watched keys overdue for more than {} s: {}, such as {example} (db:key){of_no_rule}",
        LATE_MS / 1000,
        all.overdue
    );
    let advice = if watching.has_relays() {
        "is their rule one that a relay has, and does it log errors? Of no rule, they go when their key is gone and a \
         relay watches their database"
    } else {
        "no relay watches keys: start one with the rule that they came from"
    };
    Finding::bad(CHECK, finding, advice)
}
