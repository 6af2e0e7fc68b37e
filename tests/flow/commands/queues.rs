//! `queues`, `groups`, `pause`, `resume`.

use super::stage::{Stage, objects, partition};

#[test]
fn a_queue_keeps_its_partitions() {
    let stage = Stage::new();
    assert!(stage.ok("queues list").starts_with("no queues"));
    assert_eq!(stage.ok("queues create orders --partitions 3"), "created queue orders with 3 partitions\n");
    let again = &stage.json("queues create orders --partitions 3")[0];
    assert_eq!(
        *again,
        serde_json::json!({"queue": "orders", "partitions": 3, "history": 0, "created": false})
    );
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
    let cells: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().take(9).collect();
    assert_eq!(cells, ["orders", "1", "2", "1", "1", "1", "1", "0", "yes"], "{table}");
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
    let of = |n: usize| {
        ["consumers", "live", "backlog", "undelivered", "pending", "retries"]
            .map(|name| groups[n][name].clone())
    };
    assert_eq!(of(0), [1, 1, 5, 0, 3, 2].map(serde_json::Value::from));
    assert_eq!(of(1), [0, 0, 5, 5, 0, 0].map(serde_json::Value::from));
    assert!(groups[1]["oldest_age_ms"].as_u64().is_some_and(|age| age < 60_000), "{}", groups[1]);
    assert!(
        stage.ok("groups list").contains("\norders  mailing  overdue  0     5 "),
        "{}",
        stage.ok("groups list")
    );

    let would = &stage.json("groups drop orders billing --dry-run")[0];
    assert_eq!(
        (&would["dropped"], &would["dry_run"], &would["retries"]),
        (&false.into(), &true.into(), &2.into())
    );
    let would = stage.ok("groups drop orders billing --dry-run");
    let what =
        "group billing of orders: 0 undelivered, 3 pending, 2 waiting retries, and its part of the books";
    assert!(
        would.starts_with(&format!("would drop {what}; nothing was done\n1 of its consumers were seen")),
        "{would}"
    );
    assert_eq!(stage.json("groups list").len(), 2);

    let dropped = &stage.json("groups drop orders billing")[0];
    let expected = serde_json::json!({"queue": "orders", "group": "billing", "dropped": true, "undelivered": 0, "pending": 3, "retries": 2, "live": 1});
    assert_eq!(*dropped, expected);
    assert_eq!(stage.redis.count(&[b"ZCARD".as_slice(), &partition("orders").retry_index()]), 0);
    assert_eq!(stage.json("groups list").len(), 1);
    let again = stage.code(1, "groups drop orders billing --json");
    assert!(again.stderr.contains("there is no group billing in queue orders"), "{}", again.stderr);
    assert_eq!(objects(&again)[0]["dropped"], false);
    stage.code(1, "groups drop orders billing --dry-run");
    stage.code(2, "groups drop orders Billing");
    let text = stage.ok("groups drop orders mailing");
    assert_eq!(
        text,
        "dropped group mailing of orders: 5 undelivered, 0 pending, 0 waiting retries, and its part of the books\n"
    );
}

#[test]
fn a_group_is_ours_plain_foreign_or_gone() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    for group in ["billing", "plain", "left"] {
        stage.join("orders", group);
    }
    let stream = partition("orders").stream();
    stage.redis.call(&[b"HSET".as_slice(), &partition("orders").tally(), b"plain:plain", b"1"]);
    stage.redis.call(&[b"XGROUP".as_slice(), b"CREATE", &stream, b"foreign", b"0"]);
    stage.redis.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"left"]);
    let kinds: Vec<_> = stage
        .json("groups list")
        .iter()
        .map(|one| [&one["group"], &one["kind"]].map(|text| text.as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(kinds, [["billing", "overdue"], ["foreign", "foreign"], ["left", "gone"], ["plain", "plain"]]);
    assert!(
        stage.ok("groups list").contains("\norders  left     gone     0     0 "),
        "{}",
        stage.ok("groups list")
    );
    // Its part of the books can be dropped all the same.
    assert!(stage.ok("groups drop orders left").starts_with("dropped group left of orders: "));
    assert_eq!(stage.json("groups list").len(), 3);
}

#[test]
fn a_history_is_set_at_creation_or_later() {
    let stage = Stage::new();
    assert_eq!(
        stage.ok("queues create orders --history 5"),
        "created queue orders with 1 partition and a history of 5\n"
    );
    stage.ok("queues create orders --history 5");
    let other = stage.code(2, "queues create orders --history 6");
    assert!(
        other.stderr.contains("change it with `overdue queues set orders --history 6`"),
        "{}",
        other.stderr
    );
    stage.ok("pause orders");
    assert_eq!(
        stage.json("queues set orders --history 7"),
        [serde_json::json!({"queue": "orders", "history": 7, "before": 5})]
    );
    let queue = &stage.json("queues list")[0];
    assert_eq!(
        (&queue["history"], &queue["paused"], &queue["partitions"]),
        (&7.into(), &true.into(), &1.into())
    );
    stage.ok("resume orders");
    assert_eq!(stage.json("queues list")[0]["history"], 7);
    assert!(stage.code(1, "queues set ordes --history 1").stderr.contains("the nearest name is orders"));
    for wrong in ["queues set orders", "queues set orders --history 1000001", "queues create q --history -1"]
    {
        stage.code(2, wrong);
    }
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
    let undelivered = || stage.json("groups list")[0]["undelivered"].clone();
    assert_eq!(undelivered(), 3);
    // A hole among what was not delivered: Redis can't count it.
    stage.redis.call(&[b"XDEL".as_slice(), &stream, &all[1].id.to_bytes()]);
    assert_eq!(undelivered(), 2, "nothing was delivered: all are undelivered");
    let one =
        [b"XREADGROUP".as_slice(), b"GROUP", b"billing", b"c", b"COUNT", b"1", b"STREAMS", &stream, b">"];
    stage.redis.call(&one);
    assert_eq!(undelivered(), serde_json::Value::Null);
    let table = stage.ok("groups list");
    let cells: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(cells[..8], ["orders", "billing", "overdue", "1", "3", "?", "1", "0"], "{table}");
    stage.redis.call(&one);
    assert_eq!(undelivered(), 0);
}
