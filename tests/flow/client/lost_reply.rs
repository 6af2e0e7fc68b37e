//! A call is made once: a lost answer never makes two generations.

use std::time::Duration;

use bytes::Bytes;
use overdue::{Change, Client, ErrorKind, Queue, Raw, When};
use overdue_protocol::call::{PAGE, Sweep};
use overdue_tests::{Mode, Proxy, Redis, Wire, eventually};

use super::{HOUR, armed, orders, tally};

async fn through(proxy: &Proxy) -> Queue<Raw> {
    let client = Client::builder(proxy.url()).deadline(Duration::from_secs(20)).connect().await.unwrap();
    client.queue("orders").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_of_schedule_arms_one_timer_or_says_unknown() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let queue = through(&proxy).await;
    for round in 0..40_u64 {
        let id = format!("order-{round}.");
        // Only what names the timer is cut: not the greeting of a new connection, nor a look at the queues.
        proxy.only(&id);
        proxy.down(Mode::Cut);
        let before = proxy.counters().accepted;
        let call = tokio::spawn({
            let (queue, id) = (queue.clone(), id.clone());
            async move { queue.schedule(id, HOUR, &Raw::default()).await }
        });
        eventually("the call is executed", async || armed(&redis, 0) == round + 1).await;
        eventually("its connection is cut", async || proxy.counters().accepted > before).await;
        proxy.heal();
        let scheduled = call.await.unwrap().unwrap();
        assert_eq!(scheduled.change, Change::Confirmed);
        assert_eq!(queue.get(id).await.unwrap().unwrap().generation, scheduled.generation);
    }
    assert_eq!((tally(&redis, "scheduled"), tally(&redis, "replaced")), (40, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_of_a_timer_that_has_fired_meanwhile_is_unknown_and_it_fired_once() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let queue = through(&proxy).await;
    let sweep = Sweep { partition: orders(0), limit: PAGE, grace_ms: 0, sweeper: "test".into() };
    let mut wire = Wire::connect(&redis);
    for round in 0..10 {
        let id = format!("order-{round}.");
        proxy.only(&id);
        proxy.down(Mode::Cut);
        let before = proxy.counters().accepted;
        let call = tokio::spawn({
            let queue = queue.clone();
            async move { queue.schedule(id, When::UnixMs(1), &Raw::default()).await }
        });
        eventually("it fires", async || wire.run(&sweep).unwrap().fired == 1).await;
        eventually("its connection is cut", async || proxy.counters().accepted > before).await;
        proxy.heal();
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::OutcomeUnknown, false));
        assert!(error.to_string().contains("asked afterwards, Redis holds nothing of this call"), "{error}");
        assert_eq!(redis.count(&[&b"XLEN"[..], &orders(0).stream()]), round + 1);
    }
    overdue_tests::assert_balanced(&redis, "orders", 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_of_cancel_says_that_it_can_be_made_again() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let queue = through(&proxy).await;
    queue.schedule("a", HOUR, &Raw::default()).await.unwrap();
    proxy.down(Mode::Cut);
    let error = queue.cancel("a").await.unwrap_err();
    proxy.heal();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(error.to_string().ends_with("a cancel can always be made again"), "{error}");
    assert_eq!(queue.cancel("a").await.unwrap(), None);
}

/// Cuts at any moment, in both directions, under load: every acknowledged generation is the only one of its id, and
/// no id ever got two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_cuts_at_any_moment_never_arm_an_id_twice() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let queue = through(&proxy).await;
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut answers = Vec::new();
                for i in 0..150 {
                    let id = Bytes::from(format!("{caller}-{i}"));
                    answers.push((id.clone(), queue.schedule(&id, HOUR, &Raw::new(id.clone())).await));
                }
                answers
            })
        })
        .collect();
    let mut passed = proxy.counters();
    while !callers.iter().all(tokio::task::JoinHandle::is_finished) {
        // The next cut comes after some bytes of traffic, so wherever the traffic happens to be.
        let step = rand::random_range(1..8_000);
        let moved = || proxy.counters().up > passed.up + step;
        while !moved() && !callers.iter().all(tokio::task::JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
        proxy.cut();
        passed = proxy.counters();
    }
    let (mut confirmed, mut unknown) = (0, 0);
    for caller in callers {
        for (id, answer) in caller.await.unwrap() {
            let found = queue.get(&id).await.unwrap();
            match answer {
                Ok(scheduled) => {
                    confirmed += u64::from(scheduled.change == Change::Confirmed);
                    assert_eq!(found.unwrap().generation, scheduled.generation, "{id:?}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
                    unknown += 1;
                }
            }
        }
    }
    assert_eq!((tally(&redis, "scheduled"), tally(&redis, "replaced")), (armed(&redis, 0), 0));
    assert!(confirmed + unknown > 0, "no cut met a call");
}
