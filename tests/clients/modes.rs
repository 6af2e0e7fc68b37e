//! What is answered to each way of arming, and what is refused.

use overdue_tests::{Redis, assert_balanced};
use serde_json::{Value, json};

use crate::language::Language;
use crate::speaker::Speaker;

/// The rows of PROTOCOL.md section 4: absent, armed earlier, armed later, due.
const ROWS: [(&str, &str, &str, &str, &str); 5] = [
    ("upsert", "armed", "replaced", "replaced", "fired_old"),
    ("absent", "armed", "present", "present", "fired_old"),
    ("present", "absent", "replaced", "replaced", "due"),
    ("later", "armed", "replaced", "kept", "due"),
    ("earlier", "armed", "kept", "replaced", "due"),
];

#[test]
fn each_mode_answers_what_became_of_the_timer() {
    for language in Language::ALL {
        let redis = Redis::start();
        let mut speaker = Speaker::start(language, redis.addr());
        let far = redis.now_ms() + 7_200_000;
        let mut arm = |mode: &str, id: &str, due: u64| {
            speaker.schedule(id.as_bytes(), b"p", &json!({"at": due, "mode": mode}))
        };
        for (mode, absent, earlier, later, due) in ROWS {
            for (armed_at, word) in [(None, absent), (Some(far - 5), earlier), (Some(far + 5), later)] {
                let id = format!("{mode} {armed_at:?}");
                let before = armed_at.map(|due| arm("upsert", &id, due));
                let after = arm(mode, &id, far);
                assert_eq!(
                    (&after["change"], &after["fired"]),
                    (&word.into(), &0.into()),
                    "{language:?} {id}"
                );
                let stands = match word {
                    "armed" | "replaced" => json!(far),
                    "absent" => json!(0),
                    _ => before.as_ref().unwrap()["due_ms"].clone(),
                };
                assert_eq!(after["due_ms"], stands, "{language:?} {id}");
            }
            let old = arm("upsert", mode, 100_000_000_000);
            let after = arm(mode, mode, far);
            let fired = if due == "fired_old" { old["generation"].clone() } else { json!(0) };
            assert_eq!((&after["change"], &after["fired"]), (&due.into(), &fired), "{language:?} {mode}");
        }
        assert_balanced(&redis, "orders", 1);
    }
}

#[test]
fn a_delay_counts_from_the_servers_now_and_is_never_early() {
    for language in Language::ALL {
        let redis = Redis::start();
        let mut speaker = Speaker::start(language, redis.addr());
        let before = redis.now_ms();
        for (delay, ms) in [(json!(900), 900_000), (json!(0.0001), 1), (json!(1.5), 1500), (json!(0), 0)] {
            let due = speaker.schedule(b"a", b"", &json!({"delay": delay}))["due_ms"].as_u64().unwrap();
            assert!((before + ms..=redis.now_ms() + ms).contains(&due), "{language:?} {delay}: {due}");
        }
    }
}

#[test]
fn only_the_generation_that_is_meant_is_cancelled() {
    for language in Language::ALL {
        let redis = Redis::start();
        let mut speaker = Speaker::start(language, redis.addr());
        let first = speaker.schedule(b"a", b"1", &json!({"delay": 900}));
        let second = speaker.schedule(b"a", b"2", &json!({"delay": 900, "keyed": true}));
        let mut cancel = |generation: &Value| {
            speaker
                .call(&json!({"what": "cancel", "queue": "orders", "id": "YQ==", "generation": generation}))
        };
        assert_eq!(redis.count(&["EXISTS", "overdue:{orders:0}:key:a"]), 1);
        assert_eq!(cancel(&first["generation"]), Value::Null, "{language:?}");
        let cancelled = cancel(&second["generation"]);
        let of = |timer: &Value| (timer["generation"].clone(), timer["due_ms"].clone());
        assert_eq!(of(&cancelled), of(&second), "{language:?}");
        assert_eq!(redis.count(&["EXISTS", "overdue:{orders:0}:key:a"]), 0);
        assert_eq!((speaker.cancel(b"a"), speaker.get(b"a")), (Value::Null, Value::Null));
        assert_balanced(&redis, "orders", 1);
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_writes_nothing() {
    for language in Language::ALL {
        let redis = Redis::start();
        let mut speaker = Speaker::start(language, redis.addr());
        let id = [b'x'; 513];
        for (id, more, says) in [
            (&id[..1], json!({}), "give a delay, or at in unix milliseconds"),
            (&id[..1], json!({"at": 1_700_000_000}), "not in seconds: 1700000000"),
            (&id[..1], json!({"delay": -1}), "out of range"),
            (&id[..1], json!({"delay": 1e12}), "out of range"),
            (&id[..1], json!({"delay": 1, "mode": "maybe"}), "maybe is no mode"),
            (&id[..0], json!({"delay": 1}), "an id has 1 to 512 bytes"),
            (&id[..], json!({"delay": 1}), "an id has 1 to 512 bytes"),
        ] {
            let refused = speaker.schedule(id, b"", &more);
            assert_eq!(refused["error"], "ValueError", "{language:?} {more}: {refused}");
            assert!(refused["text"].as_str().unwrap().contains(says), "{language:?} {more}: {refused}");
        }
        let named = speaker.call(&json!({"what": "get", "queue": "a/b", "id": "YQ=="}));
        assert_eq!(named["text"].as_str().map(|text| text.contains("is no name of a queue")), Some(true));
        redis.call(&["SET", "overdue:{orders:0}:index", "a string"]);
        let refused = speaker.schedule(b"a", b"", &json!({"delay": 1}));
        assert_eq!(refused["error"], "Error", "{language:?}: {refused}");
        assert!(refused["text"].as_str().unwrap().contains("WRONGTYPE"), "{refused}");
        assert_eq!(redis.count(&["EXISTS", "overdue:{orders:0}:tally"]), 0);
    }
}
