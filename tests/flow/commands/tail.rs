//! `tail`.

use overdue_tests::eventually_blocking;

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
