//! Databases that are flushed or swapped: nothing says so, and thousands of keys are gone without proof.

use overdue_protocol::entry::Proof;
use overdue_protocol::watch::Rule;
use overdue_sandbox::Connection;
use overdue_tests::{Redis, eventually};

use super::super::stage::{count, counted, entries, index, rule, server_feed};
use super::{fired, lazy, nudge, passes};

const KEYS: u64 = 10_000;

/// Of database 3, so that the index survives.
fn in_three() -> Rule {
    Rule { db: 3, ..rule("s:*", "q") }
}

fn connect(redis: &Redis, db: &str) -> Connection {
    let mut connection = redis.connection().unwrap();
    connection.call(&["SELECT", db]).unwrap();
    connection
}

/// Keys that end one after the other, `step_us` apart, the first at `from`.
fn fill(connection: &mut Connection, from: u64, step_us: u64) {
    let fill = "for i = 0, ARGV[1] - 1 do
        redis.call('SET', 's:' .. i, 'v', 'PXAT', string.format('%.0f', ARGV[2] + math.floor(i * ARGV[3] / 1000)))
    end";
    let args = [KEYS, from, step_us].map(|n| n.to_string());
    connection.call(&["EVAL", fill, "0", &args[0], &args[1], &args[2]]).unwrap();
}

fn names() -> impl Iterator<Item = String> {
    (0..KEYS).map(|n| format!("s:{n}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushed_database_with_dues_over_a_minute_fires_nothing_false() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![in_three()]).await;
    nudging.met_all();
    let mut three = connect(&redis, "3");
    let from = redis.now_ms() + 3_000;
    fill(&mut three, from, 6_000);
    nudging.track(3, names()).await;
    passes(&redis, from + 300).await;
    three.call(&["FLUSHDB"]).unwrap();
    let proven = entries(&redis, "q").len();
    eventually("all are dropped, whatever their due", async || {
        let left = index(&redis, "q").len();
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
    let entries = entries(&redis, "q");
    assert!(proven >= 20 && entries.len() < proven + 20, "{proven}, then {}", entries.len());
    assert!(entries.iter().all(|entry| entry.proof == Some(Proof::Nudge)));
    assert_eq!(*nudging.scans.lock().unwrap(), [server_feed(3)]);
    assert_eq!(count("overdue_flushed", &[("feed", "server/3")]), 1.0);
    assert!(nudging.health.ready().text.contains("flushed server/3"), "{}", nudging.health.ready().text);
    // What is proven fires all the same.
    three.call(&["SET", "s:new", "v", "PX", "100"]).unwrap();
    nudging.track(3, ["s:new"]).await;
    fired(&redis, "q", entries.len() + 1).await;
    eventually("the state ends", async || count("overdue_flushed", &[("feed", "server/3")]) == 0.0).await;
    assert!(!nudging.health.ready().text.contains("flushed"), "{}", nudging.health.ready().text);
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_flushed_at_the_due_of_all_its_keys_fires_nothing_false() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![in_three()]).await;
    let mut three = connect(&redis, "3");
    let due = redis.now_ms() + 4_000;
    fill(&mut three, due, 0);
    nudging.track(3, names()).await;
    passes(&redis, due - 10).await;
    three.call(&["FLUSHDB"]).unwrap();
    // Nobody listens: each waits for as long as its rule allows.
    eventually("all are dropped", async || index(&redis, "q").is_empty()).await;
    assert_eq!(entries(&redis, "q").len(), 0);
    counted("overdue_unproven_total", &[("result", "flushed")], KEYS as f64).await;
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swapped_database_of_the_same_size_is_noticed_when_many_are_due() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![in_three()]).await;
    nudging.met_all();
    let (mut three, mut four) = (connect(&redis, "3"), connect(&redis, "4"));
    let due = redis.now_ms() + 4_000;
    fill(&mut three, due, 0);
    four.call(&["EVAL", "for i = 1, 10000 do redis.call('SET', 'other:' .. i, 'v') end", "0"]).unwrap();
    nudging.track(3, names()).await;
    three.call(&["SWAPDB", "3", "4"]).unwrap();
    eventually("all are dropped", async || index(&redis, "q").is_empty()).await;
    assert_eq!(entries(&redis, "q").len(), 0);
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_expired_while_nobody_was_there_are_no_flush() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![in_three()]).await;
    let mut three = connect(&redis, "3");
    let due = redis.now_ms() + 4_000;
    fill(&mut three, due, 0);
    nudging.track(3, names()).await;
    nudging.stop().await;
    passes(&redis, due).await;
    // The server finds them by itself.
    three.call(&["EVAL", "for i = 0, 9999 do redis.call('EXISTS', 's:' .. i) end", "0"]).unwrap();
    let nudging = nudge(&redis, vec![in_three()]).await;
    let entries = fired(&redis, "q", KEYS as usize).await;
    assert!(entries.iter().all(|entry| entry.proof == Some(Proof::Unproven)));
    nudging.stop().await;
}
