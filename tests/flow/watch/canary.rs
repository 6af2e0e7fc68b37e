//! Whether notifications come is tried, shown and acted on.

use std::time::Duration;

use overdue_tests::{Redis, eventually};

use super::stage::{Running, count, index, keyevent, metrics, redis, rule, scanned, settings, start, watch};

const HEALTHY: f64 = 2.0;
const DEGRADED: f64 = 1.0;
const BLIND: f64 = 0.0;

async fn state(state: f64) {
    eventually("the canary says so", async || {
        let now = metrics().get("overdue_canary_state", &[("node", "server")]);
        if now == Some(state) { Ok(()) } else { Err(now) }
    })
    .await;
}

fn flags(redis: &Redis, flags: &str) {
    redis.call(&["CONFIG", "SET", "notify-keyspace-events", flags]);
}

async fn ready(running: &Running, ready: bool) -> String {
    eventually("readiness follows", async || {
        let report = running.health.ready();
        if report.ok == ready { Ok(report.text) } else { Err(report.text) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_is_seen_and_scanned_every_second_until_it_speaks_again() {
    for settings in [settings("one"), keyevent("one")] {
        let redis = redis();
        let running = watch(&redis.url(), vec![rule("s:*", "q")], settings).await;
        state(HEALTHY).await;
        ready(&running, true).await;
        flags(&redis, "");
        state(BLIND).await;
        let text = ready(&running, false).await;
        assert!(text.contains("BROKEN    canary server: no notifications come ("), "{text}");
        assert!(text.contains("CONFIG SET notify-keyspace-events"), "{text}");
        redis.call(&["SET", "s:unheard", "v", "PX", "3600000"]);
        eventually("SCAN has found it", async || index(&redis, "q").len() == 1).await;
        scanned("blind", 1.0).await;
        flags(&redis, "KEgxe");
        state(HEALTHY).await;
        ready(&running, true).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_class_of_events_degrades_and_ignored_notifications_do_not_break() {
    let redis = redis();
    let ignoring = overdue_relay::WatchSettings { ready_when_blind: true, ..settings("one") };
    let running = watch(&redis.url(), vec![rule("s:*", "q")], ignoring).await;
    state(HEALTHY).await;
    flags(&redis, "Kx");
    state(DEGRADED).await;
    let text = ready(&running, true).await;
    assert!(
        text.contains("degraded  canary server: expiries are told of, changed deadlines are not"),
        "{text}"
    );
    flags(&redis, "Ex");
    state(BLIND).await;
    let text = ready(&running, true).await;
    assert!(text.contains("degraded  canary server: no notifications come"), "{text}");
    running.stop().await;
}

/// A process that stands still wakes up with all its clocks run out, and with all that was said still unread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stood_still_does_not_blame_the_server() {
    let redis = redis();
    let running = watch(&redis.url(), vec![rule("s:*", "q")], settings("one")).await;
    state(HEALTHY).await;
    for n in 1..=6 {
        // Every thread of the runtime, at another moment of the canary's round each time.
        let held: Vec<_> = (0..2)
            .map(|_| tokio::spawn(async { std::thread::sleep(Duration::from_millis(2_500)) }))
            .collect();
        for task in held {
            task.await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(n * 100)).await;
    }
    assert_eq!(count("overdue_canary_rounds_total", &[("result", "missed")]), 0.0);
    state(HEALTHY).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_that_may_not_be_written_is_no_proof_of_silence() {
    let redis = redis();
    // Touch and settle write by scripts; the canary is the only SET.
    redis.call(&["ACL", "SETUSER", "default", "-set"]);
    let running = start(&redis.url(), vec![rule("s:*", "q")], settings("one")).await;
    state(DEGRADED).await;
    let text = ready(&running, true).await;
    assert!(text.contains("whether notifications come cannot be tried"), "{text}");
    running.stop().await;
}
