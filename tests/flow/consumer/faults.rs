//! What Redis and the network do to a consumer.

use std::sync::Arc;
use std::time::Duration;

use overdue_consumer::{Outcome, Raw, Timeout};
use overdue_tests::{Mode, Proxy, Redis, assert_balanced, eventually};
use tokio::sync::Semaphore;

use super::stage::{GROUP, QUEUE, Seen, Stage, consumer_at, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_deleted_group_destroyed_and_flushall_are_survived() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    let stream = stage.partition.stream();
    let faults: [&[&[u8]]; 4] = [
        &[b"DEL", &stream],
        &[b"XGROUP", b"DESTROY", &stream, GROUP.as_bytes()],
        &[b"FLUSHALL"],
        &[b"SET", &stream, b"somebody else's"],
    ];
    for (n, fault) in faults.iter().enumerate() {
        let ids = n * 10..n * 10 + 10;
        stage.arm(ids.clone());
        while stage.fire() > 0 {}
        seen.wait_for(ids.end).await;
        eventually("all is acknowledged", async || stage.pending() == 0 && stage.stream_length() == 0).await;
        stage.redis.call(fault);
        if fault[0] == b"SET" {
            // Not ours to remove: it waits until somebody does.
            stage.redis.call(&[b"DEL".as_slice(), &stream]);
        }
        stage.wait_for_group().await;
    }
    stage.arm(100..110);
    while stage.fire() > 0 {}
    seen.wait_for(50).await;
    stage.assert_settled().await;
    assert!(work.is_running());
    eventually("the queue is written back", async || {
        stage.redis.count(&["HEXISTS", "overdue:queues", QUEUE]) == 1
    })
    .await;
    let report = work.end().await;
    assert_eq!((report.done, report.unsettled), (50, 0), "{report:?}");
    seen.assert_once(50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_destroyed_under_a_handler_does_not_start_it_twice() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    let (noting, gated) = (seen.clone(), gate.clone());
    let work = start(stage.consumer().lease(Duration::from_secs(60)), move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move { gate.acquire().await.unwrap().forget() }
    });
    stage.arm(0..5);
    stage.fire();
    seen.wait_for(5).await;
    stage.redis.call(&[b"XGROUP".as_slice(), b"DESTROY", &stage.partition.stream(), GROUP.as_bytes()]);
    // Joined again at the oldest entry: the five are ours once more, and still in hand.
    eventually("the five are pending again", async || stage.pending() == 5).await;
    gate.add_permits(5);
    stage.assert_settled().await;
    assert_eq!((work.end().await.done, seen.len()), (5, 5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acks_wait_out_a_cut_connection() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    let proxy = Proxy::start(stage.redis.addr());
    let (noting, gated) = (seen.clone(), gate.clone());
    let work = start(consumer_at(&proxy.url()).lease(Duration::from_secs(30)), move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move { gate.acquire().await.unwrap().forget() }
    });
    stage.arm(0..40);
    stage.fire();
    seen.wait_for(40).await;
    proxy.refuse(true);
    proxy.cut();
    eventually("it is cut off", async || proxy.counters().open == 0).await;
    gate.add_permits(40);
    eventually("all handlers have ended", async || gate.available_permits() == 0).await;
    assert_eq!(stage.pending(), 40);
    proxy.heal();
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.lost), (40, 0), "{report:?}");
    seen.assert_once(40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_whose_answer_was_lost_is_not_taken_for_a_lost_lease() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    let proxy = Proxy::start(stage.redis.addr());
    let (noting, gated) = (seen.clone(), gate.clone());
    let work = start(consumer_at(&proxy.url()).lease(Duration::from_secs(30)), move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            if t.id().as_bytes() == "t0" && t.attempt() == 1 { Outcome::retry("once") } else { Outcome::Done }
        }
    });
    stage.arm(0..10);
    stage.fire();
    seen.wait_for(10).await;
    // What is sent now is done, and its answer does not come back.
    proxy.down(Mode::Cut);
    gate.add_permits(11);
    eventually("Redis has done some of it", async || stage.pending() < 10).await;
    proxy.heal();
    let _relay = stage.relay();
    seen.wait_for(11).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.retried, report.lost), (10, 1, 0), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_read_loses_no_entry() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let proxy = Proxy::start(stage.redis.addr());
    let noting = seen.clone();
    let work = start(consumer_at(&proxy.url()).lease(Duration::from_secs(60)), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    stage.arm(0..1);
    stage.fire();
    seen.wait_for(1).await;
    for n in 1..4 {
        // The server gives the entries to a reader that never hears of it.
        proxy.only("XREADGROUP");
        proxy.down(Mode::Cut);
        stage.arm(n * 10..n * 10 + 10);
        stage.fire();
        eventually("a reply was lost", async || stage.pending() == 10 || seen.len() > n * 10 - 9).await;
        proxy.heal();
        seen.wait_for(n * 10 + 1).await;
    }
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.claimed), (31, 0), "{report:?}");
    seen.assert_once(31);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn script_flush_at_any_time_is_not_noticed() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        async move { if t.attempt() == 1 { Outcome::retry("once") } else { Outcome::Done } }
    });
    let _relay = stage.relay();
    for n in 0..20 {
        stage.arm(n * 50..n * 50 + 50);
        stage.redis.call(&["SCRIPT", "FLUSH"]);
    }
    seen.wait_for(2000).await;
    stage.assert_settled().await;
    assert_eq!(work.end().await.done, 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_that_cannot_be_written_waits_and_holds_nothing_else_up() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        async move {
            let fails = t.id().as_bytes() == "t0" && t.attempt() == 1;
            if fails { Outcome::retry("once") } else { Outcome::Done }
        }
    });
    let retries = stage.partition.retry_index();
    stage.wait_for_group().await;
    stage.arm(0..1);
    stage.redis.call(&[b"SET".as_slice(), &retries, b"somebody else's"]);
    stage.fire();
    seen.wait_for(1).await;
    stage.arm(1..101);
    while stage.fire() > 0 {}
    seen.wait_for(101).await;
    eventually("only the retry is pending", async || stage.pending() == 1).await;
    stage.redis.call(&[b"DEL".as_slice(), &retries]);
    let _relay = stage.relay();
    seen.wait_for(102).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.retried), (101, 1), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_redis_is_waited_out() {
    let (stage, seen) = (Stage::on(Redis::with_aof()), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer().concurrency(4), move |t: Timeout<Raw>| {
        noting.note(&t);
        tokio::time::sleep(Duration::from_millis(5))
    });
    stage.arm(0..200);
    while stage.fire() > 0 {}
    seen.wait_for(20).await;
    stage.redis.kill9();
    stage.redis.restart().expect("it starts again");
    seen.wait_for(200).await;
    // The AOF may have lost the last acknowledgements of a second: those are handled again, never fewer.
    stage.assert_settled().await;
    let keys: std::collections::BTreeSet<_> = seen.all().into_iter().map(|delivery| delivery.key).collect();
    assert_eq!(keys.len(), 200);
    work.end().await;
    assert_balanced(&*stage.redis, QUEUE, 1);
}
