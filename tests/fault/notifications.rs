//! Notifications that do not come: switched off, cut, or nobody there to hear them.

use std::time::Duration;

use overdue_tests::{Launch, Program, Redis, assert_balanced, eventually};

use crate::stage::{Producer, ids, last, printing, settled, stop, up};

/// The lateness that a sweep alone may cause, with a share for a busy machine.
const PROMPT_MS: u64 = 1_000;

struct Scene {
    redis: Redis,
    relay: Program,
    consumer: Program,
    producer: Producer,
}

impl Scene {
    async fn new() -> Self {
        let redis = Redis::start();
        let (relay, consumer) = (up(Launch::relay(&redis.url())), up(printing(&redis.url())));
        let producer = Producer::new(&redis.url()).await;
        Self { redis, relay, consumer, producer }
    }

    async fn ready(&self) {
        eventually("the relay is ready", async || {
            let report = self.relay.readyz();
            if report.status == 200 { Ok(()) } else { Err(report.body) }
        })
        .await;
    }

    /// All handled once; answers the largest lateness in ms.
    async fn finish(self) -> u64 {
        settled(&self.redis, 1).await;
        stop(&self.consumer);
        self.producer.read(&[&self.consumer]);
        let verdict = self.producer.ledger.assert_met();
        assert_balanced(&self.redis, "orders", 1);
        stop(&self.relay);
        verdict.lateness(1.0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_switched_off_at_run_time_are_shown_and_lose_nothing() {
    let scene = Scene::new().await;
    scene.ready().await;
    let off = ["CONFIG", "SET", "notify-keyspace-events", ""];
    scene.redis.call(&off);
    scene.producer.arm(ids("k", 200), Duration::from_millis(500), true).await;
    eventually("the relay puts the flags back", async || {
        let flags = scene.redis.call(&["CONFIG", "GET", "notify-keyspace-events"]).items()[1].text();
        flags.contains('E') && flags.contains('x')
    })
    .await;
    assert!(scene.finish().await < PROMPT_MS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_flags_that_may_not_be_added_are_shown_and_lose_nothing() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()).args(["--keyspace-events", "check"]));
    let consumer = up(printing(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let flags = relay.metrics().get("overdue_keyspace_events_flags_ok", &[]);
    assert_eq!(flags, Some(0.0));
    let scene = Scene { redis, relay, consumer, producer };
    scene.ready().await;
    let body = scene.relay.readyz().body;
    assert!(body.contains("degraded  notifications: notify-keyspace-events lacks Ex"), "{body}");
    scene.producer.arm(ids("k", 200), Duration::from_millis(300), true).await;
    assert!(scene.finish().await < PROMPT_MS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_cut_again_and_again_are_gaps_and_lose_nothing() {
    let scene = Scene::new().await;
    for i in 0..40_u64 {
        let when = Duration::from_millis(200 + i * 75);
        scene.producer.arm(ids(&format!("k{i}"), 10), when, true).await;
    }
    last(Duration::from_secs(3), async || {
        scene.redis.call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        tokio::time::sleep(Duration::from_millis(300)).await;
    })
    .await;
    let metrics = scene.relay.metrics();
    let reconnects = metrics.get("overdue_gaps_total", &[("reason", "reconnect")]);
    assert!(reconnects >= Some(2.0), "{reconnects:?}");
    eventually("both subscriptions are up again", async || {
        scene.relay.metrics().get("overdue_subscription_up", &[]) == Some(2.0)
    })
    .await;
    assert!(scene.finish().await < PROMPT_MS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_stood_still_for_3_s_makes_up_for_them() {
    let scene = Scene::new().await;
    scene.ready().await;
    for i in 0..30_u64 {
        scene.producer.arm(ids(&format!("t{i}"), 10), Duration::from_millis(i * 100), i % 2 == 0).await;
    }
    scene.relay.sigstop();
    tokio::time::sleep(Duration::from_secs(3)).await;
    scene.relay.sigcont();
    scene.ready().await;
    let late = scene.finish().await;
    assert!(late < 3_000 + PROMPT_MS, "{late}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fell_due_while_there_was_no_relay_fires_when_one_is_back() {
    let redis = Redis::start();
    let consumer = up(printing(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    producer.arm(ids("t", 100), Duration::from_millis(100), true).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let relay = up(Launch::relay(&redis.url()));
    let scene = Scene { redis, relay, consumer, producer };
    let late = scene.finish().await;
    assert!((2_500..3_000 + 2 * PROMPT_MS).contains(&late), "{late}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_fails_while_redis_hangs_and_liveness_does_not() {
    let scene = Scene::new().await;
    scene.ready().await;
    scene.producer.arm(ids("t", 50), Duration::from_secs(2), true).await;
    scene.redis.sigstop();
    eventually("neither is ready", async || {
        (scene.relay.readyz().status, scene.consumer.readyz().status) == (503, 503)
    })
    .await;
    assert_eq!((scene.relay.livez().status, scene.consumer.livez().status), (200, 200));
    scene.redis.sigcont();
    scene.ready().await;
    scene.finish().await;
}
