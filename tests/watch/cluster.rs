//! A cluster of three primaries: keys, their index and their payloads are at different nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::{Entry, Keyspace, Partition, QueueName, partition};
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Program, Wire, eventually_blocking};

use crate::pair;

/// Hash slots of a cluster, and primaries that share them at the start.
const SLOTS: u32 = 16_384;
const PRIMARIES: u32 = 3;
/// Partitions of a queue on a cluster, unless somebody says otherwise.
const PARTITIONS: u32 = 4;

/// A cluster, and two relays at it.
pub(crate) struct Fleet {
    pub(crate) relays: [Program; 2],
    pub(crate) cluster: Cluster,
}

/// Nodes whose others go on while one is down.
pub(crate) fn options() -> Options {
    Options::default().line("cluster-require-full-coverage no")
}

/// The place of the node that serves a key at the start.
pub(crate) fn home(key: &str) -> usize {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or(key, |(tag, _)| tag);
    let slot = partition::of(tag.as_bytes(), SLOTS);
    (0..PRIMARIES).position(|node| slot < (node + 1) * SLOTS / PRIMARIES).unwrap()
}

/// The place of the node where the index and the stream of a key are at the start.
pub(crate) fn home_of_index(queue: &str, key: &str) -> usize {
    home(&format!("{{{queue}:{}}}", partition::of(key.as_bytes(), PARTITIONS)))
}

impl Fleet {
    pub(crate) fn start(cluster: Cluster, config: &str) -> Self {
        let relays = std::array::from_fn(|_| pair::relay(&cluster.nodes()[1], &cluster.url(), config));
        Self { relays, cluster }
    }

    fn set(&self, key: &str, value: &str, ttl_ms: u64) {
        let node = &self.cluster.nodes()[home(key)];
        node.call(&["SET", key, value, "PX", &ttl_ms.to_string()]);
    }

    fn partitions(queue: &str) -> Vec<Partition> {
        let queue = QueueName::new(queue).unwrap();
        (0..PARTITIONS).map(|number| Keyspace::default().partition(&queue, number)).collect()
    }

    /// All timeouts of a queue, wherever they are.
    pub(crate) fn entries(&self, queue: &str) -> Vec<Entry> {
        let read = |partition: &Partition| {
            Wire::connect(self.cluster.node_of(&partition.stream())).xrange(partition.stream()).unwrap()
        };
        Self::partitions(queue).iter().flat_map(read).map(|raw| Entry::decode(&raw).unwrap()).collect()
    }

    /// Waits until the index knows so many keys.
    pub(crate) fn await_known(&self, queue: &str, keys: usize) {
        let count = |partition: Partition| {
            let watched = partition.watched();
            self.cluster.node_of(&watched).count(&[b"ZCARD".as_slice(), &watched])
        };
        eventually_blocking("the index knows just so many", || {
            let known: u64 = Self::partitions(queue).into_iter().map(count).sum();
            if known == keys as u64 { Ok(()) } else { Err(known) }
        });
    }

    /// Waits until so many have fired.
    fn fired(&self, queue: &str, n: usize) -> Vec<Entry> {
        eventually_blocking("all have fired", || {
            let fired = self.entries(queue);
            if fired.len() >= n { Ok(fired) } else { Err(fired.len()) }
        })
    }

    /// Ends the relays in good order.
    pub(crate) fn end(&self) {
        for relay in &self.relays {
            relay.sigterm();
            assert!(relay.wait_exit(Duration::from_secs(10)).success(), "{}", relay.stderr());
        }
    }
}

fn payloads(fired: &[Entry]) -> BTreeMap<String, Bytes> {
    fired.iter().map(|entry| (pair::name(entry.id.as_bytes()), entry.payload.clone())).collect()
}

#[test]
fn a_thousand_keys_of_all_nodes_fire_once_with_payloads_from_wherever_they_are() {
    const KEYS: usize = 1_000;
    let config = pair::rule("orders", "order:*", "payload = \"key\"\npayload_key = \"{1} in short\"");
    let fleet = Fleet::start(Cluster::with(&options()), &config);
    for n in 0..KEYS {
        let about = format!("{n} in short");
        fleet.cluster.nodes()[home(&about)].call(&["SET", &about, &format!("data {n}")]);
        fleet.set(&format!("order:{n}"), "", 1_000 + n as u64);
    }
    let fired = fleet.fired("orders", KEYS);
    assert_eq!(fired.len(), KEYS);
    let expected = (0..KEYS).map(|n| (format!("order:{n}"), Bytes::from(format!("data {n}"))));
    assert_eq!(payloads(&fired), expected.collect());
    let late = fired.iter().map(|entry| entry.fired_ms - entry.due_ms).max();
    assert!(late < Some(1_000), "{late:?} ms late");
    let keys = (0..KEYS).map(|n| (format!("order:{n}"), format!("{n} in short")));
    let pairs =
        keys.map(|(key, about)| ((home(&key), home_of_index("orders", &key)), (home(&key), home(&about))));
    let (indexes, payloads): (BTreeSet<_>, BTreeSet<_>) = pairs.unzip();
    assert_eq!(
        (indexes.len(), payloads.len()),
        (9, 9),
        "wherever a key is, its index and payload are anywhere"
    );
    fleet.end();
}

#[test]
fn keys_that_were_there_before_are_found_on_all_nodes_and_their_values_captured() {
    const KEYS: usize = 300;
    let cluster = Cluster::with(&options());
    for n in 0..KEYS {
        let key = format!("session:{n}");
        let ttl = (8_000 + 10 * n).to_string();
        cluster.nodes()[home(&key)].call(&["SET", &key, &format!("value {n}"), "PX", &ttl]);
    }
    let fleet = Fleet::start(cluster, &pair::rule("sessions", "session:*", "payload = \"value\""));
    fleet.await_known("sessions", KEYS);
    let fired = fleet.fired("sessions", KEYS);
    assert_eq!(fired.len(), KEYS);
    // On a machine that stands still for a moment a value may be missed; then the timeout says so.
    let (whole, without): (Vec<_>, Vec<_>) = fired.into_iter().partition(|entry| entry.flaw.is_none());
    assert!(without.iter().all(|entry| entry.flaw.as_deref() == Some(b"no_value")), "{without:?}");
    assert!(whole.len() > KEYS / 2, "{} of {KEYS} values captured", whole.len());
    for (key, value) in payloads(&whole) {
        assert_eq!(value, key.replace("session:", "value "), "{key}");
    }
    assert_eq!(whole.iter().chain(&without).map(|entry| &entry.id).collect::<BTreeSet<_>>().len(), KEYS);
    fleet.end();
}
