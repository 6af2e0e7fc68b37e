//! Each kind of answer, also those that are none.

use std::time::{Duration, Instant};

use overdue_tests::{Answer, Receiver, eventually, receiver};

use super::{PROBE, posting};
use crate::scene::{Scene, handled};
use crate::stage::{assert_not_noisy, ids, in_hand, settled, stop, up};

/// The detail of the only dead letter of an id.
fn detail(scene: &Scene, id: &str) -> [String; 2] {
    let dead = scene.dead();
    let mut of_id = dead.iter().filter(|letter| letter[0] == id);
    let [_, reason, detail] =
        of_id.next().unwrap_or_else(|| panic!("{id} is no dead letter: {dead:?}")).clone();
    assert!(of_id.next().is_none(), "{id} is there twice: {dead:?}");
    [reason, detail]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_success_is_a_retry_with_the_status_and_a_kib_of_the_body() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    let elsewhere = Receiver::start().await;
    let target = elsewhere.url("/elsewhere");
    receiver.answer(move |request| match request.id().as_str() {
        "long" => Answer::With(422, vec![], "ü".repeat(1_000_000).into()),
        "moved" => Answer::With(307, vec![("location", target.clone())], "".into()),
        "rejected" => Answer::With(200, vec![("overdue-outcome", "reject".into())], "no such order\n".into()),
        "half" => Answer::Half(500),
        "half a success" => Answer::Half(200),
        "late" => Answer::Late(Duration::from_secs(60), 200),
        "nothing" => Answer::Nothing,
        status => Answer::Status(status.parse().unwrap()),
    });
    let launch = posting(&scene, &receiver.url("/")).args(["--attempts", "1", "--limit", "3s"]);
    let consumer = up(launch);
    let others = ["long", "moved", "rejected", "half", "half a success", "late", "nothing"];
    scene.producer.arm(["200", "204", "299", "400", "404", "429", "500"], Duration::ZERO, false).await;
    scene.producer.arm(others, Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    assert_eq!(scene.dead().len(), 10, "{:?}", scene.dead());
    for (id, expected) in [
        ("400", "the endpoint answered 400 Bad Request"),
        ("404", "the endpoint answered 404 Not Found"),
        ("429", "the endpoint answered 429 Too Many Requests"),
        ("500", "the endpoint answered 500 Internal Server Error"),
        ("half", "the endpoint answered 500 Internal Server Error: half of it"),
        ("late", "no whole answer within 3s"),
    ] {
        assert_eq!(detail(&scene, id), ["attempts", expected]);
    }
    assert_eq!(detail(&scene, "rejected"), ["rejected", "the endpoint answered 200 OK: no such order"]);
    let [_, long] = detail(&scene, "long");
    assert!(long.starts_with("the endpoint answered 422 ") && long.matches('ü').count() == 512, "{long}");
    let [_, moved] = detail(&scene, "moved");
    assert!(moved.contains("307") && moved.contains("/elsewhere, which is not followed"), "{moved}");
    assert_eq!(elsewhere.count(), 0);
    let [_, nothing] = detail(&scene, "nothing");
    assert!(nothing.starts_with("no answer from http://127.0.0.1:"), "{nothing}");
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_speaks_no_http_is_a_retry() {
    let scene = Scene::new().await;
    let (address, _serving) = receiver::garbage().await;
    let consumer = up(posting(&scene, &format!("http://{address}/")).args(["--attempts", "2"]));
    scene.producer.arm(["a"], Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    let [reason, detail] = detail(&scene, "a");
    assert!(reason == "attempts" && detail.contains("invalid HTTP version parsed"), "{detail}");
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_when_to_come_again_is_heard_and_it_costs_no_attempt() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    let busy = std::sync::Mutex::new(std::collections::BTreeSet::new());
    receiver.answer(move |request| {
        let status = request.id().parse().unwrap();
        if !busy.lock().unwrap().insert(status) {
            return Answer::Status(200);
        }
        Answer::With(status, vec![("retry-after", "2".into())], "".into())
    });
    let consumer = up(posting(&scene, &receiver.url("/")).args(["--attempts", "1"]));
    scene.producer.arm(["429", "503"], Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    for id in ["429", "503"] {
        let requests: Vec<_> = receiver.received().into_iter().filter(|request| request.id() == id).collect();
        let waited = requests[1].at - requests[0].at;
        assert!((Duration::from_millis(1_990)..Duration::from_secs(4)).contains(&waited), "{waited:?}");
        assert_eq!((requests.len(), requests[1].data("attempt")), (2, 1.into()));
    }
    assert!(scene.dead().is_empty(), "{:?}", scene.dead());
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_is_gone_for_good_halts_until_somebody_starts_the_consumer_again() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    receiver.answer(|_| Answer::Status(410));
    let consumer = up(posting(&scene, &receiver.url("/")).args(["--attempts", "1"]));
    scene.producer.arm(ids("t", 200), Duration::ZERO, false).await;
    eventually("it is halted", async || {
        consumer.metrics().get("overdue_endpoint_up", &[("queue", "orders"), ("group", "billing")])
            == Some(-1.0)
    })
    .await;
    // What is in hand is handed back, and nothing more is read.
    in_hand(&scene.redis, 0).await;
    let (requests, since) = (receiver.count(), Instant::now());
    assert!(requests <= 16, "{requests}");
    eventually("three probes would have been", async || since.elapsed() > Duration::from_secs(3)).await;
    assert_eq!(receiver.count(), requests);
    assert!(consumer.stderr().contains("410 Gone"), "{}", consumer.stderr());
    assert_not_noisy(&consumer);
    stop(&consumer);
    receiver.answer(|_| Answer::Status(200));
    let heir = up(posting(&scene, &receiver.url("/")).args(["--attempts", "1"]));
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty(), "{:?}", scene.dead());
    scene.finish(&heir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_under_way_at_the_stop_is_waited_for_and_then_handed_back() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    receiver.answer(|request| {
        let late = if request.id() == "soon" { 1 } else { 60 };
        Answer::Late(Duration::from_secs(late), 200)
    });
    let consumer = up(posting(&scene, &receiver.url("/")).env(PROBE, "1s").args(["--grace", "3s"]));
    scene.producer.arm(["soon", "late"], Duration::ZERO, false).await;
    eventually("both are asked", async || receiver.count() == 2).await;
    stop(&consumer);
    receiver.answer(|_| Answer::Status(200));
    let heir = up(posting(&scene, &receiver.url("/")));
    settled(&scene.redis, 1).await;
    handled(&heir, "done", 1.0).await;
    let again: Vec<_> = receiver.received().split_off(2);
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!((again[0].id().as_str(), again[0].data("attempt")), ("late", 1.into()));
    scene.finish(&heir);
}
