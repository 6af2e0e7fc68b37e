//! Many timeouts one after the other leave nothing behind: not in Redis, not in the relay, not in the consumer.

#![allow(clippy::print_stdout, reason = "the figures are for people")]

use std::time::Duration;

use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use super::hands::Place;
use crate::stage::{QUEUE, ids, left, partition, settled, stop, up};

/// What a process may grow by once a tenth of the work is done.
const GROWTH: u64 = 24 << 20;

/// How many: `OVERDUE_TEST_TIMEOUTS`; `scripts/soak consume` asks for 2,000,000.
fn timeouts() -> usize {
    std::env::var("OVERDUE_TEST_TIMEOUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(200_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_memory_is_flat_over_many_timeouts_and_nothing_is_left() {
    const PAGE: usize = 10_000;
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let queue = overdue::Client::connect(&redis.url()).await.unwrap().queue(QUEUE).await.unwrap();
    let payload = overdue::Raw::new("hold");
    let place = Place::new(&redis, "done", &["concurrency=256", "lease_ms=30000"]);
    let sizes = || {
        let server = redis.info("memory")["used_memory"].parse().unwrap();
        [relay.rss_bytes(), place.with(overdue_tests::Program::rss_bytes), server]
    };
    let pages = timeouts() / PAGE;
    let mut first = [0; 3];
    for page in 0..pages {
        let ids = ids(&format!("{page}"), PAGE);
        let timers = ids.iter().map(|id| queue.timer(id).at(Duration::ZERO).payload(&payload));
        for armed in queue.schedule_many(timers).await {
            armed.unwrap();
        }
        eventually("it keeps up", async || {
            let left = left(&redis, &partition(0));
            if left.iter().sum::<u64>() < 2 * PAGE as u64 { Ok(()) } else { Err(left) }
        })
        .await;
        if page == pages / 10 {
            first = sizes();
        }
    }
    settled(&redis, 1).await;
    let last = sizes();
    println!("relay, consumer, Redis: {first:?} bytes became {last:?} over {} timeouts", timeouts());
    for (what, (first, last)) in ["the relay", "the consumer", "Redis"].iter().zip(first.iter().zip(last)) {
        assert!(last < first + GROWTH, "{what} grew from {} to {} MiB", first >> 20, last >> 20);
    }
    place.with(stop);
    assert_eq!(redis.count(&[b"XLEN".as_slice(), &partition(0).stream()]), 0);
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}
