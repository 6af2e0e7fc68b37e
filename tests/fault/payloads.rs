//! Payloads and ids of every kind, through whole processes.

use std::time::Duration;

use overdue::Raw;
use overdue_tests::{Launch, Redis, assert_balanced};

use crate::stage::{Producer, QUEUE, end, ids, printing, settled, stop, up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_payloads_of_1_mib_by_the_hundred_hold_the_server_up_for_less_than_50_ms() {
    let redis = Redis::start();
    let (relay, consumer) = (up(Launch::relay(&redis.url())), up(printing(&redis.url())));
    let producer = Producer::new(&redis.url()).await;
    redis.watch_for_slow(50);
    let payload = Raw::new(vec![b'x'; 1 << 20]);
    producer.arm_with(ids("large", 150), Duration::from_millis(4_000), false, &payload).await;
    producer.arm_with(ids("empty", 50), Duration::from_millis(4_000), false, &Raw::new("")).await;
    settled(&redis, 1).await;
    redis.assert_nothing_slow();
    end(&consumer, Duration::from_secs(20));
    stop(&relay);
    producer.read(&[&consumer]);
    producer.ledger.assert_met();
    assert!(consumer.stdout().lines().filter(|line| line.contains("\"payload\":\"\"")).count() == 50);
    assert_balanced(&redis, QUEUE, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_retries_of_1_mib_payloads_hold_the_server_up_for_less_than_50_ms() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let script = "cat > /dev/null; [ $OVERDUE_ATTEMPT = 2 ] && exit 65; exit 1";
    let launch = crate::stage::running(&redis.url(), script, &["--concurrency", "64"]);
    let consumer = up(launch.env("OVERDUE_CONSUME_RETRY_WAIT", "200ms"));
    let producer = Producer::new(&redis.url()).await;
    redis.watch_for_slow(50);
    producer.arm_with(ids("large", 100), Duration::from_secs(2), true, &Raw::new(vec![b'x'; 1 << 20])).await;
    settled(&redis, 1).await;
    assert_eq!(redis.count(&[b"XLEN".as_slice(), &crate::stage::partition(0).dead()]), 100);
    redis.assert_nothing_slow();
    stop(&consumer);
    stop(&relay);
    assert_balanced(&redis, QUEUE, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_ids_arrive_as_they_are() {
    let redis = Redis::start();
    let (relay, consumer) = (up(Launch::relay(&redis.url())), up(printing(&redis.url())));
    let producer = Producer::new(&redis.url()).await;
    let longest = vec![b'i'; 512];
    let odd: [&[u8]; 16] = [
        b"\xff\xfe\x00",
        b"a\nb",
        b"\r\n",
        b"{}",
        b"{orders:0}",
        b"x}y",
        b"/",
        b"a/b/c",
        b" ",
        b"%2F",
        b"\0",
        b"-",
        b"OK",
        b"NOSCRIPT",
        b"\"quoted\"",
        &longest,
    ];
    producer.arm(odd, Duration::from_millis(300), true).await;
    producer
        .arm(odd.map(|id| [b"plain ".as_slice(), &id[..id.len().min(500)]].concat()), Duration::ZERO, false)
        .await;
    settled(&redis, 1).await;
    stop(&consumer);
    stop(&relay);
    producer.read(&[&consumer]);
    producer.ledger.assert_met();
    assert_balanced(&redis, QUEUE, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_for_people_is_one_line_whatever_the_id_and_payload() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let consumer = up(Launch::consume(&redis.url(), QUEUE, "billing").args(["--print"]));
    let producer = Producer::new(&redis.url()).await;
    producer.arm_with([b"a\nb\xff"], Duration::ZERO, false, &Raw::new("two\nlines")).await;
    settled(&redis, 1).await;
    stop(&consumer);
    stop(&relay);
    let text = consumer.stdout();
    let words: Vec<_> = text.trim_end_matches('\n').split("  ").collect();
    assert_eq!(
        (words[0], words[1], words[4], words[5]),
        ("orders", "a\\nb\\xff", "1", "two\\nlines"),
        "{text}"
    );
    assert!(words[2].ends_with('Z') && words[3].starts_with('+') && words[3].ends_with("ms"), "{text}");
    assert_eq!(text.lines().count(), 1);
}
