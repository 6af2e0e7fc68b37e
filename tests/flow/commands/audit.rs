//! `audit`: what was made wrong by hand is found.

use overdue_tests::FiredKey;
use serde_json::json;

use super::stage::{Stage, objects, partition};

/// A queue with one of everything in it.
fn busy() -> Stage {
    let stage = Stage::new();
    stage.ok("schedule orders armed --in 1h");
    stage.ok("schedule orders armed --in 2h");
    stage.ok("schedule orders cancelled --in 1h");
    stage.ok("cancel orders cancelled");
    stage.join("orders", "billing");
    for id in ["retried", "buried", "pending", "unread"] {
        stage.arm_due("orders", id.as_bytes(), b"");
        stage.fire("orders");
        if id != "unread" {
            let taken = stage.take("orders", "billing");
            match id {
                "retried" => stage.retry("orders", "billing", &taken),
                "buried" => stage.bury("orders", "billing", &taken),
                _ => {}
            }
        }
    }
    stage
}

#[test]
fn books_that_balance_are_shown_with_all_their_numbers() {
    let stage = busy();
    assert!(Stage::new().ok("audit").starts_with("no queues"));
    overdue_tests::assert_balanced(&stage.redis, "orders", 1);
    let account = &stage.json("audit")[0];
    let timers = json!({"scheduled": 7, "foreign": 0, "replaced": 1, "cancelled": 1, "fired": 4, "armed": 1, "lost": 0, "twice": 0});
    assert_eq!(
        (&account["queue"], &account["state"], &account["timers"]),
        (&"orders".into(), &"balanced".into(), &timers)
    );
    let group = &account["groups"][0];
    let terms = [
        "fired",
        "watched",
        "base",
        "replayed",
        "done",
        "buried",
        "discarded",
        "waiting",
        "live",
        "lost",
        "twice",
    ];
    assert_eq!(terms.map(|term| group[term].as_i64().unwrap()), [4, 0, 0, 0, 0, 1, 0, 1, 2, 0, 0], "{group}");
    let text = stage.ok("audit orders");
    assert!(text.starts_with("queue orders: balanced\nSCHEDULED  FOREIGN  =  REPLACED"), "{text}");
    assert!(text.contains("\nbilling  4 "), "{text}");
    stage.code(1, "audit ordes");
}

#[test]
fn watched_keys_that_fired_have_their_place_in_the_books_and_a_lost_one_is_found() {
    let stage = busy();
    let fire = |name: &'static str| FiredKey::new(name, 7).fire(&mut stage.wire(), &partition("orders"));
    for name in ["retried", "buried", "pending"] {
        fire(name);
        // The first time with the timer that nobody had read.
        let taken = stage.take("orders", "billing");
        match name {
            "retried" => stage.retry("orders", "billing", &taken),
            "buried" => stage.bury("orders", "billing", &taken),
            _ => {}
        }
    }
    let unread = fire("unread");
    let account = &stage.json("audit orders")[0];
    let terms = ["fired", "watched", "buried", "waiting", "live"];
    let group = &account["groups"][0];
    assert_eq!(terms.map(|term| group[term].as_i64().unwrap()), [4, 4, 2, 3, 3], "{group}");
    assert_eq!(account["state"], "balanced");
    // Who joins now finds the two in the stream before it.
    stage.join("orders", "mailing");
    assert!(stage.ok("audit orders").starts_with("queue orders: balanced\n"));
    stage.redis.call(&[b"XDEL".as_slice(), &partition("orders").stream(), &unread.to_bytes()]);
    let found = stage.code(4, "audit orders");
    assert!(found.stdout.contains("group billing: 1 went in and are nowhere"), "{}", found.stdout);
}

#[test]
fn a_timer_that_was_taken_out_of_the_index_is_a_loss() {
    let stage = busy();
    stage.redis.call(&[b"ZREM".as_slice(), &partition("orders").index(), b"armed"]);
    let found = stage.code(4, "audit orders");
    assert!(
        found.stdout.contains("timers: 1 went in and are nowhere: this looks like loss"),
        "{}",
        found.stdout
    );
    assert!(found.stderr.contains("the books don't balance: orders"), "{}", found.stderr);
    let account = &objects(&stage.code(4, "audit --json"))[0];
    assert_eq!((&account["state"], &account["timers"]["lost"]), (&"differs".into(), &1.into()));
}

#[test]
fn an_entry_that_was_added_to_the_stream_is_a_duplicate() {
    let stage = busy();
    let stream = partition("orders").stream();
    stage.redis.call(&[b"XADD".as_slice(), &stream, b"*", b"id", b"pending", b"gen", b"1"]);
    let found = stage.code(4, "audit");
    let text = "group billing: 1 are there that never went in: this looks like duplicates";
    assert!(found.stdout.contains(text), "{}", found.stdout);
    let account = &objects(&stage.code(4, "audit orders --json"))[0];
    assert_eq!((&account["groups"][0]["twice"], &account["timers"]["twice"]), (&1.into(), &0.into()));
}

