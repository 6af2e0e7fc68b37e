//! A Redis Cluster: one node is named, the others are found.

use overdue_protocol::QueueInfo;
use overdue_tests::{Cluster, Wire, assert_balanced};
use serde_json::{Value, json};

use crate::language::Language;
use crate::speaker::Speaker;

#[test]
fn timers_are_armed_moved_and_cancelled_on_all_nodes() {
    let cluster = Cluster::start();
    for (language, node) in Language::ALL.into_iter().zip(cluster.nodes()) {
        let mut speaker = Speaker::patient(language, node.addr(), 5);
        let id = |i: usize| format!("{language:?}-{i}").into_bytes();
        for i in 0..40 {
            let armed = speaker.schedule(&id(i), b"p", &json!({"delay": 900, "keyed": i % 2 == 0}));
            assert_eq!(armed["change"], "armed", "{language:?}: {armed}");
        }
        for i in 0..40 {
            let moved = speaker.schedule(&id(i), b"q", &json!({"delay": 1800, "mode": "later"}));
            assert_eq!(moved["change"], "replaced", "{language:?}: {moved}");
            assert_eq!(speaker.get(&id(i))["generation"], moved["generation"]);
        }
        for i in 0..20 {
            assert_ne!(speaker.cancel(&id(i)), Value::Null, "{language:?}");
        }
    }
    let queues = Wire::connect(cluster.node_of(b"overdue:queues")).hgetall("overdue:queues").unwrap();
    assert_eq!(QueueInfo::decode(&queues[&b"orders"[..]]).unwrap().partitions, 4);
    assert_balanced(&cluster, "orders", 4);
}

#[test]
fn a_slot_that_has_moved_is_found_at_its_new_node() {
    let cluster = Cluster::start();
    let name = |number: u32| format!("overdue:{{orders:{number}}}:index");
    for language in Language::ALL {
        let mut speaker = Speaker::patient(language, cluster.nodes()[0].addr(), 5);
        speaker.schedule(b"order-1001", b"", &json!({"delay": 900}));
        let key = name(overdue_protocol::partition::of(b"order-1001", 4));
        let old = cluster.node_of(key.as_bytes());
        let new = cluster.nodes().iter().find(|node| node.port() != old.port()).unwrap();
        let slot = old.call(&["CLUSTER", "KEYSLOT", &key]).int().unwrap().to_string();
        let there = new.call(&["CLUSTER", "MYID"]).text();
        let keys = old.call(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        let keys: Vec<_> = keys.items().iter().map(overdue_tests::redis::Value::text).collect();
        new.call(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &old.call(&["CLUSTER", "MYID"]).text()]);
        old.call(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &there]);
        let port = new.port().to_string();
        let head = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"].map(str::to_owned);
        old.call(&head.into_iter().chain(keys).collect::<Vec<_>>());
        for node in [new, old] {
            node.call(&["CLUSTER", "SETSLOT", &slot, "NODE", &there]);
        }
        let moved = speaker.schedule(b"order-1001", b"", &json!({"delay": 1800}));
        assert_eq!(moved["change"], "replaced", "{language:?}: {moved}");
    }
    assert_balanced(&cluster, "orders", 4);
}
