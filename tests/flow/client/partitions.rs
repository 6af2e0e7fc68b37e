//! The number of partitions: lost, written back, in dispute.

use overdue::{ErrorKind, Raw};
use overdue_protocol::call::{Mode, Schedule, ScheduleItem, When};
use overdue_protocol::{QueueInfo, TimerId};
use overdue_tests::{Redis, Wire, eventually};

use super::{HOUR, armed, connect, open, orders, raw};

fn set_partitions(redis: &Redis, partitions: u32) {
    set_info(redis, &QueueInfo { partitions, created_ms: 1, format: 1, paused: false, history: 0 });
}

fn set_info(redis: &Redis, info: &QueueInfo) {
    redis.call(&[&b"HSET"[..], b"overdue:queues", b"orders", &info.encode()]);
}

fn partitions(redis: &Redis) -> Option<u32> {
    let queues = Wire::connect(redis).hgetall("overdue:queues").unwrap();
    queues.get(&b"orders"[..]).map(|raw| QueueInfo::decode(raw).unwrap().partitions)
}

/// Another process arms a timer as if the queue had so many partitions.
fn arm_as_if(redis: &Redis, partitions: u32) {
    let item = ScheduleItem {
        id: TimerId::try_from("theirs").unwrap(),
        when: When::In(3_600_000),
        mode: Mode::Upsert,
        payload: "".into(),
        call: "12345678".into(),
        extras: "".into(),
        keyed: false,
    };
    Wire::connect(redis).run(&Schedule { partition: orders(0), partitions, items: vec![item] }).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_disagree_writes_nothing() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 4).await;
    arm_as_if(&redis, 1);
    let ids = (0..40).map(|i| format!("order-{i}"));
    let mine: Vec<_> = ids.filter(|id| overdue_protocol::partition::of(id.as_bytes(), 4) == 0).collect();
    let error = queue.schedule(&mine[0], HOUR, &raw("")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::PartitionsDisagree, false));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot arm timer \"{}\" in queue orders: its data is of 1 partition(s), but overdue:queues says 4: \
             nothing was written; if 1 is right, remove the field orders from overdue:queues and run \
             `overdue queues create orders --partitions 1`",
            mine[0]
        )
    );
    let many = queue.schedule_many(mine.iter().map(|id| queue.timer(id).at(HOUR))).await;
    assert!(many.iter().all(|one| one.as_ref().unwrap_err().kind() == ErrorKind::PartitionsDisagree));
    assert_eq!((armed(&redis, 0), partitions(&redis)), (1, Some(4)));
    let opened = connect(&redis).await.queue::<Raw>("orders").await;
    assert_eq!(
        opened.err().unwrap().kind(),
        ErrorKind::PartitionsDisagree,
        "a newcomer learns it when it opens it"
    );

    // Put right by hand, it goes on at once.
    set_partitions(&redis, 1);
    let many = queue.schedule_many(mine.iter().map(|id| queue.timer(id).at(HOUR))).await;
    assert!(many.iter().all(Result::is_ok));
    assert_eq!(armed(&redis, 0), 1 + mine.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_list_of_queues_is_written_back_with_the_same_number() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 3).await;
    for flush in [&["DEL", "overdue:queues"][..], &["FLUSHALL"]] {
        redis.call(flush);
        assert_eq!(partitions(&redis), None);
        // A reconnect is one of the occasions to look.
        redis.call(&["CLIENT", "KILL", "TYPE", "normal"]);
        eventually("the list is written back", async || {
            // The cut itself may meet a call.
            let _ = queue.schedule("a", HOUR, &raw("")).await;
            partitions(&redis) == Some(3)
        })
        .await;
    }
    // A newcomer that finds no list asks the data.
    queue.schedule_many((0..20).map(|i| queue.timer(format!("order-{i}")).at(HOUR))).await;
    redis.call(&["DEL", "overdue:queues"]);
    let newcomer = connect(&redis).await.queue::<Raw>("orders").await.unwrap();
    assert!(newcomer.created());
    assert_eq!(partitions(&redis), Some(3));
    assert!(newcomer.get("order-19").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_in_a_newer_format_is_not_touched() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    set_info(&redis, &QueueInfo { partitions: 1, created_ms: 1, format: 2, paused: false, history: 0 });
    let error = connect(&redis).await.queue::<Raw>("orders").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NewerFormat);
    assert!(error.to_string().contains("upgrade this program"), "{error}");
    // A holder learns it with its next look.
    redis.call(&["CLIENT", "KILL", "TYPE", "normal"]);
    eventually("the holder refuses too", async || {
        queue.schedule("a", HOUR, &raw("")).await.is_err_and(|error| error.kind() == ErrorKind::NewerFormat)
    })
    .await;
}
