//! `doctor`: each fault has its finding, and what to do.

use overdue_protocol::member::Member;
use overdue_protocol::{FORMAT, Keyspace, QueueInfo};
use overdue_tests::program::Finished;
use overdue_tests::redis::Options;
use overdue_tests::{Launch, Redis, eventually_blocking, patience};
use serde_json::Value;

use super::stage::{Stage, objects, partition};

mod groups;
mod server;
mod watching;

/// The findings of a check: level and text.
fn findings(stage: &Stage, check: &str) -> Vec<(String, String)> {
    read(&stage.run(["doctor", "--json"]), check)
}

fn read(found: &Finished, check: &str) -> Vec<(String, String)> {
    let all = objects(found);
    let bad = all.iter().any(|finding| finding["level"] == "bad");
    assert_eq!(found.code, Some(if bad { 4 } else { 0 }), "{found:?}");
    assert_eq!(bad, found.stderr.contains("something must be done"), "{}", found.stderr);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of_check = all.iter().filter(|finding| finding["check"] == check);
    of_check.map(|finding| (text(&finding["level"]), text(&finding["finding"]))).collect()
}

fn assert_found(stage: &Stage, check: &str, level: &str, part: &str) {
    let found = findings(stage, check);
    assert!(
        found.iter().any(|(l, text)| l == level && text.contains(part)),
        "{check} {level} {part:?}: {found:#?}"
    );
}

/// Writes a process without watch rules down as alive.
fn member(stage: &Stage, name: &str, role: &str, queues: &[&str], seen: u64) {
    member_with(stage, name, role, queues, seen, "");
}

fn member_with(stage: &Stage, name: &str, role: &str, queues: &[&str], seen: u64, rules: &str) {
    let text = |text: &str| text.to_owned();
    let queues = queues.iter().map(|queue| text(queue)).collect();
    let (version, host, rules) = (text("1.0.0"), text("here"), text(rules));
    let (pid, trouble) = (1, String::new());
    let member = Member { role: text(role), version, host, pid, started: seen, seen, queues, rules, trouble };
    stage.redis.call(&[
        b"HSET".as_slice(),
        &Keyspace::default().members(),
        name.as_bytes(),
        &member.encode(),
    ]);
}

#[test]
fn with_a_relay_and_a_consumer_at_work_nothing_must_be_done() {
    let stage = Stage { redis: Redis::with_aof() };
    stage.ok("schedule orders a --in 1h");
    let url = stage.redis.url();
    let relay = Launch::relay(&url).start();
    let consumer = Launch::consume(&url, "orders", "billing").args(["--print"]).start();
    eventually_blocking("doctor is content", || {
        let found = stage.run(["doctor"]);
        let content = found.code == Some(0) && found.stdout.lines().all(|line| line.starts_with("ok  "));
        if content { Ok(()) } else { Err(found) }
    });
    let checks = [
        "reach",
        "version",
        "role",
        "persistence",
        "eviction",
        "memory",
        "notifications",
        "clock",
        "relays",
        "overdue",
        "groups",
    ];
    for check in checks {
        assert_eq!(findings(&stage, check).len(), 1, "{check}");
    }
    consumer.sigterm();
    relay.sigterm();
    assert!(relay.wait_exit(patience()).success() && consumer.wait_exit(patience()).success());
    assert_found(&stage, "relays", "bad", "nothing fires");
}

#[test]
fn a_queue_that_no_relay_works_for_is_found() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    let now = stage.redis.now_ms();
    member(&stage, "a", "relay", &["mails"], now);
    assert_found(&stage, "relays", "bad", "no relay works for queue orders");
    member(&stage, "b", "relay", &[], now);
    assert_eq!(findings(&stage, "relays").len(), 1);
}

#[test]
fn what_must_be_done_comes_first_and_says_what_to_do() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h");
    let found = stage.code(4, "doctor");
    let levels: Vec<_> =
        found.stdout.lines().filter(|line| !line.starts_with("  ")).map(|line| &line[..4]).collect();
    assert!(
        found.stdout.starts_with("BAD   relays "),
        "why nothing is handled stands first: {}",
        found.stdout
    );
    let mut sorted = levels.clone();
    sorted.sort_by_key(|level| ["BAD ", "warn", "ok  "].iter().position(|known| known == level));
    assert_eq!(levels, sorted);
    assert!(found.stdout.contains("-> start one or more: overdue relay\n"), "{}", found.stdout);
    assert_found(&stage, "persistence", "bad", "no append-only file and no snapshots");
    assert_found(&stage, "notifications", "warn", "lacks Ex");
}

