//! What contract and model tests stand on: a server, one partition, and every call in short.
//!
//! A call that must succeed is checked here: what goes wrong fails the test.
#![allow(clippy::unwrap_used, reason = "only tests stand on it")]

use std::collections::BTreeMap;

use bytes::Bytes;
use overdue_protocol::call::{
    Applied, Apply, ApplyItem, Armed, Bury, BuryItem, Cancel, CancelItem, Cancelled, Claim, Claimed,
    Complete, CompleteItem, Completed, Fire, Fired, From, Holder, Join, Joined, Mode, PAGE, PAGE_BYTES,
    Reclaim, Reclaimed, Release, Retry, RetryItem, Schedule, ScheduleItem, Scheduled, Standing, Sweep,
    SweepRetries, Swept, SweptRetries, Trim, Trimmed, When, Words,
};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Due, Effect, GroupName, Keyspace, Partition, QueueName, RawEntry, TimerId};
use overdue_sandbox::Options;

use crate::books::{Books, assert_partition_balanced};
use crate::{Redis, Wire, eventually_blocking};

/// How often a round is run at most, until none of its scripts is slow.
const ROUNDS: usize = 10;

/// One server, one connection, the partition `{orders:0}`.
pub struct Stage {
    /// The server.
    pub redis: Redis,
    /// The connection.
    pub wire: Wire,
    /// The partition.
    pub partition: Partition,
}

/// An id.
pub fn id(text: impl AsRef<[u8]>) -> TimerId {
    TimerId::new(text.as_ref().to_vec()).unwrap()
}

