//! The endpoint is away, as a whole: that says nothing about any timeout.

use std::time::{Duration, Instant};

use overdue_tests::{Answer, Program, Receiver, eventually};

use super::posting;
use crate::scene::Scene;
use crate::stage::{assert_not_noisy, ids, settled, up};

/// Stands for ten minutes with probes every 25 s: here they come every second.
const OUTAGE: Duration = Duration::from_secs(12);
/// How many timeouts wait.
const WAITING: usize = 5_000;
/// How many requests an outage may cost.
const FEW: usize = 60;

/// How often the handler was called.
fn tries(consumer: &Program) -> usize {
    consumer.metrics().get("overdue_handler_seconds_count", &[]).unwrap_or(0.0) as usize
}

async fn lasts(since: Instant) {
    eventually("the outage is over", async || since.elapsed() > OUTAGE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_an_endpoint_that_refuses_connections_costs_no_attempt_and_few_tries() {
    let (scene, mut receiver) = (Scene::new().await, Receiver::start().await);
    receiver.close().await;
    let consumer = up(posting(&scene, &receiver.url("/")).args(["--attempts", "1"]));
    scene.producer.arm(ids("t", WAITING), Duration::ZERO, false).await;
    lasts(Instant::now()).await;
    let tried = tries(&consumer);
    assert!((8..FEW).contains(&tried), "{tried}");
    let up = consumer.metrics().get("overdue_endpoint_up", &[("queue", "orders"), ("group", "billing")]);
    assert_eq!(up, Some(0.0));
    receiver.open().await;
    let back = Instant::now();
    settled(&scene.redis, 1).await;
    assert!(back.elapsed() < Duration::from_secs(30), "{:?}", back.elapsed());
    assert!(scene.dead().is_empty(), "{:?}", scene.dead());
    // Each once, at its first attempt.
    assert_eq!(receiver.count(), WAITING);
    assert!(receiver.received().iter().all(|request| request.data("attempt") == 1));
    assert_not_noisy(&consumer);
    let log = consumer.stderr();
    assert!(log.contains("Connection refused") && log.lines().count() < 20, "{log}");
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_an_endpoint_behind_a_proxy_that_finds_it_down_is_spared() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    receiver.answer(|_| Answer::Status(502));
    let consumer = up(posting(&scene, &receiver.url("/")).args(["--attempts", "1"]));
    scene.producer.arm(ids("t", WAITING), Duration::ZERO, false).await;
    lasts(Instant::now()).await;
    let asked = receiver.count();
    assert!((8..FEW).contains(&asked), "{asked}");
    receiver.answer(|_| Answer::Status(200));
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty(), "{:?}", scene.dead());
    assert!(receiver.count() < WAITING + FEW, "{}", receiver.count());
    scene.finish(&consumer);
}
