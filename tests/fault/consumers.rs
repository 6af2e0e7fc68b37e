//! Consumers that are killed, stopped, frozen, or slow.

use std::time::{Duration, Instant};

use overdue_tests::{Launch, Ledger, Redis, assert_balanced, eventually};

mod deaths;
mod effects;
mod hands;
mod kills;
mod memory;
mod outages;

use crate::stage::{
    GROUP, Producer, QUEUE, end, ids, in_hand, partition, pending, printing, running, settled, stop, up,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_timeouts_of_a_killed_consumer_are_handled_within_its_lease_and_2_s() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let lease = Duration::from_secs(3);
    let victim = up(running(&redis.url(), "sleep 15", &["--concurrency", "100", "--lease", "3s"]));
    producer.arm(ids("t", 100), Duration::ZERO, false).await;
    in_hand(&redis, 100).await;
    let heir = up(printing(&redis.url()).args(["--lease", "3s"]));
    victim.kill9();
    let killed = Instant::now();
    settled(&redis, 1).await;
    let took = killed.elapsed();
    assert!(took <= lease + Duration::from_secs(2), "{took:?}");
    stop(&heir);
    producer.read(&[&heir]);
    producer.ledger.assert_met();
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_stopped_under_load_hands_over_at_once_and_handles_nothing_twice() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let note = Ledger::note_command(&notes);
    let consumers: Vec<_> = (0..2)
        .map(|_| {
            let script = format!("{}; sleep 0.2", note[2]);
            up(running(&redis.url(), &script, &["--lease", "30s", "--concurrency", "16"]))
        })
        .collect();
    for i in 0..40_u64 {
        producer.arm(ids(&format!("t{i}"), 4), Duration::from_millis(500 + i * 100), false).await;
    }
    eventually("it is under load", async || consumers[0].metrics().get("overdue_in_flight", &[]) > Some(0.0))
        .await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    stop(&consumers[0]);
    settled(&redis, 1).await;
    stop(&consumers[1]);
    producer.ledger.read_notes(&notes);
    let verdict = producer.ledger.assert_met();
    assert!(verdict.lateness(1.0) < 2_000, "{verdict}");
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_longer_than_the_lease_is_not_handed_to_another() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let script = format!("{}; sleep 4", Ledger::note_command(&notes)[2]);
    let consumers: Vec<_> = (0..2).map(|_| up(running(&redis.url(), &script, &["--lease", "1s"]))).collect();
    producer.arm(ids("t", 4), Duration::ZERO, false).await;
    settled(&redis, 1).await;
    consumers.iter().for_each(stop);
    producer.ledger.read_notes(&notes);
    producer.ledger.assert_met();
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_outcomes_of_a_frozen_consumer_change_nothing() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    // The command goes on while the consumer is frozen; its outcomes are a retry, a rejection and a retry-after.
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let script = format!("echo >> {}; sleep 1; echo 'retry-after: 1ms'; exit $OVERDUE_ID", begun.display());
    let frozen = up(running(&redis.url(), &script, &["--lease", "1s"]));
    producer.arm(["1", "65", "75"], Duration::ZERO, false).await;
    eventually("all have begun", async || std::fs::read(&begun).is_ok_and(|lines| lines.len() == 3)).await;
    frozen.sigstop();
    let other = up(printing(&redis.url()).args(["--lease", "1s"]));
    settled(&redis, 1).await;
    frozen.sigcont();
    eventually("its outcomes are lost", async || {
        let metrics = frozen.metrics();
        let lost = metrics.get("overdue_handled_total", &[("result", "lost")]);
        if lost == Some(3.0) { Ok(()) } else { Err(metrics) }
    })
    .await;
    stop(&frozen);
    stop(&other);
    producer.read(&[&other]);
    producer.ledger.assert_met();
    assert_eq!(redis.count(&[b"XLEN".as_slice(), &partition(0).dead()]), 0);
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_consumer_that_is_told_to_stop_releases_only_what_is_its_own() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let frozen = up(running(&redis.url(), "sleep 20", &["--lease", "1s", "--grace", "0s"]));
    producer.arm(ids("t", 3), Duration::ZERO, false).await;
    in_hand(&redis, 3).await;
    frozen.sigstop();
    let other = up(printing(&redis.url()).args(["--lease", "1s"]));
    settled(&redis, 1).await;
    frozen.sigterm();
    frozen.sigcont();
    assert_eq!(frozen.wait_exit(Duration::from_secs(10)).code(), Some(0));
    stop(&other);
    producer.read(&[&other]);
    producer.ledger.assert_met();
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_done_at_the_end_of_the_grace_goes_to_another_at_the_same_attempt() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let leaving = up(running(&redis.url(), "sleep 30", &["--grace", "1s"]));
    producer.arm(ids("t", 5), Duration::ZERO, false).await;
    in_hand(&redis, 5).await;
    let other = up(printing(&redis.url()));
    let told = Instant::now();
    end(&leaving, Duration::from_secs(10));
    assert!(told.elapsed() < Duration::from_secs(4), "{:?}", told.elapsed());
    settled(&redis, 1).await;
    stop(&other);
    producer.read(&[&other]);
    producer.ledger.assert_met();
    assert!(other.stdout().lines().all(|line| line.contains("\"attempt\":1,")), "{}", other.stdout());
    let left = redis.call(&[b"XINFO".as_slice(), b"CONSUMERS", &partition(0).stream(), GROUP.as_bytes()]);
    assert_eq!((pending(&redis), left.items().len()), (0, 0), "no consumer is left behind");
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}