#[test]
fn an_entry_that_was_deleted_under_a_group_is_a_loss_and_one_for_another_group_is_not() {
    let stage = busy();
    let stream = partition("orders").stream();
    stage.redis.call(&[b"XADD".as_slice(), &stream, b"*", b"id", b"x", b"gen", b"1", b"group", b"mailing"]);
    stage.ok("audit orders");
    let pending = stage.wire().xrange(&stream).unwrap()[0].id;
    stage.redis.call(&[b"XDEL".as_slice(), &stream, &pending.to_bytes()]);
    let found = stage.code(4, "audit orders");
    assert!(found.stdout.contains("group billing: 1 went in and are nowhere"), "{}", found.stdout);
}

#[test]
fn a_group_without_books_proves_nothing_and_one_that_was_destroyed_is_named() {
    let stage = busy();
    let stream = partition("orders").stream();
    stage.redis.call(&[b"XGROUP".as_slice(), b"CREATE", &stream, b"foreign", b"0"]);
    let text = stage.ok("audit orders");
    assert!(text.contains("group foreign was not joined by a consumer of Overdue"), "{text}");
    stage.redis.call(&[b"DEL".as_slice(), &stream]);
    let found = stage.code(4, "audit orders");
    for part in ["group billing was removed from the stream", "group billing: 2 went in and are nowhere"] {
        assert!(found.stdout.contains(part), "{part}: {}", found.stdout);
    }
}

#[test]
fn long_streams_and_pending_lists_are_counted_in_pages_that_do_not_hold_redis_up() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    stage.join("orders", "mailing");
    let mut wire = stage.wire();
    let index = partition("orders").index();
    for n in 0..3_000 {
        wire.call(&[b"ZADD".as_slice(), &index, b"1", format!("t{n}").as_bytes()]).unwrap();
    }
    while stage.fire("orders") > 0 {}
    let taken = stage.take("orders", "billing");
    for chunk in taken.chunks(2).take(250) {
        stage.retry("orders", "billing", &chunk[..1]);
    }
    stage.redis.watch_for_slow(50);
    let account = &stage.json("audit orders")[0];
    stage.redis.assert_nothing_slow();
    assert_eq!(account["timers"]["foreign"], 3_000);
    let numbers = |n: usize| ["waiting", "live"].map(|name| account["groups"][n][name].as_u64().unwrap());
    assert_eq!((numbers(0), numbers(1)), ([250, 2_750], [0, 3_000]), "{account}");
}

#[test]
fn while_timers_are_armed_all_the_time_it_is_moving_and_no_error() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut wire = stage.wire();
            let tally = partition("orders").tally();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                wire.call(&[b"HINCRBY".as_slice(), &tally, b"scheduled", b"1"]).unwrap();
            }
        });
        let found = stage.run(["audit", "orders", "--json"]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        found
    });
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!((&objects(&found)[0]["state"], &objects(&found)[0]["moving"]), (&"moving".into(), &1.into()));
}

#[test]
fn a_plain_group_has_done_what_is_deleted_and_not_what_it_acknowledged() {
    let stage = busy();
    let (stream, tally) = (partition("orders").stream(), partition("orders").tally());
    stage.redis.call(&[b"HSET".as_slice(), &tally, b"plain:billing", b"1"]);
    // Its two pending and unread ones are live; an acknowledgement changes nothing.
    let entries = stage.wire().xrange(&stream).unwrap();
    let live = || stage.json("audit orders")[0]["groups"][0]["live"].clone();
    assert_eq!((entries.len(), live()), (2, json!(2)));
    stage.redis.call(&[b"XACK".as_slice(), &stream, b"billing", &entries[0].id.to_bytes()]);
    let account = &stage.json("audit orders")[0];
    assert_eq!(
        (&account["state"], &account["groups"][0]["plain"], live()),
        (&"balanced".into(), &true.into(), json!(2))
    );
    assert!(stage.ok("audit orders").contains("\nbilling (plain)  4 "));
    // What is deleted counts as done, by whoever deletes.
    stage.redis.call(&[b"XDEL".as_slice(), &stream, &entries[0].id.to_bytes()]);
    let found = stage.code(4, "audit orders");
    assert!(found.stdout.contains("group billing: 1 went in and are nowhere"), "{}", found.stdout);
    stage.redis.call(&[b"HINCRBY".as_slice(), &tally, b"done:billing", b"1"]);
    stage.ok("audit orders");
    // What is addressed to another group is none of its work.
    stage.redis.call(&[b"XADD".as_slice(), &stream, b"*", b"id", b"x", b"gen", b"1", b"group", b"mailing"]);
    stage.ok("audit orders");
}
