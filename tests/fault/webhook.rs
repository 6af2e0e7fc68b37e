//! What an HTTP endpoint gets from `consume --webhook`, what its answers do, and what happens when it gives none.

mod answers;
mod outage;
mod trust;

use std::collections::BTreeSet;
use std::time::Duration;

use overdue::Raw;
use overdue_tests::{Answer, FiredKey, Launch, Receiver, eventually};

use crate::scene::Scene;
use crate::stage::{GROUP, QUEUE, ids, settled, up};

const RETRY_WAIT: &str = "OVERDUE_CONSUME_RETRY_WAIT";
const PROBE: &str = "OVERDUE_CONSUME_PROBE_MAX";

/// A consumer that posts to `url`.
fn posting(scene: &Scene, url: &str) -> Launch {
    let launch = Launch::consume(&scene.redis.url(), QUEUE, GROUP).args(["--webhook", url]);
    launch.env(PROBE, "1s").env(RETRY_WAIT, "100ms")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_gets_the_same_id_at_each_attempt_and_all_that_is_known() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    receiver.answer(|request| Answer::Status(if request.data("attempt") == 1 { 500 } else { 204 }));
    let consumer = up(posting(&scene, &receiver.url("/hook?a=b")));
    scene.producer.arm_with(["order 1/ü"], Duration::ZERO, false, &Raw::new("a\tpayload")).await;
    settled(&scene.redis, 1).await;
    let generation = scene.producer.ledger.judge().lost.remove(0).generation;
    let key = format!("orders/order%201%2F%C3%BC/{generation}");
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    for (n, request) in received.iter().enumerate() {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook?a=b"));
        assert_eq!(request.header("webhook-id"), key);
        assert_eq!(request.header("content-type"), "application/json");
        assert!(request.header("user-agent").starts_with("overdue/"), "{request:?}");
        assert_eq!(request.header("webhook-signature"), "");
        let sent: u64 = request.header("webhook-timestamp").parse().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!(now.abs_diff(sent) < 30, "{sent}");
        let json = request.json();
        assert_eq!(json["type"], "overdue.timeout");
        assert!(json["timestamp"].as_str().is_some_and(|text| text.starts_with("20") && text.ends_with('Z')));
        let due_ms = json["data"]["due_ms"].clone();
        assert!(due_ms.is_u64());
        assert_eq!(
            json["data"],
            serde_json::json!({
                "key": key, "queue": "orders", "group": "billing", "id": "order 1/ü", "generation": generation,
                "due_ms": due_ms, "attempt": n + 1, "source": "index", "kind": "timer",
                "encoding": json["data"]["encoding"], "payload": "a\tpayload",
            })
        );
    }
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_text_comes_in_base64_and_a_watched_key_with_all_its_fields() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    let consumer = up(posting(&scene, &receiver.url("/")));
    scene.producer.arm_with([b"\xff\n"], Duration::ZERO, false, &Raw::new(&b"\x00\xff"[..])).await;
    settled(&scene.redis, 1).await;
    let request = receiver.received().remove(0);
    assert_eq!((request.data("id_base64"), request.data("payload_base64")), ("/wo=".into(), "AP8=".into()));
    assert!(request.data("id").is_null() && request.data("payload").is_null());
    let long = vec![0xff; 65_536];
    scene.fire(&[FiredKey::new("session:42", 7).with("cause", "evicted"), FiredKey::new(long, 8)]);
    settled(&scene.redis, 1).await;
    let requests = receiver.received();
    let of =
        |generation: u64| requests.iter().rfind(|request| request.data("generation") == generation).unwrap();
    let fields = ["id", "kind", "rule", "db", "proof", "cause", "captured_ms", "payload"];
    assert_eq!(
        serde_json::json!(fields.map(|field| of(7).data(field))),
        serde_json::json!(["session:42", "key", "sessions", 3, "nudge", "evicted", 950, "{\"user\":\"7\"}"])
    );
    // No server takes 200 KiB of headers.
    let id = of(8).header("webhook-id");
    assert!(id.starts_with("orders/sha256:") && id.ends_with("/8") && id.len() < 100, "{id}");
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_requests_are_under_way_than_connections_are_allowed() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    receiver.answer(|_| Answer::Late(Duration::from_millis(50), 200));
    let launch = posting(&scene, &receiver.url("/")).env("OVERDUE_CONSUME_WEBHOOK_CONNECTIONS", "3");
    let consumer = up(launch.args(["--concurrency", "20"]));
    scene.producer.arm(ids("t", 60), Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    let distinct: BTreeSet<_> =
        receiver.received().iter().map(overdue_tests::receiver::Received::id).collect();
    assert_eq!((distinct.len(), receiver.count(), receiver.most_at_once()), (60, 60, 3));
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_of_a_file_run_in_one_process_and_the_first_that_fails_ends_it() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    let config = |second: &str| {
        format!(
            "[consume]\nlisten = \"127.0.0.1:0\"\n\
             [[consumer]]\nqueue = \"orders\"\ngroup = \"billing\"\nwebhook = \"{}\"\n\
             [[consumer]]\nqueue = \"orders\"\ngroup = \"paper\"\n{second}\n",
            receiver.url("/")
        )
    };
    let run =
        |file: String| Launch::new(["consume", "--redis", &scene.redis.url(), "--json", "--config", &file]);
    let consumer = up(run(scene.write("good.toml", &config("print = true"))));
    scene.producer.arm(ids("t", 20), Duration::ZERO, false).await;
    eventually("both groups have handled them", async || {
        let both = (receiver.count(), consumer.stdout().lines().count());
        if both == (20, 20) { Ok(()) } else { Err(both) }
    })
    .await;
    let ready = consumer.readyz().body;
    assert!(ready.contains("orders/billing") && ready.contains("orders/paper"), "{ready}");
    scene.finish(&consumer);

    let missing = run(scene.write("bad.toml", &config("pipe = [\"/no/such\"]"))).run();
    let line = "overdue: consumer paper of queue orders: cannot run /no/such: there is no such file\n";
    assert_eq!((missing.code, missing.stderr.as_str()), (Some(2), line));
    let none = Launch::new(["consume", "--redis", &scene.redis.url()]).run();
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.starts_with("overdue: nothing to handle: give --queue"), "{none:?}");
}
