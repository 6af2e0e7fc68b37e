//! The number of partitions: read, created, written back, in dispute.

use overdue_protocol::QueueInfo;
use overdue_tests::{Redis, Wire, assert_balanced};
use serde_json::{Value, json};

use crate::language::Language;
use crate::speaker::Speaker;

fn info(redis: &Redis) -> Option<QueueInfo> {
    let queues = Wire::connect(redis).hgetall("overdue:queues").unwrap();
    queues.get(&b"orders"[..]).map(|raw| QueueInfo::decode(raw).unwrap())
}

fn set(redis: &Redis, partitions: u32, format: u32) {
    let info = QueueInfo { partitions, created_ms: 1, format, paused: false, history: 0 };
    redis.call(&[&b"HSET"[..], b"overdue:queues", b"orders", &info.encode()]);
}

fn arm(speaker: &mut Speaker, id: &str) -> Value {
    speaker.schedule(id.as_bytes(), b"", &json!({"delay": 900}))
}

#[test]
fn a_queue_that_is_not_there_is_created_as_the_client_in_rust_does() {
    for language in Language::ALL {
        let redis = Redis::start();
        let mut told = Wire::connect(&redis);
        told.call(&["SUBSCRIBE", "overdue:queues:wake"]).unwrap();
        let before = redis.now_ms();
        assert_eq!(arm(&mut Speaker::start(language, redis.addr()), "a")["change"], "armed");
        let info = info(&redis).unwrap();
        assert!((before..=redis.now_ms()).contains(&info.created_ms), "{language:?} {info:?}");
        assert_eq!(
            info,
            QueueInfo { partitions: 1, format: 1, paused: false, history: 0, ..info.clone() },
            "{language:?}"
        );
        assert_eq!(redis.call(&["HGET", "overdue:{orders:0}:tally", "partitions"]).text(), "1");
        // Its data tell the number, when only the list is lost.
        redis.call(&["DEL", "overdue:queues", "overdue:{orders:0}:index", "overdue:{orders:0}:timers"]);
        redis.call(&["HSET", "overdue:{orders:0}:tally", "partitions", "3"]);
        arm(&mut Speaker::start(language, redis.addr()), "a");
        assert_eq!(self::info(&redis).unwrap().partitions, 3, "{language:?}");
    }
}

#[test]
fn timers_go_where_everybody_looks_for_them() {
    for language in Language::ALL {
        let redis = Redis::start();
        set(&redis, 16, 1);
        let mut speaker = Speaker::start(language, redis.addr());
        for i in 0..100 {
            arm(&mut speaker, &format!("order-{i}"));
        }
        for i in 0..100 {
            let id = format!("order-{i}");
            let number = overdue_protocol::partition::of(id.as_bytes(), 16);
            let score = redis.call(&["ZSCORE", &format!("overdue:{{orders:{number}}}:index"), &id]).text();
            assert!(score.parse::<u64>().is_ok(), "{language:?} {id}: {score}");
        }
        assert_balanced(&redis, "orders", 16);
    }
}

#[test]
fn another_number_is_learned_from_the_scripts_answer() {
    for language in Language::ALL {
        let redis = Redis::start();
        let mut speaker = Speaker::start(language, redis.addr());
        arm(&mut speaker, "a");
        // By hand, or after a flush by somebody else: all partitions that there may be say four now.
        redis.call(&["FLUSHALL"]);
        set(&redis, 4, 1);
        for number in 0..4 {
            redis.call(&["HSET", &format!("overdue:{{orders:{number}}}:tally"), "partitions", "4"]);
        }
        assert_eq!(arm(&mut speaker, "order-1001")["change"], "armed", "{language:?}");
        assert_eq!(redis.count(&["ZCARD", "overdue:{orders:3}:index"]), 1);
        // The list and the data disagree: nothing is written.
        set(&redis, 2, 1);
        let refused = arm(&mut Speaker::start(language, redis.addr()), "order-1001");
        assert_eq!(refused["error"], "Error", "{language:?}: {refused}");
        let says = "the data of orders is of 4 partitions, the list of queues says 2";
        assert_eq!(refused["text"], says);
        assert_eq!(redis.count(&["EXISTS", "overdue:{orders:1}:index"]), 0);
    }
}

#[test]
fn who_knows_a_queue_writes_its_number_back() {
    for language in Language::ALL {
        let redis = Redis::start();
        set(&redis, 5, 1);
        let mut speaker = Speaker::start(language, redis.addr());
        arm(&mut speaker, "a");
        redis.call(&["FLUSHALL"]);
        // A failure is one of the occasions to look.
        redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(arm(&mut speaker, "a")["error"], "Error", "{language:?}");
        redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(arm(&mut speaker, "a")["change"], "armed", "{language:?}");
        assert_eq!(info(&redis).unwrap().partitions, 5, "{language:?}");
    }
}

#[test]
fn a_queue_in_a_format_of_the_future_is_refused() {
    for language in Language::ALL {
        let redis = Redis::start();
        set(&redis, 1, 2);
        let refused = arm(&mut Speaker::start(language, redis.addr()), "a");
        assert_eq!(refused["error"], "Error", "{language:?}");
        assert_eq!(refused["text"], "queue orders is in format 2: use a newer client");
        assert_eq!(redis.count(&["DBSIZE"]), 1, "{language:?}: nothing was touched");
    }
}
