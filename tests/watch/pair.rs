//! Two relays with the same rules: that is how they are run, and what one does the other must not do again.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::watch::WatchedKey;
use overdue_protocol::{Entry, Keyspace, Partition, QueueName};
use overdue_sandbox::{Connection, Value};
use overdue_tests::{Launch, Program, Redis, Wire, eventually_blocking};

use crate::stage::redis;

/// What is gone at its end without proof is waited for so long, and a little longer: then it has fired, or it never will.
const SETTLED_MS: u64 = 1_500;

/// Settings that have keys heard by keyevent channels.
pub(crate) const KEYEVENT: &str = "[relay]\nnotifications = \"keyevent\"\n";

/// A server, and two relays at it.
pub(crate) struct Pair {
    pub(crate) relays: [Program; 2],
    pub(crate) redis: Redis,
}

/// A rule of the file: its queue has its name.
pub(crate) fn rule(name: &str, pattern: &str, more: &str) -> String {
    format!("[[watch]]\nname = \"{name}\"\npattern = '{pattern}'\nqueue = \"{name}\"\n{more}\n")
}

pub(crate) fn partition(queue: &str) -> Partition {
    Keyspace::default().partition(&QueueName::new(queue).unwrap(), 0)
}

/// One relay at `url`, which has come through its start.
pub(crate) fn relay(redis: &Redis, url: &str, config: &str) -> Program {
    let file = tempfile::Builder::new().suffix(".toml").tempfile_in(redis.folder()).unwrap();
    let (_, path) = file.keep().unwrap();
    std::fs::write(&path, config).unwrap();
    let program = Launch::relay(url).args(["--config", path.to_str().unwrap()]).start();
    program.addr();
    program
}

impl Pair {
    /// At a server of their own.
    pub(crate) fn start(config: &str) -> Self {
        Self::at(redis(), config)
    }

    /// At this server.
    pub(crate) fn at(redis: Redis, config: &str) -> Self {
        let url = redis.url();
        Self::through(redis, &url, config)
    }

    /// At this server, to which `url` leads. They hear of keys when this returns.
    pub(crate) fn through(redis: Redis, url: &str, config: &str) -> Self {
        let relays = std::array::from_fn(|_| relay(&redis, url, config));
        Self { relays, redis }
    }

    /// Waits until the first SCANs are over: what they find is not in the way of what a test does.
    pub(crate) fn scanned(&self) {
        self.await_both(
            "the first SCAN is over",
            "overdue_scans_total",
            &[("reason", "start"), ("result", "done")],
        );
    }

    /// Waits until the count of both relays is above 0.
    pub(crate) fn await_both(&self, awaited: &str, name: &str, labels: &[(&str, &str)]) {
        for relay in &self.relays {
            eventually_blocking(awaited, || relay.metrics().get(name, labels) > Some(0.0));
        }
    }

    /// The sum of a series over both relays.
    pub(crate) fn count(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.relays.iter().filter_map(|relay| relay.metrics().get(name, labels)).sum()
    }

    /// A connection to a database.
    pub(crate) fn db(&self, db: u8) -> Connection {
        let mut connection = self.redis.connection().unwrap();
        connection.call(&["SELECT", &db.to_string()]).unwrap();
        connection
    }

    /// Writes a key of database 0.
    pub(crate) fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl_ms: u64) {
        let ttl = ttl_ms.to_string();
        self.redis.call(&[b"SET", key.as_ref(), value.as_ref(), b"PX", ttl.as_bytes()]);
    }

    /// The timeouts of a queue.
    pub(crate) fn entries(&self, queue: &str) -> Vec<Entry> {
        let raw = Wire::connect(&self.redis).xrange(partition(queue).stream()).unwrap();
        raw.iter().map(|raw| Entry::decode(raw).unwrap()).collect()
    }

    /// How many timeouts there are of each key.
    pub(crate) fn fired(&self, queue: &str) -> BTreeMap<String, usize> {
        counts(&self.entries(queue))
    }

    /// The index of a queue.
    pub(crate) fn known(&self, queue: &str) -> BTreeMap<WatchedKey, u64> {
        let watched = Wire::connect(&self.redis).zrange(partition(queue).watched()).unwrap();
        watched.into_iter().map(|(member, due)| (WatchedKey::parse(&member).unwrap(), due)).collect()
    }

    /// Waits until the index holds these keys of database 0 and no others.
    pub(crate) fn await_known(&self, queue: &str, keys: &[&str]) {
        eventually_blocking("the index holds just these", || {
            let known: Vec<_> = self.known(queue).into_keys().map(|key| name(&key.key)).collect();
            if known == keys { Ok(()) } else { Err(known) }
        });
    }

    /// Waits until `key` has fired, which ends after all others that may: what is not there then has not fired and will
    /// not. Answers all timeouts but that one.
    pub(crate) fn entries_after(&self, queue: &str, key: &str, last_due_ms: u64) -> Vec<Entry> {
        let left = (last_due_ms + SETTLED_MS).saturating_sub(self.redis.now_ms()).max(SETTLED_MS);
        self.set(key, "", left);
        eventually_blocking("the last key has fired", || {
            let mut entries = self.entries(queue);
            let before = entries.len();
            entries.retain(|entry| entry.id.as_bytes() != key);
            (entries.len() < before).then_some(entries)
        })
    }

    /// Ends both in good order.
    pub(crate) fn end(&self) {
        for relay in &self.relays {
            relay.sigterm();
            assert!(relay.wait_exit(Duration::from_secs(10)).success(), "{}", relay.stderr());
        }
    }

    /// The numbers of a tally, 0 where there is none.
    pub(crate) fn tally(&self, queue: &str, field: &str) -> u64 {
        let value = self.redis.call(&[&b"HGET"[..], &partition(queue).tally(), field.as_bytes()]);
        value.int().and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
    }
}

/// How many there are of each key.
pub(crate) fn counts(entries: &[Entry]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    entries.iter().for_each(|entry| *counts.entry(name(entry.id.as_bytes())).or_default() += 1);
    counts
}

/// A name as it can be shown.
pub(crate) fn name(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

/// The bytes of an answer.
pub(crate) fn bytes(value: Value) -> Bytes {
    let Value::Bytes(bytes) = value else { panic!("{value:?} is no string") };
    bytes.into()
}
