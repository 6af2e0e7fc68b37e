//! `show`: every place that can hold something of an id.

use overdue_protocol::call::{Complete, CompleteItem};
use overdue_tests::{FiredKey, eventually_blocking};
use serde_json::{Value, json};

use super::stage::{Stage, objects, partition, standing};

fn stage() -> Stage {
    let stage = Stage::new();
    stage.ok("queues create orders --history 10");
    stage.join("orders", "billing");
    stage
}

/// Fires a timer `a` and hands it to a group.
fn fired(stage: &Stage) {
    stage.arm_due("orders", b"a", b"pay");
    assert_eq!(stage.fire("orders"), 1);
}

fn places(stage: &Stage, id: &str) -> Vec<Value> {
    stage.json(&format!("show orders {id}")).iter().map(|one| one["place"].clone()).collect()
}

#[test]
fn a_timeout_is_followed_from_its_arming_to_its_end() {
    let stage = stage();
    let unknown = stage.code(1, "show orders a");
    assert_eq!(unknown.stdout, "");
    assert!(
        unknown.stderr.contains("nothing is known of a in orders: it was never armed"),
        "{}",
        unknown.stderr
    );
    assert!(unknown.stderr.contains("done before the last 10 of its partition"), "{}", unknown.stderr);

    stage.ok("schedule orders a --in 1h --payload hello");
    assert_eq!(places(&stage, "a"), ["armed"]);
    stage.ok("cancel orders a");
    fired(&stage);
    let unread = &stage.json("show orders a")[0];
    assert_eq!(
        (&unread["place"], &unread["group"], &unread["attempt"]),
        (&"unread".into(), &"billing".into(), &1.into())
    );
    assert!(stage.ok("show orders a").contains("\nunread      billing was not given it yet\ngeneration  "));

    let taken = stage.take("orders", "billing");
    let held = &stage.json("show orders a")[0];
    assert_eq!((&held["place"], &held["by"], &held["begun_alone"]), (&"held".into(), &"c".into(), &0.into()));
    assert_eq!((&held["payload"], &held["entry"]), (&"pay".into(), &taken[0].to_string().into()));
    assert!(
        stage.ok("show orders a").contains("\nheld        by c for billing; taken, or its lease renewed, ")
    );

    stage.retry("orders", "billing", &taken);
    let waiting = &stage.json("show orders a")[0];
    assert_eq!(
        (&waiting["place"], &waiting["group"], &waiting["attempt"]),
        (&"waiting".into(), &"billing".into(), &2.into())
    );
    let text = stage.ok("show orders a");
    assert!(text.contains("\nwaiting     for billing: not before ") && text.contains("Z (in "), "{text}");

    stage.ok("discard orders a");
    fired(&stage);
    let taken = stage.take("orders", "billing");
    stage.bury("orders", "billing", &taken);
    let dead = &stage.json("show orders a")[0];
    assert_eq!(
        (&dead["place"], &dead["reason"], &dead["by"]),
        (&"dead".into(), &"rejected".into(), &"c".into())
    );
    let letter = dead["letter"].as_str().unwrap();
    let text = stage.ok("show orders a");
    assert!(text.contains(&format!("\ndead        letter {letter} of billing, buried ")), "{text}");
    assert!(
        text.contains("\nreason      rejected\ndetail      no such\n            order\nby          c\n"),
        "{text}"
    );
    stage.ok(&format!("dead purge orders {letter}"));
    stage.code(1, "show orders a");
}

#[test]
fn what_is_done_is_known_while_the_queue_keeps_a_history() {
    let stage = stage();
    fired(&stage);
    let taken = stage.take("orders", "billing");
    let complete = |entry, history| Complete {
        by: standing("orders", "billing"),
        items: vec![CompleteItem::Done(entry)],
        history,
    };
    stage.wire().run(&complete(taken[0], 10)).unwrap();
    let done = &stage.json("show orders a")[0];
    let fields = ["place", "group", "by", "attempt", "kind"].map(|name| done[name].clone());
    assert_eq!(json!(fields), json!(["done", "billing", "c", 1, "timer"]));
    assert!(done["done_ms"].as_u64().unwrap() > 0 && done.get("payload").is_none(), "{done}");
    assert!(stage.ok("show orders a").contains("\ndone        by c for billing 20"));

    assert!(
        stage
            .ok("queues set orders --history 0")
            .contains("keeps no history any more; it was 10, and is deleted")
    );
    let gone = stage.code(1, "show orders a");
    assert!(
        gone.stderr.contains("or is done (`overdue queues set orders --history 1000` would"),
        "{}",
        gone.stderr
    );
}

