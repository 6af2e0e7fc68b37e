//! On a cluster a touch runs at one node, for keys of all its slots (sections 5 and 6).

use bytes::Bytes;
use overdue_protocol::watch::{
    Capture, Found, Seen, Touched, found_values, mark_channel, touch_args, values_args,
};
use overdue_protocol::{Keyspace, script};
use overdue_tests::{Cluster, Redis, Wire, eventually_blocking};

use crate::watched::run;

/// Redis 6.2 does not know the first line of the text, and does not need it.
fn texts(node: &Redis) -> [&'static overdue_protocol::Script; 2] {
    if node.info("server")["redis_version"].starts_with("6.") {
        [&script::TOUCH, &script::VALUES]
    } else {
        [&script::TOUCH_ANYWHERE, &script::VALUES_ANYWHERE]
    }
}

/// The keys among `prefix` 0 .. that this node serves, and one that it does not.
fn shares(cluster: &Cluster, node: &Redis, prefix: &str) -> (Vec<Bytes>, Bytes) {
    let names = (0..300).map(|n| Bytes::from(format!("{prefix}{n}")));
    let (ours, theirs): (Vec<_>, Vec<_>) = names.partition(|key| cluster.node_of(key).port() == node.port());
    (ours, theirs[0].clone())
}

#[test]
fn keys_of_many_slots_are_touched_proven_and_read_at_their_node() {
    let cluster = Cluster::start();
    let guard = Keyspace::default().guard("0");
    let node = cluster.node_of(&guard);
    let mut wire = Wire::connect(node);
    let [touch_text, values_text] = texts(node);
    let near = Capture { limit: 100, within_ms: 60_000 };
    let touch = |wire: &mut Wire, keys: &[Bytes]| {
        let reply =
            run(wire, touch_text, touch_args(mark_channel(0), "a-node", guard.clone(), near, keys)).unwrap();
        Touched::decode(reply, keys.len()).unwrap()
    };
    let (mut keys, other) = shares(&cluster, node, "key:");
    eventually_blocking("a touch comes before Redis' own expiry", || {
        for key in &keys {
            wire.call(&[b"SET".as_slice(), key, b"v", b"PX", b"1"]).unwrap();
        }
        let now = wire.now_ms();
        eventually_blocking("they end", || wire.now_ms() > now + 2);
        let seen = touch(&mut wire, &keys).seen;
        let proven = seen.iter().filter(|seen| **seen == Seen::Proven).count();
        assert!(seen.iter().all(|seen| matches!(seen, Seen::Proven | Seen::Gone)));
        (proven == keys.len()).then_some(())
    });
    for key in &keys {
        wire.call(&[b"SET".as_slice(), key, b"v", b"PX", b"60000"]).unwrap();
    }
    keys.push(other);
    let touched = touch(&mut wire, &keys);
    let (last, ours) = touched.seen.split_last().unwrap();
    assert_eq!(*last, Seen::Elsewhere);
    assert!(ours.iter().all(|seen| matches!(seen, Seen::Due(_))), "{ours:?}");
    assert_eq!(
        (touched.captured.len(), touched.captured[&0].clone()),
        (ours.len(), Found::String("v".into()))
    );
    let reply = run(&mut wire, values_text, values_args(9, &keys)).unwrap();
    let found = found_values(reply, keys.len()).unwrap();
    assert_eq!(found.last().unwrap(), &None, "ask where it is served");
    assert_eq!(found.iter().flatten().count(), ours.len());
    // A full node still answers.
    wire.call(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    assert!(matches!(touch(&mut wire, &keys[..1]).seen[0], Seen::Due(_)));
    // One that does not serve the guard is asked with another tag.
    let elsewhere = (0..).map(|n| Keyspace::default().guard(&n.to_string()));
    let wrong = elsewhere.into_iter().find(|key| cluster.node_of(key).port() != node.port()).unwrap();
    let refused =
        run(&mut wire, touch_text, touch_args(mark_channel(0), "a-node", wrong, near, &keys)).unwrap_err();
    assert!(refused.contains("non local key"), "{refused}");
}
