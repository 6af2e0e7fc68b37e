//! A private server, the program, and hands that do what relays and consumers would do.

use std::ffi::OsString;

use bytes::Bytes;
use overdue_protocol::call::{
    Bury, BuryItem, From, Join, Joined, Mode, Retry, RetryItem, Schedule, ScheduleItem, Standing, Sweep,
    When, Words,
};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Due, GroupName, Keyspace, Partition, QueueName, Reply, TimerId};
use overdue_tests::program::Finished;
use overdue_tests::{Launch, Redis, Wire};
use serde_json::Value;

/// A server with one queue's worth of helpers.
pub(super) struct Stage {
    pub(super) redis: Redis,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self { redis: Redis::start() }
    }

    /// `overdue --redis URL <args>`, not started yet.
    pub(super) fn launch(&self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Launch {
        Launch::new(["--redis", &self.redis.url()]).args(args)
    }

    pub(super) fn run(&self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Finished {
        self.launch(args).run()
    }

    /// Runs words that hold no blanks, and expects an exit code.
    pub(super) fn code(&self, code: i32, line: &str) -> Finished {
        let finished = self.run(line.split(' '));
        assert_eq!(finished.code, Some(code), "{line}: {finished:?}");
        finished
    }

    /// Its stdout; it must exit with 0 and say nothing on stderr.
    pub(super) fn ok(&self, line: &str) -> String {
        let finished = self.code(0, line);
        assert_eq!(finished.stderr, "", "{line}");
        finished.stdout
    }

    /// The objects of `--json`, one a line.
    pub(super) fn json(&self, line: &str) -> Vec<Value> {
        objects(&self.code(0, &format!("{line} --json")))
    }

    pub(super) fn wire(&self) -> Wire {
        Wire::connect(&self.redis)
    }

    /// Arms a timer that is due at once in partition 0, whatever its id.
    pub(super) fn arm_due(&self, queue: &str, id: &[u8], payload: &[u8]) {
        let item = ScheduleItem {
            id: TimerId::new(id.to_vec()).unwrap(),
            when: When::At(Due::from_unix_ms(1).unwrap()),
            mode: Mode::Upsert,
            payload: Bytes::copy_from_slice(payload),
            call: Bytes::from_static(b"by hand!"),
            extras: Bytes::new(),
            keyed: false,
        };
        self.wire().run(&Schedule { partition: partition(queue), partitions: 1, items: vec![item] }).unwrap();
    }

    /// Fires what is due in partition 0, as a relay does; answers how many.
    pub(super) fn fire(&self, queue: &str) -> u32 {
        let sweeper = Bytes::from_static(b"by hand");
        self.wire()
            .run(&Sweep { partition: partition(queue), limit: 256, grace_ms: 0, sweeper })
            .unwrap()
            .fired
    }

    /// Creates a group in partition 0, as a consumer does.
    pub(super) fn join(&self, queue: &str, group: &str) {
        let call =
            Join { partition: partition(queue), group: GroupName::new(group).unwrap(), from: From::Oldest };
        assert_eq!(self.wire().run(&call), Ok(Joined::Created));
    }

    /// Takes all that a group was not given yet, as consumer `c`.
    pub(super) fn take(&self, queue: &str, group: &str) -> Vec<EntryId> {
        let stream = partition(queue).stream();
        let args = [b"XREADGROUP".as_slice(), b"GROUP", group.as_bytes(), b"c", b"STREAMS", &stream, b">"];
        let reply = self.wire().call(&args).unwrap();
        let streams = reply.into_array().unwrap_or_default().into_iter().next();
        let entries = streams.and_then(|stream| stream.into_array()?.pop()?.into_array()).unwrap_or_default();
        let id = |entry: Reply| entry.into_array()?.first()?.as_str()?.parse().ok();
        entries.into_iter().filter_map(id).collect()
    }

    /// Gives up what `c` holds.
    pub(super) fn bury(&self, queue: &str, group: &str, entries: &[EntryId]) {
        let item =
            |entry: &EntryId| BuryItem { entry: *entry, reason: "rejected", detail: "no such\norder".into() };
        let call = Bury { by: standing(queue, group), items: entries.iter().map(item).collect() };
        let words = self.wire().run(&call).unwrap();
        assert!(words.iter().all(|word| *word == Words::Ok), "{words:?}");
    }

    /// Puts off what `c` holds, by an hour.
    pub(super) fn retry(&self, queue: &str, group: &str, entries: &[EntryId]) {
        let item = |entry: &EntryId| RetryItem { entry: *entry, delay_ms: 3_600_000 };
        let call = Retry { by: standing(queue, group), items: entries.iter().map(item).collect() };
        let words = self.wire().run(&call).unwrap();
        assert!(words.iter().all(|word| *word == Words::Ok), "{words:?}");
    }
}

pub(super) fn objects(finished: &Finished) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    finished.stdout.lines().map(parse).collect()
}

/// Partition 0 of a queue in the default namespace.
pub(super) fn partition(queue: &str) -> Partition {
    Keyspace::default().partition(&QueueName::new(queue).unwrap(), 0)
}

pub(super) fn standing(queue: &str, group: &str) -> Standing {
    Standing {
        partition: partition(queue),
        group: GroupName::new(group).unwrap(),
        consumer: Bytes::from_static(b"c"),
    }
}