#[test]
fn what_a_consumer_has_done_is_found_with_its_name() {
    let stage = stage();
    fired(&stage);
    let consume = ["consume", "--queue", "orders", "--group", "billing", "--print", "--listen", "off"];
    let _consumer = stage.launch(consume).start();
    let done = eventually_blocking("the timeout is done", || {
        stage.json("show orders a").into_iter().find(|one| one["place"] == "done")
    });
    assert_eq!((&done["group"], &done["attempt"], &done["id"]), (&"billing".into(), &1.into(), &"a".into()));
    assert!(done["by"].as_str().is_some_and(|name| !name.is_empty()), "{done}");
    assert_eq!(places(&stage, "a"), ["done"]);
}

#[test]
fn each_group_has_its_own_place_in_the_stream() {
    let stage = stage();
    stage.join("orders", "mailing");
    stage.join("orders", "stock");
    fired(&stage);
    let taken = stage.take("orders", "billing");
    stage.redis.call(&[b"XACK".as_slice(), &partition("orders").stream(), b"billing", &taken[0].to_bytes()]);
    stage.take("orders", "mailing");
    // Its holder died twice while it ran alone: the counter of its deliveries says so.
    let stream = partition("orders").stream();
    stage.redis.call(&[
        b"XCLAIM".as_slice(),
        &stream,
        b"mailing",
        b"d",
        b"0",
        &taken[0].to_bytes(),
        b"RETRYCOUNT",
        b"3",
        b"JUSTID",
    ]);
    let found = stage.json("show orders a");
    let of = |n: usize| ["place", "group", "by", "begun_alone"].map(|name| found[n][name].clone());
    assert_eq!(json!(of(0)), json!(["finished", "billing", null, null]));
    assert_eq!(json!(of(1)), json!(["held", "mailing", "d", 2]));
    assert_eq!(json!(of(2)), json!(["unread", "stock", null, null]));
    let text = stage.ok("show orders a");
    assert_eq!(text.matches("\npayload     3 bytes").count(), 1, "one entry, one payload: {text}");
    for part in
        ["\nfinished    by billing; the entry", "\nalone       begun 2 times", "\nunread      stock was not"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    stage.redis.call(&[b"XADD".as_slice(), &stream, b"*", b"id", b"b", b"group", b"nobody"]);
    assert!(
        stage.ok("show orders b").contains("unread      it is addressed to group nobody, which is gone\n")
    );
}

#[test]
fn a_queue_that_nobody_reads_says_so() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    fired(&stage);
    assert!(stage.ok("show orders a").contains("\nunread      no group reads this queue\n"));
    assert_eq!(stage.json("show orders a")[0]["group"], Value::Null);
}

#[test]
fn several_lives_of_an_id_are_all_found() {
    let stage = stage();
    for _ in 0..3 {
        fired(&stage);
        let taken = stage.take("orders", "billing");
        stage.bury("orders", "billing", &taken);
    }
    fired(&stage);
    stage.ok("schedule orders a --in 1h");
    assert_eq!(places(&stage, "a"), ["armed", "unread", "dead", "dead", "dead"]);
    assert_eq!(stage.json("show orders a --limit 3").len(), 3);
    assert!(stage.ok("show orders a --limit 3").ends_with("\nstopped after 3 places: --limit 0 shows all\n"));
}

#[test]
fn a_watched_key_is_found_by_its_name_whatever_its_database() {
    let stage = stage();
    let (watched, last) = (partition("orders").watched(), partition("orders").last());
    let key = "session:{1}/ü";
    let due = stage.redis.now_ms() + 60_000;
    stage.redis.call(&[
        b"ZADD".as_slice(),
        &watched,
        due.to_string().as_bytes(),
        format!("11:{key}").as_bytes(),
    ]);
    // As docs/PROTOCOL.md section 2 writes it.
    let captured = b"\x94\xcf\x00\x00\x01\x9a\xd6\x2f\x10\x80\xa3raw\xa2\xff\0\xa0";
    stage.redis.call(&[b"HSET".as_slice(), &last, format!("11:{key}").as_bytes(), captured]);
    let found = &stage.json(&format!("show orders {key}"))[0];
    let fields =
        ["place", "kind", "db", "due_ms", "captured_ms", "payload_base64"].map(|name| found[name].clone());
    assert_eq!(json!(fields), json!(["watched", "key", 11, due, 1_764_530_000_000_u64, "/wA="]));
    let text = stage.ok(&format!("show orders {key}"));
    assert!(text.contains("\nwatched     ends 20") && text.contains("\ndb          11\n"), "{text}");

    let long = "x".repeat(65_536);
    FiredKey::new(long.clone(), 7).fire(&mut stage.wire(), &partition("orders"));
    assert_eq!(places(&stage, &long), ["unread"]);
}

#[test]
fn wrong_input_is_told_apart_from_what_is_not_there() {
    let stage = stage();
    let no_queue = stage.code(1, "show ordes a");
    assert!(no_queue.stderr.contains("the nearest name is orders"), "{}", no_queue.stderr);
    stage.code(2, "show orders");
    stage.code(2, "show Orders a");
    assert_eq!(stage.run(["show", "orders", ""]).code, Some(2));
    assert_eq!(objects(&stage.code(1, "show orders a --json")), [Value::Null; 0]);
}
