//! `tail`.

use overdue_tests::{FiredKey, eventually_blocking};

use super::stage::{Stage, partition};

#[test]
fn each_timeout_is_a_line_as_it_fires_on_every_partition_and_nothing_is_acknowledged() {
    let stage = Stage::new();
    stage.ok("queues create orders --partitions 2");
    stage.join("orders", "billing");
    stage.arm_due("orders", b"before", b"");
    stage.fire("orders");
    let tail = stage.launch(["tail", "orders", "--json", "--from", "oldest"]).start();
    let seen = |n: usize| {
        eventually_blocking("tail shows the timeouts", || {
            let text = tail.stdout();
            (text.lines().count() >= n).then_some(text)
        })
    };
    seen(1);
    let other = overdue_protocol::Keyspace::default().partition(partition("orders").queue(), 1).stream();
    stage.arm_due("orders", b"a\n\xff", b"\x00");
    stage.fire("orders");
    seen(2);
    stage.redis.call(&[b"XADD".as_slice(), &other, b"*", b"no", b"timeout"]);
    let text = seen(3);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["id"], &lines[1]["id_base64"], &lines[1]["payload"]),
        (&"before".into(), &"YQr/".into(), &"\0".into())
    );
    assert_eq!((&lines[2]["malformed"], &lines[2]["partition"]), (&"the entry has no id".into(), &1.into()));
    assert_eq!(stage.take("orders", "billing").len(), 2, "nothing was taken from the group");
    tail.sigterm();
    assert_eq!(tail.wait_exit(overdue_tests::patience()).code(), Some(130));
}

#[test]
fn tail_begins_with_what_fires_from_now_on_and_ends_at_its_limit() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.arm_due("orders", b"before", b"");
    stage.fire("orders");
    let tail = stage.launch(["tail", "orders", "--limit", "2"]).start();
    eventually_blocking("tail is blocked in its read", || {
        stage.redis.call(&["CLIENT", "LIST"]).text().lines().any(|client| client.contains("cmd=xread"))
    });
    for id in [b"a", b"b", b"c"] {
        stage.arm_due("orders", id, b"hello");
    }
    stage.fire("orders");
    assert!(tail.wait_exit(overdue_tests::patience()).success(), "{}", tail.stderr());
    let text = tail.stdout();
    assert!(text.starts_with("FIRED ") && text.lines().count() == 3, "{text}");
    assert!(text.lines().nth(1).unwrap().ends_with("  a   hello"), "{text}");
    stage.code(1, "tail ordes");
}

#[test]
fn a_watched_key_is_shown_with_its_rule_db_and_proof() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    let fire = |key: FiredKey| key.fire(&mut stage.wire(), &partition("orders"));
    fire(FiredKey::new("session:42", 7).with("proof", "none").with("cause", "evicted"));
    fire(FiredKey::new(vec![0xff; 65_536], 8));
    let objects = stage.json("tail orders --from oldest --limit 2");
    let fields = ["kind", "rule", "db", "proof", "captured_ms", "cause"].map(|name| objects[0][name].clone());
    let expected = serde_json::json!(["key", "sessions", 3, "none", 950, "evicted"]);
    assert_eq!(serde_json::json!(fields), expected);
    assert_eq!(objects[1]["id_base64"].as_str().map(str::len), Some(87_384));
    let text = stage.ok("tail orders --from oldest --limit 2");
    assert!(text.contains("  sessions, db 3, proof none, evicted  session:42 "), "{text}");
    assert!(text.contains("... (65536 bytes)") && text.len() < 2_000, "{text}");
}

#[test]
fn tail_goes_on_after_redis_was_away() {
    let stage = Stage { redis: overdue_tests::Redis::with_aof() };
    stage.ok("queues create orders");
    let tail = stage.launch(["tail", "orders", "--json", "--from", "oldest"]).start();
    stage.arm_due("orders", b"a", b"");
    stage.fire("orders");
    let lines =
        |n: usize| eventually_blocking("tail shows the timeouts", || tail.stdout().lines().count() == n);
    lines(1);
    stage.redis.kill9();
    stage.redis.restart().unwrap();
    stage.arm_due("orders", b"b", b"");
    stage.fire("orders");
    lines(2);
}
