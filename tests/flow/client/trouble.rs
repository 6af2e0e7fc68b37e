//! A server that is full, away, or holds something else.

use std::time::{Duration, Instant};

use overdue::{Client, ErrorKind, Raw};
use overdue_tests::Redis;

use super::{HOUR, armed, open, orders, raw};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oom_is_answered_at_once_and_nothing_is_armed() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    redis.call(&["CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction"]);
    let start = Instant::now();
    let error = queue.schedule("a", HOUR, &raw("x")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::OutOfMemory, true));
    assert!(error.to_string().ends_with("it was not done; raise maxmemory or remove data"), "{error}");
    assert!(
        error.to_string().starts_with("cannot arm timer \"a\" in queue orders: Redis at redis://"),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(armed(&redis, 0), 0);
    redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    queue.schedule("a", HOUR, &raw("x")).await.unwrap();
    overdue_tests::assert_balanced(&redis, "orders", 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_back_within_the_deadline_is_waited_for() {
    let redis = Redis::with_aof();
    let client = Client::builder(redis.url()).deadline(Duration::from_secs(30)).connect().await.unwrap();
    let queue = client.queue::<Raw>("orders").await.unwrap();
    redis.stop();
    // Its connection is closed before it ends: nothing is on its way.
    let call = tokio::spawn({
        let queue = queue.clone();
        async move { queue.schedule("a", HOUR, &raw("x")).await }
    });
    redis.restart().unwrap();
    match call.await.unwrap() {
        Ok(scheduled) => assert!(scheduled.change.is_armed()),
        // The client may have written into the dying connection.
        Err(error) => assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}"),
    }
    queue.schedule("b", HOUR, &raw("x")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stays_away_is_unavailable_after_the_deadline() {
    let redis = Redis::start();
    let client = Client::builder(redis.url()).deadline(Duration::from_millis(200)).connect().await.unwrap();
    let queue = client.queue::<Raw>("orders").await.unwrap();
    redis.kill9();
    let _ = queue.schedule("a", HOUR, &raw("x")).await;
    let start = Instant::now();
    let error = queue.schedule("b", HOUR, &raw("x")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true), "{error}");
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    assert_eq!(queue.get("b").await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_another_type_is_named_and_nothing_is_written() {
    let redis = Redis::start();
    let (client, queue) = open::<Raw>(&redis, 1).await;
    redis.call(&[&b"SET"[..], &orders(0).timers(), b"mine"]);
    let error = queue.schedule("a", HOUR, &raw("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server);
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    assert!(error.to_string().ends_with("use another namespace"), "{error}");
    assert_eq!(armed(&redis, 0), 0);
    client.close().await;
    assert_eq!(queue.schedule("a", HOUR, &raw("x")).await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_the_rights_learns_it_when_the_queue_is_opened() {
    let user = "weak on >pw ~overdue:* &* +@all -zadd -zscore -zcard".to_owned();
    let redis = Redis::with(overdue_tests::redis::Options { users: vec![user], ..Default::default() });
    let client = Client::builder(redis.url()).username("weak").password("pw").connect().await.unwrap();
    let error = client.queue::<Raw>("orders").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(!error.to_string().contains("pw"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_holds_no_caller_for_long_and_arms_nothing_twice() {
    let redis = Redis::start();
    let client = Client::builder(redis.url()).deadline(Duration::from_secs(1)).connect().await.unwrap();
    let queue = client.queue::<Raw>("orders").await.unwrap();
    redis.sigstop();
    let start = Instant::now();
    let call = |i: u64| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.schedule(format!("order-{i}"), HOUR, &raw("x")).await })
    };
    // More than the calls under way can carry: the rest waits in line.
    let calls: Vec<_> = (0..2_000).map(call).collect();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Unavailable), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    redis.sigcont();
    let scheduled = queue.schedule("last", HOUR, &raw("x")).await.unwrap();
    assert!(scheduled.change.is_armed());
    assert_eq!(super::tally(&redis, "scheduled"), armed(&redis, 0));
    overdue_tests::assert_balanced(&redis, "orders", 1);
}
