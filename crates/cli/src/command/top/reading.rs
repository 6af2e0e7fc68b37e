//! What is read from Redis for one frame: counts, heads and ends of lists, whatever a queue holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use overdue_protocol::member::Member;
use overdue_protocol::tally::{self, GroupCounter};
use overdue_protocol::{Entry, GroupName, Partition, QueueInfo, QueueName};
use overdue_store::{Result, Store};

use crate::command::doctor::relays::{SEEN_MS, is_alive};
use crate::command::place;

/// One look at everything.
pub(super) struct Reading {
    pub(super) at: Instant,
    /// The server's clock, unix milliseconds.
    pub(super) now_ms: u64,
    pub(super) used_memory: u64,
    /// Bytes; 0 = no limit.
    pub(super) maxmemory: u64,
    pub(super) queues: BTreeMap<QueueName, Queue>,
    /// Those that are alive.
    pub(super) members: Vec<Member>,
}

/// A queue, over all its partitions.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) paused: bool,
    pub(super) armed: u64,
    pub(super) overdue: u64,
    /// When the earliest timer or retry is due.
    pub(super) next_ms: Option<u64>,
    /// How long after its due the newest timeout fired; retries don't count.
    pub(super) lateness_ms: Option<u64>,
    pub(super) stream: u64,
    pub(super) retries: u64,
    pub(super) dead: u64,
    pub(super) last_dead_ms: Option<u64>,
    /// Everything that ever fired.
    pub(super) fired: u64,
    pub(super) groups: BTreeMap<String, Group>,
}

/// A group of a queue, over all its partitions.
#[derive(Default)]
pub(super) struct Group {
    /// It has books, but a stream has no such group.
    pub(super) gone: bool,
    /// Consumers that asked for work lately.
    pub(super) asked: BTreeSet<String>,
    pub(super) pending: u64,
    /// `None` = it has no books.
    pub(super) backlog: Option<u64>,
    /// Everything that it ever finished.
    pub(super) done: u64,
    /// When the oldest fired that it has not finished.
    pub(super) since_ms: Option<u64>,
}

impl Reading {
    /// Looks. Each call is short; how many there are depends on how many partitions and groups there are.
    pub(super) async fn take(store: &Store) -> Result<Self> {
        let at = Instant::now();
        let now_ms = store.time_ms().await?;
        let server = store.server().await?;
        let members = store.members().await?.into_values().filter(|one| is_alive(one, now_ms)).collect();
        let mut queues = BTreeMap::new();
        for (name, info) in store.queues().await? {
            let queue = Queue::read(store, &name, &info, now_ms).await?;
            queues.insert(name, queue);
        }
        let (used_memory, maxmemory) = (server.used_memory, server.maxmemory);
        Ok(Self { at, now_ms, used_memory, maxmemory, queues, members })
    }

    /// A lateness stands until another is known: what was handled leaves the stream.
    pub(super) fn keep_lateness(&mut self, before: &Self) {
        for (name, queue) in &mut self.queues {
            queue.lateness_ms = queue.lateness_ms.or(before.queues.get(name).and_then(|was| was.lateness_ms));
        }
    }
}

impl Queue {
    async fn read(store: &Store, name: &QueueName, info: &QueueInfo, now_ms: u64) -> Result<Self> {
        let mut queue = Self { paused: info.paused, ..Self::default() };
        let mut newest = None;
        for partition in place::partitions(store, name, info) {
            queue.armed += store.depth(&partition).await?;
            queue.overdue += store.overdue_count(&partition, now_ms).await?;
            let heads = [store.head(&partition).await?, store.retry_head(&partition).await?];
            queue.next_ms = earlier(queue.next_ms, heads.into_iter().flatten().min());
            queue.retries += store.retry_depth(&partition).await?;
            let stream = partition.stream();
            queue.stream += store.length(&stream).await?;
            if let Some(raw) = store.last_entries(&stream, 1).await?.first()
                && let Ok(entry) = Entry::decode(raw)
                && entry.attempt == 1
            {
                newest = newest.max(Some((entry.fired_ms, entry.fired_ms.saturating_sub(entry.due_ms))));
            }
            let dead = store.length(&partition.dead()).await?;
            if dead > 0 {
                queue.dead += dead;
                let last = store.last_entries(&partition.dead(), 1).await?.first().map(|letter| letter.id.ms);
                queue.last_dead_ms = queue.last_dead_ms.max(last);
            }
            queue.read_groups(store, &partition).await?;
        }
        queue.lateness_ms = newest.map(|(_, late)| late);
        Ok(queue)
    }

    async fn read_groups(&mut self, store: &Store, partition: &Partition) -> Result<()> {
        let books = store.tally(partition).await?;
        let count = |field: &str| books.get(field).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        self.fired += count(tally::FIRED_TIMERS) + count(tally::WATCHED_FIRED);
        let there = store.groups(partition).await?;
        for name in tally::groups(&books) {
            let group = self.groups.entry(name.to_string()).or_default();
            group.gone |= !there.iter().any(|one| one.name == name.as_str());
            group.backlog = Some(group.backlog.unwrap_or(0) + tally::backlog(&books, &name));
            group.done += count(&GroupCounter::Done.field(&name));
        }
        for one in there {
            let group = self.groups.entry(one.name.clone()).or_default();
            group.pending += one.pending;
            if let Ok(name) = GroupName::new(&one.name) {
                let consumers = store.consumers(partition, &name).await?;
                group.asked.extend(consumers.into_iter().filter(|c| c.idle_ms <= SEEN_MS).map(|c| c.name));
            }
        }
        for one in store.unfinished(partition).await? {
            let group = self.groups.entry(one.group.clone()).or_default();
            group.since_ms = earlier(group.since_ms, one.since_ms());
        }
        Ok(())
    }
}

fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}