#[test]
fn a_relay_counts_only_while_it_was_seen_lately() {
    let stage = Stage::new();
    assert_found(&stage, "relays", "bad", "nothing fires");
    let now = stage.redis.now_ms();
    member(&stage, "r", "relay", &[], now - 11_000);
    assert_found(&stage, "relays", "bad", "nothing fires");
    member(&stage, "r", "relay", &[], now);
    assert_found(&stage, "relays", "ok", "1 alive on here");
    assert_found(&stage, "queues", "ok", "no queues yet");
}

#[test]
fn a_queue_without_group_and_a_group_without_consumer_are_found() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    assert_found(&stage, "groups", "warn", "queue orders has no group");
    stage.ok("schedule orders a --in 1h");
    assert_found(&stage, "groups", "bad", "queue orders has no group");
    stage.join("orders", "billing");
    assert_found(&stage, "groups", "bad", "group billing of orders has no consumer");
    // A reader in another language is no member, but it asks for work.
    stage.arm_due("orders", b"b", b"");
    stage.fire("orders");
    stage.take("orders", "billing");
    assert_found(&stage, "groups", "ok", "group billing of orders has a consumer");
}

#[test]
fn eviction_is_bad_when_any_key_may_go() {
    let stage = Stage::new();
    stage.redis.call(&["CONFIG", "SET", "maxmemory", "100mb"]);
    for (policy, level, part) in [
        ("allkeys-lru", "bad", "deletes any key"),
        ("volatile-lru", "warn", "keyed timers"),
        ("noeviction", "ok", "noeviction"),
    ] {
        stage.redis.call(&["CONFIG", "SET", "maxmemory-policy", policy]);
        assert_found(&stage, "eviction", level, part);
    }
}

#[test]
fn snapshots_alone_are_worth_a_word() {
    let stage = Stage { redis: Redis::with(Options::default().line("save 3600 1")) };
    assert_found(&stage, "persistence", "warn", "snapshots only");
}

#[test]
fn overdue_timers_dead_letters_and_a_pause_are_found() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    stage.arm_due("orders", b"dead", b"");
    stage.fire("orders");
    let taken = stage.take("orders", "billing");
    stage.bury("orders", "billing", &taken);
    stage.arm_due("orders", b"late", b"");
    stage.ok("pause orders");
    assert_found(
        &stage,
        "overdue",
        "bad",
        "queue orders: overdue timers: 1; the oldest timer or retry is late by 5",
    );
    assert_found(
        &stage,
        "dead letters",
        "warn",
        "queue orders: dead letters: 1, and growing: the newest came ",
    );
    assert_found(&stage, "paused", "warn", "queue orders is paused");
}

#[test]
fn a_newer_format_and_another_number_of_partitions_are_found() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h");
    let queues = Keyspace::default().queues();
    let write = |partitions, format| {
        let info = QueueInfo { partitions, created_ms: 1, format, paused: false, history: 0 };
        stage.redis.call(&[b"HSET".as_slice(), &queues, b"orders", &info.encode()]);
    };
    write(2, FORMAT);
    assert_found(&stage, "partitions", "bad", "queue orders says 2 partitions, its data says 1");
    write(1, FORMAT + 1);
    assert_found(&stage, "format", "bad", "upgrade this program");
    assert!(stage.code(3, "list orders").stderr.contains("upgrade this program"));
    assert!(stage.code(3, "schedule orders b --in 1h").stderr.contains("upgrade this program"));
    assert_eq!(stage.redis.count(&[b"ZCARD".as_slice(), &partition("orders").index()]), 1);
}

#[test]
fn a_replica_is_found() {
    let primary = Redis::start();
    let stage = Stage::new();
    stage.redis.call(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    assert_found(&stage, "role", "bad", "this is a replica");
}

#[test]
fn without_redis_the_finding_is_reach_and_the_exit_code_3() {
    let stage = Stage::new();
    stage.redis.kill9();
    let found = stage.code(3, "doctor --json");
    assert_eq!(
        (&objects(&found)[0]["level"], &objects(&found)[0]["check"]),
        (&"bad".into(), &"reach".into())
    );
}
