//! Looking at what is armed.

use std::collections::BTreeSet;
use std::time::Duration;

use overdue::{Raw, When};
use overdue_tests::Redis;

use super::{HOUR, armed, connect, open, raw};

const ODD: [&[u8]; 8] =
    [b"\xff\xfe", b"a\r\nb", b"{}", b"a/b:c", b"\0", b"}:key:{", b" ", "\u{1F4A9}".as_bytes()];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_are_bytes_whatever_they_hold() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 3).await;
    for id in ODD {
        queue.timer(id).at(HOUR).payload(&Raw::new(id)).keyed().schedule().await.unwrap();
    }
    for id in ODD {
        assert_eq!(queue.get(id).await.unwrap().unwrap().payload, Raw::new(id));
    }
    let listed = queue.list().page().await.unwrap();
    let ids: BTreeSet<_> = listed.timers.iter().map(|timer| &timer.id.as_bytes()[..]).collect();
    assert_eq!(ids, BTreeSet::from(ODD));
    for id in ODD {
        assert!(queue.cancel(id).await.unwrap().is_some());
    }
    assert_eq!(queue.count().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_with_equal_deadlines_leave_nothing_out_and_repeat_nothing() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 3).await;
    let due = redis.now_ms() + 3_600_000;
    let timer = |i: u64| queue.timer(format!("order-{i:03}")).at(When::UnixMs(due + i / 200));
    let answers = queue.schedule_many((0..500).map(timer)).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(queue.count().await.unwrap(), 500);

    let mut met = Vec::new();
    let mut list = queue.list().limit(37);
    loop {
        let page = list.page().await.unwrap();
        assert!(page.timers.len() <= 37);
        met.extend(page.timers);
        // What is cancelled and armed meanwhile before the cursor moves nothing.
        queue.cancel("order-000").await.unwrap();
        queue.schedule("order-000", When::UnixMs(due), &raw("")).await.unwrap();
        let Some(next) = page.next else { break };
        list = queue.list().limit(37).after(next);
    }
    let ids: Vec<_> = met.iter().map(|timer| timer.id.to_string()).collect();
    assert_eq!(ids, (0..500).map(|i| format!("order-{i:03}")).collect::<Vec<_>>());

    let first = queue.list().due_before(When::UnixMs(due + 1)).limit(1_000).page().await.unwrap();
    assert_eq!((first.timers.len(), first.next), (200, None));
    assert!(queue.list().due_before(Duration::ZERO).page().await.unwrap().timers.is_empty());
    queue.schedule("late", When::UnixMs(5), &raw("")).await.unwrap();
    let overdue = queue.list().due_before(Duration::ZERO).page().await.unwrap();
    assert_eq!(overdue.timers[0].due_ms, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_creates_no_queue_and_opening_says_when_it_did() {
    let redis = Redis::start();
    let client = connect(&redis).await;
    assert!(client.find_queue::<Raw>("ordres").await.unwrap().is_none());
    assert_eq!(redis.count(&["DBSIZE"]), 0);
    assert!(client.queue::<Raw>("orders").await.unwrap().created());
    assert!(!client.queue::<Raw>("orders").await.unwrap().created());
    let other = connect(&redis).await.find_queue::<Raw>("orders").await.unwrap().unwrap();
    assert!(!other.created());
    assert_eq!((other.count().await.unwrap(), armed(&redis, 0)), (0, 0));
}
