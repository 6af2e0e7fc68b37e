//! Watched keys of a cluster: notifications are local to their node, and key and index are in different slots.

use std::collections::BTreeSet;

use overdue_protocol::{Entry, Keyspace};
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Wire, eventually};

use super::stage::{assert_unique, keyevent, metrics, name, rule, settings, watch};

const KEYS: u64 = 60;
const PARTITIONS: u32 = 4;

fn entries(cluster: &Cluster) -> Vec<Entry> {
    let of = |number| {
        let partition = Keyspace::default().partition(&name("q"), number);
        Wire::connect(cluster.node_of(&partition.stream())).xrange(partition.stream()).unwrap()
    };
    (0..PARTITIONS).flat_map(of).map(|raw| Entry::decode(&raw).unwrap()).collect()
}

fn known(cluster: &Cluster) -> u64 {
    let of = |number| {
        let watched = Keyspace::default().partition(&name("q"), number).watched();
        cluster.node_of(&watched).count(&[b"ZCARD".as_slice(), &watched])
    };
    (0..PARTITIONS).map(of).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_every_node_fire_once_and_every_node_has_its_canary() {
    let cluster = Cluster::with(&Options { notify: "KEgxe".into(), ..Options::default() });
    let set = |key: String, ttl: u64| {
        cluster.node_of(key.as_bytes()).call(&["SET", &key, "v", "PX", &ttl.to_string()]);
    };
    for n in 0..KEYS {
        set(format!("s:before:{n}"), 3_600_000);
    }
    let one = watch(&cluster.url(), vec![rule("s:*", "q")], settings("one")).await;
    let two = watch(&cluster.url(), vec![rule("s:*", "q")], keyevent("two")).await;
    eventually("SCAN has found all", async || known(&cluster) == KEYS).await;
    for n in 0..KEYS {
        set(format!("s:{n}"), 50 + n);
    }
    eventually("all have fired", async || {
        let fired = entries(&cluster).len() as u64;
        if fired >= KEYS { Ok(()) } else { Err(fired) }
    })
    .await;
    eventually("three canaries are heard", async || {
        let all = metrics();
        let states = all.series().iter().filter(|(series, _)| series.starts_with("overdue_canary_state{"));
        let states: Vec<_> = states.map(|(_, state)| *state).collect();
        if states == [2.0, 2.0, 2.0] { Ok(()) } else { Err(states) }
    })
    .await;
    assert_eq!(one.mets.borrow().len(), 3);
    let fired = entries(&cluster);
    assert_unique(&fired);
    let ids: BTreeSet<_> = fired.iter().map(|entry| entry.id.as_bytes().clone()).collect();
    assert_eq!((fired.len() as u64, ids.len() as u64, known(&cluster)), (KEYS, KEYS, KEYS));
    one.stop().await;
    two.stop().await;
}
