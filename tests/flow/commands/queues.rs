//! `queues`, `groups`, `pause`, `resume`.

use super::stage::{Stage, objects, partition};

#[test]
fn a_queue_keeps_its_partitions() {
    let stage = Stage::new();
    assert!(stage.ok("queues list").starts_with("no queues"));
    assert_eq!(stage.ok("queues create orders --partitions 3"), "created queue orders with 3 partitions\n");
    let again = &stage.json("queues create orders --partitions 3")[0];
    assert_eq!(*again, serde_json::json!({"queue": "orders", "partitions": 3, "created": false}));
    assert_eq!(stage.ok("queues create orders"), "queue orders is there already, with 3 partitions\n");
    let other = stage.code(2, "queues create orders --partitions 4");
    assert!(other.stderr.contains("queue orders has 3 partitions and keeps them"), "{}", other.stderr);
    stage.code(2, "queues create orders --partitions 0");
    assert_eq!(stage.ok("queues create one"), "created queue one with 1 partition\n");
}

#[test]
fn a_list_of_queues_counts_what_each_holds() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h");
    for id in [b"r", b"d", b"s"] {
        stage.arm_due("orders", id, b"");
    }
    stage.join("orders", "billing");
    assert_eq!(stage.fire("orders"), 3);
    let taken = stage.take("orders", "billing");
    stage.retry("orders", "billing", &taken[..1]);
    stage.bury("orders", "billing", &taken[1..2]);
    stage.arm_due("orders", b"late", b"");
    stage.ok("pause orders");
    let queue = &stage.json("queues list")[0];
    let counts = ["partitions", "armed", "overdue", "retries", "stream", "dead"]
        .map(|name| queue[name].as_u64().unwrap());
    assert_eq!(counts, [1, 2, 1, 1, 1, 1], "{queue}");
    assert_eq!((&queue["queue"], &queue["paused"]), (&"orders".into(), &true.into()));
    let table = stage.ok("queues list");
    let cells: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().take(8).collect();
    assert_eq!(cells, ["orders", "1", "2", "1", "1", "1", "1", "yes"], "{table}");
}

#[test]
fn pause_and_resume_say_when_there_is_no_such_queue() {
    let stage = Stage::new();
    assert!(
        stage.code(1, "pause orders").stderr.contains("there is no queue orders: there are no queues at all")
    );
    stage.ok("queues create orders");
    assert!(stage.ok("pause orders").starts_with("paused orders: "));
    assert_eq!(stage.json("resume orders"), [serde_json::json!({"queue": "orders", "paused": false})]);
    assert_eq!(stage.json("queues list")[0]["paused"], false);
}

#[test]
fn groups_are_counted_and_dropped_with_their_retries_on_all_partitions() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    assert!(stage.ok("groups list").starts_with("no groups"));
    stage.join("orders", "billing");
    stage.join("orders", "mailing");
    for n in 0..5 {
        stage.arm_due("orders", format!("t{n}").as_bytes(), b"");
    }
    stage.fire("orders");
    let taken = stage.take("orders", "billing");
    stage.retry("orders", "billing", &taken[..2]);
    let groups = stage.json("groups list orders");
    let of =
        |n: usize| ["consumers", "undelivered", "pending", "retries"].map(|name| groups[n][name].clone());
    assert_eq!(of(0), [1, 0, 3, 2].map(serde_json::Value::from));
    assert_eq!(of(1), [0, 5, 0, 0].map(serde_json::Value::from));
    assert!(stage.ok("groups list").contains("orders  mailing"), "{}", stage.ok("groups list"));

    let dropped = stage.json("groups drop orders billing");
    assert_eq!(
        dropped,
        [serde_json::json!({"queue": "orders", "group": "billing", "dropped": true, "retries": 2})]
    );
    assert_eq!(stage.redis.count(&[b"ZCARD".as_slice(), &partition("orders").retry_index()]), 0);
    assert_eq!(stage.json("groups list").len(), 1);
    let again = stage.code(1, "groups drop orders billing --json");
    assert!(again.stderr.contains("there is no group billing in queue orders"), "{}", again.stderr);
    assert_eq!(objects(&again)[0]["dropped"], false);
    stage.code(2, "groups drop orders Billing");
}

#[test]
fn what_redis_does_not_know_is_a_question_mark() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    for id in [b"a", b"b", b"c"] {
        stage.arm_due("orders", id, b"");
    }
    stage.fire("orders");
    let stream = partition("orders").stream();
    let all = stage.wire().xrange(&stream).unwrap();
    // A hole among what was not delivered: Redis can't count it.
    stage.redis.call(&[b"XDEL".as_slice(), &stream, &all[1].id.to_bytes()]);
    assert_eq!(stage.json("groups list")[0]["undelivered"], serde_json::Value::Null);
    let table = stage.ok("groups list");
    let cells: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(cells, ["orders", "billing", "0", "?", "0", "0"], "{table}");
}
