//! What makes a server unsafe, and who is deaf to it.

use overdue_tests::redis::Options;
use overdue_tests::{Launch, Redis, eventually_blocking};

use super::{assert_found, findings};
use crate::commands::stage::{Stage, partition};

#[test]
fn a_ttl_on_a_key_of_ours_is_found() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h");
    assert_eq!(findings(&stage, "ttl"), []);
    stage.redis.call(&[b"PEXPIRE".as_slice(), &partition("orders").index(), b"7200000"]);
    assert_found(
        &stage,
        "ttl",
        "bad",
        "{orders:0}:index has a TTL: Redis deletes it, with all it holds, in 2h",
    );
    assert_eq!(findings(&stage, "ttl").len(), 1);
}

#[test]
fn memory_that_is_nearly_used_up_is_found() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h");
    assert_found(&stage, "memory", "ok", "1 timers are armed, and there is room for some ");
    stage.redis.call(&["CONFIG", "SET", "maxmemory", "1gb"]);
    assert_found(&stage, "memory", "ok", "of 1,073,741,824 bytes (maxmemory)");
    stage.redis.call(&["CONFIG", "SET", "maxmemory", "100kb"]);
    assert_found(&stage, "memory", "bad", "room for some 0 more");
}

#[test]
fn a_relay_that_hears_no_notifications_is_found_until_it_hears_them() {
    let stage = Stage::new();
    let relay = Launch::relay(&stage.redis.url())
        .args(["--watch", "session:*=sessions", "--keyspace-events", "check"])
        .start();
    eventually_blocking("the relay is blind", || match &findings(&stage, "blind")[..] {
        [(level, text)] if level == "bad" && text.contains("no notifications come") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    stage.redis.call(&["CONFIG", "SET", "notify-keyspace-events", "AKE"]);
    eventually_blocking("the relay hears", || match &findings(&stage, "blind")[..] {
        [] => Ok(()),
        other => Err(format!("{other:?}")),
    });
    drop(relay);
}

#[test]
fn a_replica_that_is_not_in_step_is_found() {
    let stage = Stage { redis: Redis::with(Options::default()) };
    let replica = Redis::start();
    replica.call(&["REPLICAOF", "127.0.0.1", &stage.redis.port().to_string()]);
    eventually_blocking("the replica is in step", || {
        let role = findings(&stage, "role");
        let joined = role[0].1 == "primary with 1 replicas" && findings(&stage, "replicas").is_empty();
        if joined { Ok(()) } else { Err(role) }
    });
}
