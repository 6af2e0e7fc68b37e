//! A call is made once: a lost answer never makes two generations, whatever the language and its library.

use overdue_protocol::call::{PAGE, Sweep};
use overdue_protocol::{Keyspace, QueueName};
use overdue_tests::{Mode, Proxy, Redis, Wire, assert_balanced, eventually_blocking};
use serde_json::json;

use crate::language::Language;
use crate::speaker::{Speaker, schedule};

fn tally(redis: &Redis, field: &str) -> u64 {
    redis.call(&["HGET", "overdue:{orders:0}:tally", field]).text().parse().unwrap_or(0)
}

#[test]
fn a_lost_answer_of_schedule_arms_one_timer_and_confirms_it() {
    for language in Language::ALL {
        let redis = Redis::start();
        let proxy = Proxy::start(redis.addr());
        let mut speaker = Speaker::patient(language, proxy.addr(), 20);
        speaker.schedule(b"first", b"", &json!({"delay": 900}));
        for round in 1..=20 {
            let id = format!("order-{round}.");
            // Only what names the timer is cut: not the greeting of a new connection.
            proxy.only(&id);
            proxy.down(Mode::Cut);
            let before = proxy.counters().accepted;
            speaker.ask(&schedule(id.as_bytes(), b"", &json!({"delay": 900})));
            eventually_blocking("the call is executed", || tally(&redis, "scheduled") == round + 1);
            eventually_blocking("its connection is cut", || proxy.counters().accepted > before);
            proxy.heal();
            let armed = speaker.answer();
            assert_eq!(armed["change"], "confirmed", "{language:?}: {armed}");
            assert_eq!(speaker.get(id.as_bytes())["generation"], armed["generation"]);
        }
        assert_eq!((tally(&redis, "scheduled"), tally(&redis, "replaced")), (21, 0), "{language:?}");
    }
}

#[test]
fn a_lost_answer_of_what_has_fired_meanwhile_is_unknown_and_it_fired_once() {
    let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 0);
    let sweep = Sweep { partition, limit: PAGE, grace_ms: 0, sweeper: "test".into() };
    for language in Language::ALL {
        let redis = Redis::start();
        let proxy = Proxy::start(redis.addr());
        let mut wire = Wire::connect(&redis);
        let mut speaker = Speaker::patient(language, proxy.addr(), 20);
        // The scripts are known from now on: a lost NOSCRIPT would be unknown too.
        speaker.schedule(b"first", b"", &json!({"delay": 900}));
        for round in 1..=5 {
            let id = format!("order-{round}.");
            proxy.only(&id);
            proxy.down(Mode::Cut);
            speaker.ask(&schedule(id.as_bytes(), b"", &json!({"at": 100_000_000_000_u64})));
            eventually_blocking("it fires", || wire.run(&sweep).unwrap().fired == 1);
            // Whether it is held may have been asked before it fired: that answer must be lost too.
            let before = proxy.counters().accepted;
            eventually_blocking("it is asked again", || proxy.counters().accepted > before + 1);
            proxy.heal();
            let unknown = speaker.answer();
            assert_eq!(unknown["error"], "OutcomeUnknown", "{language:?}: {unknown}");
            let text = unknown["text"].as_str().unwrap();
            assert!(text.contains("asked afterwards, Redis holds nothing of this call"), "{text}");
            assert_eq!(redis.count(&["XLEN", "overdue:{orders:0}:stream"]), round);
        }
        assert_balanced(&redis, "orders", 1);
    }
}

#[test]
fn an_answer_that_does_not_come_and_a_server_that_cannot_be_asked_are_unknown() {
    for language in Language::ALL {
        let redis = Redis::start();
        let proxy = Proxy::start(redis.addr());
        let mut speaker = Speaker::start(language, proxy.addr());
        // The scripts are known from now on: a lost NOSCRIPT would be unknown too.
        speaker.schedule(b"first", b"", &json!({"delay": 900}));
        proxy.down(Mode::Hold);
        let unknown = speaker.schedule(b"a", b"", &json!({"delay": 900}));
        proxy.heal();
        assert_eq!(unknown["error"], "OutcomeUnknown", "{language:?}: {unknown}");
        assert!(unknown["text"].as_str().unwrap().contains("Redis could not be asked"), "{unknown}");
        assert_eq!(tally(&redis, "scheduled"), 2, "{language:?}: it was sent once");
        // The connection on which an answer may still come is used no more.
        let mine = speaker.schedule(b"b", b"", &json!({"delay": 900}));
        assert_eq!(mine["generation"], speaker.get(b"b")["generation"], "{language:?}");
    }
}

#[test]
fn what_was_not_executed_is_tried_again_and_then_said() {
    for language in Language::ALL {
        let redis = Redis::start();
        let proxy = Proxy::start(redis.addr());
        let mut speaker = Speaker::patient(language, proxy.addr(), 20);
        speaker.schedule(b"a", b"", &json!({"delay": 900}));
        // Known scripts are gone, a slow script runs, a replica: nothing of it was executed, all of it passes.
        redis.call(&["SCRIPT", "FLUSH"]);
        assert_eq!(speaker.schedule(b"b", b"", &json!({"delay": 900}))["change"], "armed", "{language:?}");
        redis.call(&["REPLICAOF", "127.0.0.1", "1"]);
        speaker.ask(&schedule(b"c", b"", &json!({"delay": 900})));
        let refused = || redis.info("errorstats").into_keys().any(|key| key == "errorstat_READONLY");
        eventually_blocking("it is refused by a replica", refused);
        redis.call(&["REPLICAOF", "NO", "ONE"]);
        assert_eq!(speaker.answer()["change"], "armed", "{language:?}");

        let mut hasty = Speaker::start(language, proxy.addr());
        hasty.get(b"a");
        redis.call(&["REPLICAOF", "127.0.0.1", "1"]);
        let refused = hasty.schedule(b"d", b"", &json!({"delay": 900}));
        assert_eq!(refused["error"], "Unavailable", "{language:?}: {refused}");
        redis.call(&["REPLICAOF", "NO", "ONE"]);
        assert_eq!((tally(&redis, "scheduled"), tally(&redis, "replaced")), (3, 0), "{language:?}");
    }
}
