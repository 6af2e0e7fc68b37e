//! Looks at the groups of a queue: gone, without a consumer, slow, kept from their work.

use std::collections::BTreeMap;

use overdue_protocol::member::Member;
use overdue_protocol::{GroupName, Partition, QueueName, tally};
use overdue_store::Store;

use super::finding::{Finding, Level};
use super::relays::{self, SEEN_MS};
use crate::exit::Failure;
use crate::output::text;

/// How old a timeout in the stream may be before its group counts as slow.
const SLOW_MS: u64 = 60_000;

/// The groups, with what all partitions say of them.
#[derive(Default)]
pub(super) struct Groups(BTreeMap<String, Group>);

#[derive(Default)]
struct Group {
    /// It has a part in the books, but a stream has no such group.
    gone: bool,
    /// Its consumers only read and acknowledge.
    plain: bool,
    /// Delivered and not acknowledged.
    pending: u64,
    /// Something is not delivered, or not acknowledged.
    waits: bool,
    consumers: u64,
    /// A consumer asked for work lately.
    read: bool,
    /// When the oldest entry that it holds entered the stream, and the oldest that it has not finished; unix
    /// milliseconds.
    held_ms: Option<u64>,
    since_ms: Option<u64>,
}

/// What else is known of the queue.
pub(super) struct Around<'a> {
    pub(super) queue: &'a QueueName,
    pub(super) alive: &'a [Member],
    /// Something is armed, waits or is in the stream.
    pub(super) work: bool,
    pub(super) paused: bool,
    pub(super) now_ms: u64,
}

impl Groups {
    /// Adds what one partition says.
    pub(super) async fn add(
        &mut self,
        store: &Store,
        partition: &Partition,
        books: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let groups = store.groups(partition).await?;
        for name in tally::groups(books) {
            let known = self.0.entry(name.to_string()).or_default();
            known.gone |= !groups.iter().any(|group| group.name == name.as_str());
            known.plain |= books.contains_key(&tally::plain(&name));
        }
        for group in groups {
            let known = self.0.entry(group.name.clone()).or_default();
            known.pending += group.pending;
            known.waits |= group.pending > 0 || group.lag.is_some_and(|lag| lag > 0);
            known.consumers += group.consumers;
            if let Ok(name) = GroupName::new(&group.name) {
                let consumers = store.consumers(partition, &name).await?;
                known.read |= consumers.iter().any(|consumer| consumer.idle_ms <= SEEN_MS);
            }
        }
        for one in store.unfinished(partition).await? {
            let known = self.0.entry(one.group.clone()).or_default();
            let earlier = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
            known.held_ms = earlier(known.held_ms, one.held.map(|id| id.ms));
            known.since_ms = earlier(known.since_ms, one.since_ms());
        }
        Ok(())
    }

    /// What is found.
    pub(super) fn look(&self, around: &Around<'_>) -> Vec<Finding> {
        let queue = around.queue;
        if self.0.is_empty() {
            let finding =
                format!("queue {queue} has no group: nobody handles its timeouts, and they pile up");
            let advice = format!("start a consumer: overdue consume --queue {queue} --group NAME ...");
            return vec![Finding::bad("groups", finding, advice).at(around.no_reader())];
        }
        self.0.iter().flat_map(|(name, group)| group.look(name, around)).collect()
    }
}

impl Around<'_> {
    /// An empty queue may be new; one with work in it is read by nobody.
    fn no_reader(&self) -> Level {
        if self.work { Level::Bad } else { Level::Warn }
    }

    /// The consumers of ours in a group.
    fn ours<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Member> {
        self.alive.iter().filter(move |one| relays::reads(one, self.queue, group))
    }
}

impl Group {
    fn look(&self, name: &str, around: &Around<'_>) -> Vec<Finding> {
        let (queue, shown) = (around.queue, text::printable(name.as_bytes()));
        if self.gone {
            let finding = format!("group {shown} of {queue} is gone: it was removed, or its stream was");
            let advice = format!(
                "start its consumer, which creates it again with all that is in the stream; or forget it: overdue groups \
                 drop {queue} {shown}"
            );
            return vec![Finding::bad("groups", finding, advice)];
        }
        let mut findings = vec![self.reader(name, &shown, around)];
        findings.extend(self.slow(&shown, around));
        findings.extend(self.undeclared(name, &shown, around));
        findings.extend(around.ours(name).filter(|member| !member.trouble.is_empty()).map(|member| {
            let finding = format!("group {shown} of {queue}, consumer on {}: {}", member.host, member.trouble);
            let advice = "nothing is lost: see to what it calls, and it goes on by itself; one that was halted goes on after \
                          a restart";
            Finding::bad("endpoint", finding, advice)
        }));
        findings
    }

    fn reader(&self, name: &str, shown: &str, around: &Around<'_>) -> Finding {
        let queue = around.queue;
        if self.read || around.ours(name).next().is_some() {
            let finding = format!("group {shown} of {queue} has a consumer, {} pending", self.pending);
            return Finding::ok("groups", finding);
        }
        let finding = format!(
            "group {shown} of {queue} has no consumer that asked for work in the last {} s",
            SEEN_MS / 1000
        );
        let advice = format!(
            "start one, or delete the group with all it has not handled: overdue groups drop {queue} {shown}"
        );
        // Before 7.2 Redis does not count waiting as asking: where nothing fired for a while, nobody shows.
        let quiet = self.consumers > 0 && !self.waits;
        Finding::bad("groups", finding, advice).at(if quiet { Level::Warn } else { around.no_reader() })
    }

    fn slow(&self, shown: &str, around: &Around<'_>) -> Option<Finding> {
        let age = around.now_ms.saturating_sub(self.since_ms?);
        if age <= SLOW_MS || around.paused {
            return None;
        }
        let finding = format!(
            "group {shown} of {} is slow: its oldest timeout has been in the stream for {}",
            around.queue,
            text::span(age)
        );
        let advice = if self.plain {
            "more consumers, if they can't keep up; do the relays' settings still declare it ([[group]])?"
        } else {
            "more consumers or a higher --concurrency, if they can't keep up; fine while a handler takes that long"
        };
        Some(Finding::warn("slow", finding, advice))
    }

    /// Somebody else's consumers hold something for long, and nobody would hand it out again.
    fn undeclared(&self, name: &str, shown: &str, around: &Around<'_>) -> Option<Finding> {
        let age = around.now_ms.saturating_sub(self.held_ms?);
        if self.plain || age <= SLOW_MS || !self.read || around.ours(name).next().is_some() {
            return None;
        }
        let queue = around.queue;
        let finding = format!(
            "group {shown} of {queue} has consumers that are not Overdue's, and nobody hands out again what they drop"
        );
        let advice = format!(
            "declare it to the relays: [[group]] with queue = \"{queue}\", name = \"{shown}\" and a lease, in their settings"
        );
        Some(Finding::warn("plain", finding, advice))
    }
}
