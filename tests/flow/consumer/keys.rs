//! Timeouts of watched keys in a handler, and a handler for each pattern of names.

use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use overdue_consumer::{Consumer, Done, Handler, Kind, Outcome, Proof, Raw, Timeout};
use overdue_store::ErrorKind;
use overdue_tests::{FiredKey, eventually};
use serde::Deserialize;

use super::stage::{GROUP, QUEUE, Seen, Stage, settings_at, start};

/// What was called for which name.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<(&'static str, String)>>>);

impl Calls {
    fn note<T>(&self, who: &'static str, timeout: &Timeout<T>) {
        self.0.lock().unwrap().push((who, timeout.id().to_string()));
    }

    fn sorted(&self) -> Vec<(&'static str, String)> {
        let mut calls = self.0.lock().unwrap().clone();
        calls.sort();
        calls
    }
}

fn fire(stage: &Stage, keys: &[FiredKey]) {
    let mut wire = stage.wire();
    for key in keys {
        key.fire(&mut wire, &stage.partition);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_name_goes_to_the_first_handler_whose_pattern_matches_and_the_rest_to_the_last() {
    #[derive(Deserialize)]
    struct Session {
        user: String,
    }
    struct Carts(Calls);
    impl Handler<Raw> for Carts {
        async fn handle(&self, timeout: Timeout<Raw>) -> Outcome {
            self.0.note("carts", &timeout);
            Outcome::Done
        }
    }

    let (stage, calls) = (Stage::new(), Calls::default());
    let [vip, orders, sessions, rest] = std::array::from_fn(|_| calls.clone());
    let consumer = stage
        .consumer()
        .on("order:vip:*", move |t| {
            vip.note("vip", &t);
            async move { if t.attempt() == 1 { Outcome::retry("once more") } else { Outcome::Done } }
        })
        .on("order:*", move |t| {
            orders.note("orders", &t);
            async { Ok(Done) }
        })
        .route("session:*", move |t: Timeout<Session>| {
            sessions.note(if t.payload().user == "7" { "sessions" } else { "another" }, &t);
            async {}
        })
        .route(b"cart:[0-9]\xff".as_slice(), Carts(calls.clone()));
    let work = start(consumer, move |t| {
        rest.note("rest", &t);
        async {}
    });
    stage.wait_for_group().await;
    let _relay = stage.relay();
    let names: [&[u8]; 6] = [b"order:1", b"order:vip:1", b"session:1", b"cart:7\xff", b"cart:7", b"Order:1"];
    fire(&stage, &names.map(|name| FiredKey::new(name.to_vec(), 7)));
    stage.arm(0..1);
    eventually("all are handled", async || calls.sorted().len() == 8).await;
    stage.assert_settled().await;
    assert_eq!(work.end().await.done, 7);
    let expected = [
        ("carts", "cart:7\u{fffd}"),
        ("orders", "order:1"),
        ("rest", "Order:1"),
        ("rest", "cart:7"),
        ("rest", "t0"),
        ("sessions", "session:1"),
        ("vip", "order:vip:1"),
        ("vip", "order:vip:1"),
    ];
    assert_eq!(calls.sorted(), expected.map(|(who, name)| (who, name.to_owned())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_only_another_handler_could_read_spoils_nothing() {
    let (stage, calls) = (Stage::new(), Calls::default());
    let (numbers, rest) = (calls.clone(), calls.clone());
    let consumer = Consumer::<u32>::builder(settings_at(&stage.redis.url()), QUEUE, GROUP).route(
        "text:*",
        move |t: Timeout<Raw>| {
            rest.note("text", &t);
            async {}
        },
    );
    let work = start(consumer, move |t| {
        numbers.note("number", &t);
        async {}
    });
    stage.wait_for_group().await;
    let value = |name: &'static str, value: &'static str| FiredKey::new(name, 7).with("payload", value);
    let empty = value("no value", "").with("enc", "raw").with("flaw", "no_value");
    fire(&stage, &[value("text:1", "seven"), value("number:1", "7"), value("number:2", "seven"), empty]);
    let dead =
        eventually("two dead letters", async || Some(stage.dead()).filter(|dead| dead.len() == 2)).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.rejected), (2, 2), "{report:?}");
    assert_eq!(calls.sorted(), [("number", "number:1".to_owned()), ("text", "text:1".to_owned())]);
    let details: Vec<_> =
        dead.iter().map(|letter| String::from_utf8_lossy(letter.field("detail").unwrap())).collect();
    assert!(details.iter().any(|detail| detail.contains("cannot be decoded as JSON")), "{details:?}");
    assert!(
        details.iter().any(|detail| detail.ends_with("(the timeout has a flaw: no_value)")),
        "{details:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_sees_all_that_is_known_of_a_key_at_every_attempt() {
    let long: Vec<u8> = (0..=255).rev().cycle().take(65_536).collect();
    let (stage, seen, name) = (Stage::new(), Seen::default(), long.clone());
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t| {
        assert_eq!(t.key_name().map(|key| &key[..]), Some(&name[..]));
        assert_eq!(
            (t.kind(), t.rule(), t.db(), t.proof()),
            (Kind::Key, Some("sessions"), Some(3), Some(Proof::Unproven))
        );
        assert_eq!(
            (t.captured_ms(), t.captured()),
            (Some(950), Some(UNIX_EPOCH + Duration::from_millis(950)))
        );
        assert_eq!((t.evicted(), t.cause(), t.flaw()), (true, Some("evicted"), Some("value_type")));
        assert_eq!((t.encoding(), &t.payload()[..]), (Some("json"), &br#"{"user":"7"}"#[..]));
        let shown = format!("{t:?}");
        for part in
            ["rule: Some(\"sessions\")", "db: Some(3)", "proof: Some(Unproven)", "flaw: \"value_type\""]
        {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        noting.note(&t);
        async move { if t.attempt() < 3 { Outcome::retry("again") } else { Outcome::Done } }
    });
    stage.wait_for_group().await;
    let _relay = stage.relay();
    let key =
        FiredKey::new(long, 7).with("proof", "none").with("cause", "evicted").with("flaw", "value_type");
    fire(&stage, &[key]);
    seen.wait_for(3).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.retried, report.done), (2, 1), "{report:?}");
    let all = seen.all();
    assert!(all.iter().all(|delivery| delivery.key == all[0].key && delivery.due_ms == 1000));
    assert!(all[0].key.starts_with("orders/%FF%FE") && all[0].key.ends_with("/7"), "{}", &all[0].key[..40]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_is_no_key_and_what_a_later_version_says_is_handled_all_the_same() {
    let (stage, calls) = (Stage::new(), Calls::default());
    let noting = calls.clone();
    let work = start(stage.consumer(), move |t| {
        let kind = match t.kind() {
            Kind::Timer => {
                assert_eq!((t.key_name(), t.rule(), t.db(), t.proof()), (None, None, None, None));
                "timer"
            }
            Kind::Key => {
                assert_eq!((t.db(), t.proof(), t.captured(), t.evicted()), (None, None, None, false));
                "key"
            }
            _ => "other",
        };
        noting.note(kind, &t);
        async {}
    });
    stage.wait_for_group().await;
    let odd = FiredKey::new("odd", 7)
        .with("proof", "oath")
        .with("db", "-1")
        .with("captured_ms", "x")
        .with("cause", "flood");
    fire(&stage, &[odd, FiredKey::new("new", 8).with("kind", "season")]);
    stage.arm(0..1);
    stage.fire();
    eventually("all are handled", async || calls.sorted().len() == 3).await;
    stage.assert_settled().await;
    work.end().await;
    assert_eq!(
        calls.sorted(),
        [("key", "odd"), ("other", "new"), ("timer", "t0")].map(|(kind, name)| (kind, name.to_owned()))
    );
}

#[tokio::test]
async fn a_pattern_that_stands_there_twice_is_a_settings_error_before_anything_is_sent() {
    let consumer = Consumer::<Raw>::builder(settings_at("redis://127.0.0.1:1/"), QUEUE, GROUP);
    let twice = consumer.on("a*", |_| async {}).on("a*", |_| async {}).run(|_| async {}, async {}).await;
    let error = twice.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Settings);
    assert!(error.to_string().contains("\"a*\" is there twice"), "{error}");
}
