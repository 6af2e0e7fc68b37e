//! Answers and effects in the order given.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use overdue::{Change, ErrorKind, Raw, When};
use overdue_tests::Redis;

use super::{HOUR, armed, open, orders, raw, tally};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedule_many_answers_in_the_order_given() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 4).await;
    let due = |i: u64| 4_000_000_000_000 + i * 7 % 1_000;
    let mut timers: Vec<_> =
        (0..1_000).map(|i| queue.timer(format!("order-{i}")).at(When::UnixMs(due(i)))).collect();
    timers.insert(500, queue.timer("").at(HOUR));
    timers.push(queue.timer("order-0").at(When::UnixMs(5_000_000_000_000)));
    let mut answers = queue.schedule_many(timers).await;
    let last = answers.pop().unwrap().unwrap();
    assert_eq!(answers.remove(500).unwrap_err().kind(), ErrorKind::Invalid);
    for (i, answer) in answers.iter().enumerate() {
        let answer = answer.as_ref().unwrap();
        assert_eq!((answer.change, answer.due_ms), (Change::Armed, due(i as u64)), "order-{i}");
    }
    assert_eq!(
        (last.change, last.due_ms),
        (Change::Replaced, 5_000_000_000_000),
        "the same id twice: in order"
    );
    assert!(last.generation > answers[0].as_ref().unwrap().generation);
    assert_eq!(queue.get("order-0").await.unwrap().unwrap().generation, last.generation);
    assert!((0..4).all(|number| armed(&redis, number) > 100));
    overdue_tests::assert_balanced(&redis, "orders", 4);
}

/// Payloads that fill a page by bytes, and armed ones that a script may not read all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn megabyte_payloads_go_page_by_page_and_none_is_left_out() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    let big = Raw::new(vec![b'x'; 1024 * 1024]);
    let timers = |mode| {
        let timer = |i| queue.timer(format!("order-{i}")).at(HOUR).mode(mode);
        (0..24).map(timer).collect::<Vec<_>>()
    };
    let full: Vec<_> = timers(overdue::Mode::Upsert).into_iter().map(|timer| timer.payload(&big)).collect();
    let changes = |answers: Vec<overdue::Result<overdue::Scheduled>>| -> Vec<_> {
        answers.into_iter().map(|answer| answer.unwrap().change).collect()
    };
    assert_eq!(changes(queue.schedule_many(full).await), [Change::Armed; 24]);
    assert_eq!(changes(queue.schedule_many(timers(overdue::Mode::IfAbsent)).await), [Change::Present; 24]);
    let gone = queue.cancel_many((0..24).map(|i| format!("order-{i}"))).await;
    assert!(gone.into_iter().all(|gone| gone.unwrap().is_some()));
    assert_eq!((armed(&redis, 0), tally(&redis, "cancelled")), (0, 24));
}

type Calls<'a> = Vec<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>;

/// Polls all of them, in this order at first.
async fn together(mut calls: Calls<'_>) {
    std::future::poll_fn(|context| {
        calls.retain_mut(|call| call.as_mut().poll(context).is_pending());
        if calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_for_one_id_end_with_the_last() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    for round in 0..20_u64 {
        let mut calls: Calls<'_> = Vec::new();
        for i in 0..100_u64 {
            let queue = &queue;
            for id in ["a", "b"] {
                let due = When::UnixMs(4_000_000_000_000 + i);
                let arm = queue.timer(id).at(due).payload(&raw("x"));
                calls.push(Box::pin(async move { assert!(arm.schedule().await.is_ok()) }));
                if id == "b" {
                    calls.push(Box::pin(async move { assert!(queue.cancel(id).await.is_ok()) }));
                }
            }
            if i == 50 && round % 2 == 1 {
                // What is sent again must not be overtaken either.
                redis.call(&["SCRIPT", "FLUSH"]);
            }
        }
        together(calls).await;
        assert_eq!(queue.get("a").await.unwrap().unwrap().due_ms, 4_000_000_000_099, "round {round}");
        assert_eq!(queue.get("b").await.unwrap(), None, "round {round}");
    }
    assert_eq!(tally(&redis, "scheduled"), 4_000);
    overdue_tests::assert_balanced(&redis, "orders", 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_share_round_trips() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    redis.call(&["CONFIG", "RESETSTAT"]);
    let mut calls: Calls<'_> = Vec::new();
    for i in 0..1_000 {
        let timer = queue.timer(format!("order-{i}")).at(HOUR);
        calls.push(Box::pin(async move { assert!(timer.schedule().await.is_ok()) }));
    }
    together(calls).await;
    let stats = redis.info("commandstats");
    let calls = stats.iter().filter(|(name, _)| name.starts_with("cmdstat_eval"));
    let calls: u64 = calls
        .map(|(_, stat)| stat["calls=".len()..].split(',').next().unwrap().parse::<u64>().unwrap())
        .sum();
    // An idle lane sends at once, so how many depends on the machine; one each would be 1,000.
    assert!(calls <= 300, "{calls} calls for 1,000 timers: {stats:?}");
    assert_eq!(redis.count(&[&b"ZCARD"[..], &orders(0).index()]), 1_000);
}
