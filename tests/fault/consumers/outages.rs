//! Redis is away while handlers work.

use std::time::Duration;

use overdue_tests::redis::Options;
use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use super::hands::{Place, is_up};
use crate::stage::{Producer, QUEUE, ids, in_hand, settled, stop, up};

/// How long it is away: `OVERDUE_TEST_OUTAGE` in seconds.
fn outage() -> Duration {
    let seconds = std::env::var("OVERDUE_TEST_OUTAGE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(8))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_wait_for_a_server_that_does_not_answer_and_the_log_stays_short() {
    ride_out(&Redis::start(), async |redis| {
        redis.sigstop();
        tokio::time::sleep(outage()).await;
        redis.sigcont();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_wait_for_a_server_that_is_gone_and_the_log_stays_short() {
    let options = Options { aof: true, ..Options::default() }.line("appendfsync always");
    ride_out(&Redis::with(options), async |redis| {
        redis.kill9();
        tokio::time::sleep(outage()).await;
        redis.restart().expect("it starts again");
    })
    .await;
}

async fn ride_out(redis: &Redis, away: impl AsyncFnOnce(&Redis)) {
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let noting = format!("notes={}", notes.display());
    // They end while Redis is away, and their leases outlast it.
    let lease = format!("lease_ms={}", 30_000 + 2 * outage().as_millis());
    let place = Place::new(redis, "sleep:1500", &["concurrency=200", &lease, &noting]);
    eventually("it is up", async || place.with(is_up)).await;
    producer.arm(ids("t", 200), Duration::ZERO, false).await;
    in_hand(redis, 200).await;
    let before = place.with(|program| program.stderr().lines().count());
    away(redis).await;
    settled(redis, 1).await;
    eventually("it says that Redis is back", async || {
        let log = place.with(overdue_tests::Program::stderr);
        if log.contains("Redis answers again") { Ok(()) } else { Err(log) }
    })
    .await;
    place.with(stop);
    let log = place.with(overdue_tests::Program::stderr);
    let lines: Vec<_> = log.lines().skip(before).collect();
    assert!(lines.len() < 8, "{} lines: {lines:#?}", lines.len());
    // Each ran once: no result was lost.
    let notes = std::fs::read_to_string(&notes).unwrap();
    assert_eq!(notes.lines().count(), 200);
    assert!(log.contains("done: 200") && log.contains("lost: 0"), "{log}");
    assert_balanced(redis, QUEUE, 1);
    stop(&relay);
}
