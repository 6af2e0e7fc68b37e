//! How a consumer ends, stands still and grows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_consumer::{Consumer, Raw, Timeout};
use overdue_protocol::{Keyspace, QueueName};
use overdue_store::{ErrorKind, Settings};
use overdue_tests::{assert_balanced, eventually};
use tokio::sync::Semaphore;

use super::stage::{QUEUE, Seen, Stage, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_under_load_handles_nothing_twice_and_delays_nothing() {
    const TIMERS: usize = 5000;
    let (stage, seen) = (Stage::new(), Seen::default());
    let consumer = || {
        let noting = seen.clone();
        start(stage.consumer().lease(Duration::from_secs(30)).concurrency(32), move |t: Timeout<Raw>| {
            noting.note(&t);
            tokio::time::sleep(Duration::from_millis(3))
        })
    };
    let mut at_work = vec![consumer(), consumer()];
    let relay = stage.relay();
    let mut done = 0;
    // A rolling restart: while timeouts come in, each consumer gives way to a new one.
    for n in 0..10 {
        stage.arm(n * TIMERS / 10..(n + 1) * TIMERS / 10);
        seen.wait_for(n * TIMERS / 10 + TIMERS / 20).await;
        at_work.push(consumer());
        let report = at_work.remove(0).end().await;
        assert_eq!((report.lost, report.unsettled), (0, 0), "{report:?}");
        done += report.done;
    }
    seen.wait_for(TIMERS).await;
    stage.assert_settled().await;
    for work in at_work {
        done += work.end().await.done;
    }
    drop(relay);
    seen.assert_once(TIMERS);
    assert_eq!(done, TIMERS as u64);
    assert_eq!(stage.consumers(), [], "all have retired");
    let late = seen.all().into_iter().map(|delivery| delivery.late_ms).max().unwrap();
    assert!(late < 2000, "the largest lateness is {late} ms with a lease of 30 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_finished_within_the_grace_is_handed_back_at_once() {
    let (stage, seen, again) = (Stage::new(), Seen::default(), Seen::default());
    let noting = seen.clone();
    let consumer = stage.consumer().lease(Duration::from_secs(60)).grace(Duration::from_millis(200));
    let work = start(consumer, move |t: Timeout<Raw>| {
        noting.note(&t);
        std::future::pending::<()>()
    });
    stage.arm(0..30);
    stage.fire();
    seen.wait_for(30).await;
    let stopping = Instant::now();
    let report = work.end().await;
    assert!(stopping.elapsed() < Duration::from_secs(2), "{:?}", stopping.elapsed());
    assert_eq!((report.released, report.done, report.unsettled), (30, 0, 0), "{report:?}");
    let noting = again.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    let _relay = stage.relay();
    again.wait_for(30).await;
    assert!(again.all().iter().all(|delivery| delivery.attempt == 1), "a release is no attempt");
    stage.assert_settled().await;
    work.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_does_not_hold_up_the_end() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let consumer = stage.consumer().lease(Duration::from_secs(60)).grace(Duration::from_millis(100));
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let work = start(consumer, move |t: Timeout<Raw>| {
        noting.note(&t);
        let blocked = blocked.clone();
        async move {
            let _ = blocked.lock().unwrap().recv();
        }
    });
    stage.arm(0..1);
    stage.fire();
    seen.wait_for(1).await;
    let stopping = Instant::now();
    let report = work.end().await;
    assert!(stopping.elapsed() < Duration::from_secs(12), "{:?}", stopping.elapsed());
    // It may still be at work, so nobody else gets it before its lease has run out.
    assert_eq!((report.unsettled, report.released), (1, 0), "{report:?}");
    assert_eq!(stage.pending(), 1);
    drop(release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_queue_is_not_read() {
    let (stage, seen) = (Stage::new(), Seen::default());
    stage.set_queue(1, true);
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    stage.arm(0..10);
    stage.fire();
    let member = || stage.redis.count(&["HLEN", "overdue:members"]);
    eventually("it is at work", async || member() == 1).await;
    assert_eq!((seen.len(), stage.pending()), (0, 0));
    stage.set_queue(1, false);
    seen.wait_for(10).await;
    stage.set_queue(1, true);
    // From the moment it has seen this, nothing is read: what comes in one look later stays where it is.
    let queue_looks = || stage.redis.info("commandstats")["cmdstat_hget"].clone();
    for _ in 0..2 {
        let before = queue_looks();
        eventually("it has looked", async || queue_looks() != before).await;
    }
    let reads = || stage.redis.info("commandstats")["cmdstat_xreadgroup"].clone();
    let before = reads();
    stage.arm(10..20);
    stage.fire();
    for _ in 0..2 {
        let before = queue_looks();
        eventually("it has looked", async || queue_looks() != before).await;
    }
    assert_eq!((seen.len(), reads()), (10, before));
    stage.set_queue(1, false);
    seen.wait_for(20).await;
    stage.assert_settled().await;
    work.end().await;
    assert_eq!(member(), 0, "it has left the members");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_partitions_are_met_while_running_and_none_starves() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    let (noting, gated) = (seen.clone(), gate.clone());
    let work = start(stage.consumer().concurrency(2), move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move { gate.acquire().await.unwrap().forget() }
    });
    gate.add_permits(1_000_000);
    stage.arm(0..10);
    stage.fire();
    seen.wait_for(10).await;
    stage.set_queue(5, false);
    let queue = QueueName::new(QUEUE).unwrap();
    let partitions: Vec<_> = (0..5).map(|number| Keyspace::default().partition(&queue, number)).collect();
    let _relay = stage.relay_of(&partitions);
    for (n, partition) in partitions.iter().enumerate().skip(1) {
        stage.arm_in(partition, 5, n * 100..n * 100 + 100, &Bytes::new());
    }
    seen.wait_for(410).await;
    eventually("all is acknowledged", async || {
        partitions.iter().all(|partition| stage.redis.count(&[b"XLEN".as_slice(), &partition.stream()]) == 0)
    })
    .await;
    assert_eq!(work.end().await.done, 410);
    assert_balanced(&*stage.redis, QUEUE, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_not_there_is_created() {
    let stage = Stage::new();
    stage.redis.call(&["DEL", "overdue:queues"]);
    let work = start(stage.consumer(), |_| async {});
    eventually("the queue is there", async || stage.redis.count(&["HEXISTS", "overdue:queues", QUEUE]) == 1)
        .await;
    work.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_cannot_work_are_refused_at_the_start() {
    let stage = Stage::new();
    let run = async |consumer: Consumer<Raw>| consumer.run(|_| async {}, async {}).await.unwrap_err();
    let at =
        |queue: &str, group: &str| Consumer::<Raw>::builder(Settings::new(stage.redis.url()), queue, group);
    for consumer in [
        at("Orders", "billing"),
        at("orders", ""),
        at("orders", "billing").concurrency(0),
        at("orders", "billing").lease(Duration::from_millis(10)),
        at("orders", "billing").attempts(0),
        at("orders", "billing").limit(Duration::ZERO),
    ] {
        let error = run(consumer).await;
        assert_eq!(error.kind(), ErrorKind::Settings, "{error}");
    }
    stage.redis.call(&[
        b"HSET".as_slice(),
        b"overdue:queues",
        b"orders",
        b"\x82\xaapartitions\x01\xa6format\x63",
    ]);
    let error = run(at("orders", "billing")).await;
    assert_eq!(error.kind(), ErrorKind::NewerFormat, "{error}");
    let nobody = Consumer::<Raw>::builder(Settings::new("redis://127.0.0.1:1/"), "orders", "billing");
    assert_eq!(run(nobody).await.kind(), ErrorKind::Unreachable);
}