/// A group.
pub fn group(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

/// A deadline, unix milliseconds.
pub fn at(ms: u64) -> When {
    When::At(Due::from_unix_ms(ms).unwrap())
}

/// A timer that is due in an hour, in mode upsert, not keyed.
pub fn timer(name: impl AsRef<[u8]>) -> ScheduleItem {
    ScheduleItem {
        id: id(name),
        when: When::In(3_600_000),
        mode: Mode::Upsert,
        payload: Bytes::from_static(b"payload"),
        call: Bytes::from_static(b"8 bytes!"),
        extras: Bytes::new(),
        keyed: false,
    }
}

/// What the slow log says of a script: microseconds, and its first key. It holds the commands within scripts too.
fn script_run(entry: &overdue_sandbox::Value) -> Option<(u64, String)> {
    let parts = entry.items();
    let words = parts.get(3)?.items();
    let us = parts.get(2)?.int().and_then(|us| u64::try_from(us).ok())?;
    (words.first()?.text() == "EVAL")
        .then(|| (us, words.get(3).map(overdue_sandbox::Value::text).unwrap_or_default()))
}

/// A timer that is due already.
pub fn past(name: impl AsRef<[u8]>) -> ScheduleItem {
    ScheduleItem { when: at(1000), ..timer(name) }
}

impl Default for Stage {
    fn default() -> Self {
        Self::with(Options::default())
    }
}

impl Stage {
    /// A server of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A server as `options` say.
    #[must_use]
    pub fn with(options: Options) -> Self {
        let redis = Redis::with(options);
        let wire = Wire::connect(&redis);
        let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 0);
        Self { redis, wire, partition }
    }

    /// Another connection, as an ACL user without a password.
    pub fn wire_of(&self, user: &str) -> Wire {
        let mut wire = Wire::connect(&self.redis);
        wire.call(&["AUTH", user, "any"]).unwrap();
        wire
    }

    /// The call that arms these.
    pub fn to_arm(&self, items: Vec<ScheduleItem>) -> Schedule {
        Schedule { partition: self.partition.clone(), partitions: 1, items }
    }

    /// Arms these; what became of each.
    pub fn arm(&mut self, items: Vec<ScheduleItem>) -> Vec<Armed> {
        let call = self.to_arm(items);
        match self.wire.run(&call).unwrap() {
            Scheduled::Items(armed) => armed,
            other => panic!("{other:?}"),
        }
    }

    /// Arms one.
    pub fn arm_one(&mut self, item: ScheduleItem) -> Armed {
        self.arm(vec![item])[0]
    }

    /// Disarms these, whatever the generation.
    pub fn cancel(&mut self, ids: &[&str]) -> Vec<Cancelled> {
        self.cancel_if(ids.iter().map(|name| (id(name), None)).collect())
    }

    /// Disarms these, each only with this generation.
    pub fn cancel_if(&mut self, items: Vec<(TimerId, Option<u64>)>) -> Vec<Cancelled> {
        let items = items.into_iter().map(|(id, generation)| CancelItem { id, generation }).collect();
        self.wire.run(&Cancel { partition: self.partition.clone(), items }).unwrap()
    }

    /// The call that sweeps a whole page.
    pub fn to_sweep(&self) -> Sweep {
        let sweeper = Bytes::from_static(b"relay:1");
        Sweep { partition: self.partition.clone(), limit: PAGE, grace_ms: 0, sweeper }
    }

    /// Sweeps a page of the index.
    pub fn sweep(&mut self) -> Swept {
        let call = self.to_sweep();
        self.wire.run(&call).unwrap()
    }

    /// Sweeps a page of the retry index.
    pub fn sweep_retries(&mut self) -> SweptRetries {
        self.wire.run(&SweepRetries { partition: self.partition.clone(), limit: PAGE }).unwrap()
    }

    /// Fires these by name.
    pub fn fire(&mut self, ids: &[TimerId]) -> Fired {
        self.wire.run(&Fire { partition: self.partition.clone(), ids: ids.to_vec() }).unwrap()
    }

    /// Joins a group at the oldest entry.
    pub fn join(&mut self, name: &str) -> Joined {
        self.join_from(name, From::Oldest)
    }

    /// Joins a group.
    pub fn join_from(&mut self, name: &str, from: From) -> Joined {
        self.wire.run(&Join { partition: self.partition.clone(), group: group(name), from }).unwrap()
    }

    /// A consumer of a group.
    pub fn by(&self, name: &str, consumer: &str) -> Standing {
        let consumer = Bytes::copy_from_slice(consumer.as_bytes());
        Standing { partition: self.partition.clone(), group: group(name), consumer }
    }

    /// XREADGROUP of what is new, at most 1,000 entries.
    pub fn read(&mut self, name: &str, consumer: &str) -> Vec<RawEntry> {
        self.read_some(name, consumer, 1000)
    }

    /// XREADGROUP of what is new.
    pub fn read_some(&mut self, name: &str, consumer: &str, count: u32) -> Vec<RawEntry> {
        let (count, stream) = (count.to_string(), self.partition.stream());
        let head = ["XREADGROUP", "GROUP", name, consumer, "COUNT", &count, "STREAMS"].map(str::as_bytes);
        let args: Vec<&[u8]> = head.into_iter().chain([stream.as_ref(), b">"]).collect();
        let Some(streams) = self.wire.call(&args).unwrap().into_array() else { return vec![] };
        let entries = streams.into_iter().next().and_then(overdue_protocol::Reply::into_array).unwrap().pop();
        let entries = entries.and_then(overdue_protocol::Reply::into_array).unwrap();
        entries.into_iter().map(|entry| RawEntry::from_reply(entry).unwrap()).collect()
    }

    /// Arms these as due already, sweeps, and reads them as `consumer` of `name`.
    pub fn deliver(&mut self, name: &str, consumer: &str, ids: &[&str]) -> Vec<EntryId> {
        self.deliver_none(ids);
        self.read(name, consumer).iter().map(|entry| entry.id).collect()
    }

    /// Arms these as due already and sweeps: they are in the stream, unread.
    pub fn deliver_none(&mut self, ids: &[&str]) {
        self.arm(ids.iter().map(past).collect());
        while self.sweep().more {}
    }

    /// Acknowledges.
    pub fn complete(&mut self, name: &str, items: Vec<CompleteItem>) -> Completed {
        let by = self.by(name, "any");
        self.wire.run(&Complete { by, items, history: 0 }).unwrap()
    }

    /// The call that acknowledges each of these with the effects behind it.
    pub fn to_apply(&self, by: Standing, items: &[(EntryId, &[Effect])]) -> Apply {
        let item = |(entry, effects): &(EntryId, &[Effect])| ApplyItem {
            entry: *entry,
            effects: effects.to_vec().into(),
        };
        Apply { by, items: items.iter().map(item).collect(), history: 0 }
    }

    /// Acknowledges one with effects.
    pub fn apply(&mut self, by: Standing, entry: EntryId, effects: &[Effect]) -> Applied {
        let call = self.to_apply(by, &[(entry, effects)]);
        self.wire.run(&call).unwrap().remove(0)
    }

    /// As plain consumers of any language do: XACK, and nothing else.
    pub fn xack(&mut self, name: &str, entries: &[EntryId]) {
        let stream = self.partition.stream();
        for some in entries.chunks(1000) {
            let mut args = vec![b"XACK".to_vec(), stream.to_vec(), name.as_bytes().to_vec()];
            args.extend(some.iter().map(|entry| entry.to_bytes().to_vec()));
            self.wire.call(&args).unwrap();
        }
    }

    /// The call that takes back all that a plain group holds: due at once, dead at the third attempt.
    pub fn to_reclaim(&self, name: &str) -> Reclaim {
        Reclaim {
            partition: self.partition.clone(),
            group: group(name),
            lease_ms: 0,
            attempts: 3,
            first_ms: 0,
            most_ms: 0,
            chance: 1.0,
            limit: PAGE,
            bytes: u64::from(PAGE_BYTES),
        }
    }

    /// Takes back all that a plain group holds.
    pub fn reclaim(&mut self, name: &str) -> Reclaimed {
        let call = self.to_reclaim(name);
        self.wire.run(&call).unwrap()
    }

    /// A key of the user's own beside the partition, for effects.
    pub fn beside(&self, name: &str) -> Bytes {
        self.partition.neighbour(name.as_bytes())
    }

    /// Into the retry index, due after a delay.
    pub fn retry(&mut self, by: Standing, entries: &[EntryId], delay_ms: u64) -> Vec<Words> {
        let items = entries.iter().map(|&entry| RetryItem { entry, delay_ms }).collect();
        self.wire.run(&Retry { by, items }).unwrap()
    }

    /// Hands back.
    pub fn release(&mut self, by: Standing, entries: &[EntryId]) -> Vec<Words> {
        self.release_after(by, entries, 0)
    }

    /// Hands back, due after a delay.
    pub fn release_after(&mut self, by: Standing, entries: &[EntryId], delay_ms: u64) -> Vec<Words> {
        let items = entries.iter().map(|&entry| RetryItem { entry, delay_ms }).collect();
        self.wire.run(&Release { by, items }).unwrap()
    }

    /// Into the dead letters.
    pub fn bury(&mut self, by: Standing, entries: &[EntryId]) -> Vec<Words> {
        let item =
            |&entry| BuryItem { entry, reason: "rejected", detail: Bytes::from_static(b"no such order") };
        self.wire.run(&Bury { by, items: entries.iter().map(item).collect() }).unwrap()
    }

    /// Claims a page of others' entries, whatever their lease.
    pub fn claim(&mut self, by: Standing) -> Claimed {
        let holder = Holder::Others { lease_ms: 0, alone: false };
        let call = Claim { by, holder, after: EntryId::ZERO, limit: PAGE };
        self.wire.run(&call).unwrap()
    }

    /// Trims, with no bound on dead letters that a test meets.
    pub fn trim(&mut self) -> Trimmed {
        self.wire
            .run(&Trim { partition: self.partition.clone(), dead_max: 100_000, dead_max_age_ms: 86_400_000 })
            .unwrap()
    }

    /// The stream.
    pub fn entries(&mut self) -> Vec<RawEntry> {
        self.wire.xrange(self.partition.stream()).unwrap()
    }

    /// Ids of timers in the stream, in order.
    pub fn fired_ids(&mut self) -> Vec<Bytes> {
        self.entries().iter().map(|entry| entry.field("id").unwrap().clone()).collect()
    }

    /// The dead letters.
    pub fn dead(&mut self) -> Vec<RawEntry> {
        self.wire.xrange(self.partition.dead()).unwrap()
    }

    /// The index.
    pub fn index(&mut self) -> Vec<(Bytes, u64)> {
        self.wire.zrange(self.partition.index()).unwrap()
    }

    /// The waiting retries.
    pub fn retries(&mut self) -> Vec<(Bytes, u64)> {
        self.wire.zrange(self.partition.retry_index()).unwrap()
    }

    /// A number of the books; 0 when it is not there.
    pub fn tally(&mut self, field: &str) -> i64 {
        let all = self.wire.hgetall(self.partition.tally()).unwrap();
        all.get(field.as_bytes()).map_or(0, |text| std::str::from_utf8(text).unwrap().parse().unwrap())
    }

    /// Waits until the server's clock has passed `ms`.
    pub fn pass(&mut self, ms: u64) {
        eventually_blocking("the server's clock passes a deadline", || self.wire.now_ms() > ms);
    }

    /// Fails unless the books balance.
    pub fn assert_balanced(&self) {
        assert_partition_balanced(&self.redis, 0, &self.partition);
    }

    /// Fails unless the books balance, all but those of one group, which misses so many.
    pub fn assert_balanced_but_for(&self, name: &str, missing: i64) {
        let books = Books::read(&self.redis, 0, &self.partition);
        let faults: Vec<_> =
            books.faults().iter().map(|line| (line.what.as_str(), line.difference())).collect();
        assert_eq!(faults, [(format!("group {name}").as_str(), missing)]);
    }

    /// Fails if a script of `round` takes longer than 50 ms.
    ///
    /// On a busy machine any command may be slow, once: so the round is run again, from an empty server on, until the
    /// fastest run of each script call is quick. One that is slow by itself is so in all of [`ROUNDS`].
    pub fn assert_nothing_slow(&mut self, mut round: impl FnMut(&mut Self)) {
        let mut slow: BTreeMap<usize, (u64, String)> = BTreeMap::new();
        for turn in 0..ROUNDS {
            self.wire.call(&["FLUSHALL"]).unwrap();
            self.redis.watch_for_slow(0);
            self.wire.call(&["CONFIG", "SET", "slowlog-max-len", "50000"]).unwrap();
            round(self);
            let log = self.redis.call(&["SLOWLOG", "GET", "50000"]);
            assert!(log.items().len() < 50_000, "the slow log holds no more");
            let runs: Vec<_> = log.items().iter().rev().filter_map(script_run).collect();
            assert!(!runs.is_empty(), "no script has run");
            let is_slow = |n: usize| turn == 0 || slow.contains_key(&n);
            let runs = runs.into_iter().enumerate().filter(|(n, (us, _))| *us > 50_000 && is_slow(*n));
            slow = runs.collect();
            if slow.is_empty() {
                return;
            }
        }
        panic!("these commands hold the server for too long (microseconds): {:#?}", slow.values());
    }

    /// Every key with its DUMP.
    pub fn snapshot(&mut self) -> Vec<(Bytes, Bytes)> {
        let keys = self.wire.call(&["KEYS", "*"]).unwrap().into_array().unwrap();
        let mut all: Vec<_> = keys.into_iter().map(|key| key.into_bytes().unwrap()).collect();
        all.sort();
        let mut dump = |key: &Bytes| {
            self.wire.call(&[b"DUMP".as_slice(), key]).unwrap().into_bytes().unwrap_or_default()
        };
        all.iter().map(|key| (key.clone(), dump(key))).collect()
    }
}
