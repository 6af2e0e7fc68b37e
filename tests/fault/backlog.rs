//! A relay that is behind.

use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use crate::stage::{Producer, assert_one_entry_each, ids, partition, stop, up};

const TIMERS: usize = 100_000;
/// What a relay may grow by while it catches up.
const GROWTH: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_a_relay_that_is_100_000_keyed_timers_behind_catches_up_in_flat_memory() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let due_ms = redis.now_ms() + 12_000;
    for page in ids("t", TIMERS).chunks(10_000) {
        producer.arm(page, overdue::When::UnixMs(due_ms), true).await;
    }
    let armed = redis.count(&[b"ZCARD".as_slice(), &partition(0).index()]);
    assert_eq!(armed, TIMERS as u64, "arming took too long");
    let before = relay.rss_bytes();
    relay.sigstop();
    eventually("all are due", async || redis.now_ms() > due_ms).await;
    // Redis looks at its keys itself, and publishes each one.
    redis.call(&["EVAL", "for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('EXISTS', k) end", "0"]);
    relay.sigcont();
    let mut most = before;
    eventually("all have fired", async || {
        most = most.max(relay.rss_bytes());
        let armed = redis.count(&[b"ZCARD".as_slice(), &partition(0).index()]);
        if armed == 0 { Ok(()) } else { Err(armed) }
    })
    .await;
    assert!(most - before < GROWTH, "{} MiB became {} MiB", before >> 20, most >> 20);
    assert_one_entry_each(&redis, TIMERS);
    assert_balanced(&redis, "orders", 1);
    stop(&relay);
}
