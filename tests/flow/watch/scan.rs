//! Keys that nobody told of.

use overdue_protocol::watch::Rule;
use overdue_relay::WatchSettings;
use overdue_telemetry::label::ScanReason;
use overdue_tests::{Redis, eventually};

use super::stage::{
    Running, count, counted, end, fired, index, metrics, redis, rule, scanned, server_feed, settings, start,
};

fn fill(redis: &Redis, prefix: &str, keys: u32) {
    let many = "for i = 1, ARGV[2] do redis.call('SET', ARGV[1] .. i, 'v', 'PX', 3600000 + i) end";
    redis.call(&["EVAL", many, "0", prefix, &keys.to_string()]);
}

async fn known(redis: &Redis, keys: usize) {
    eventually("all are in the index", async || {
        let known = index(redis, "q").len();
        if known == keys { Ok(()) } else { Err(known) }
    })
    .await;
}

async fn begin(redis: &Redis, settings: WatchSettings) -> Running {
    let second = Rule { name: super::stage::name("second"), ..rule("t:*", "q") };
    start(&redis.url(), vec![rule("s:*", "q"), second], settings).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_were_there_before_are_found_at_the_start() {
    let redis = redis();
    fill(&redis, "s:", 3_000);
    fill(&redis, "t:", 500);
    fill(&redis, "other:", 3_000);
    let running = begin(&redis, settings("one")).await;
    known(&redis, 3_500).await;
    scanned("start", 1.0).await;
    counted("overdue_scan_looks_total", &[], 3_500.0).await;
    counted("overdue_scan_progress", &[("feed", "server/0")], 1.0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_keeps_its_pace_and_another_that_is_asked_for_meanwhile_follows() {
    let redis = redis();
    fill(&redis, "other:", 2_000);
    // Two rules: 4,000 keys to walk over, some 2 s.
    let slow = WatchSettings { scan_keys_per_s: 2_000, ..settings("one") };
    let running = begin(&redis, slow).await;
    let begun = std::time::Instant::now();
    eventually("the first is under way", async || {
        metrics().get("overdue_scan_progress", &[]).is_some_and(|progress| progress > 0.1 && progress < 0.6)
    })
    .await;
    running.scan.scan_now(&server_feed(0), ScanReason::Flush);
    scanned("start", 1.0).await;
    let took = begun.elapsed().as_secs_f64();
    assert!(took > 1.2, "{took} s");
    // It is behind the place where the first was when it was asked for.
    redis.call(&["SET", "s:late", "v", "PX", "3600000"]);
    scanned("flush", 1.0).await;
    known(&redis, 1).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_come_back_by_themselves() {
    let redis = redis();
    let often = WatchSettings { scan_every: std::time::Duration::from_millis(300), ..settings("one") };
    let running = begin(&redis, often).await;
    scanned("periodic", 2.0).await;
    running.stop().await;
}

/// Scripts that run long hold up the scan's commands: it goes on from where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_goes_on_through_a_server_that_hangs() {
    let redis = redis();
    fill(&redis, "s:", 5_000);
    let slow = WatchSettings { scan_keys_per_s: 2_000, ..settings("one") };
    let running = begin(&redis, slow).await;
    eventually("the scan is under way", async || !index(&redis, "q").is_empty()).await;
    redis.sigstop();
    // Of the scan itself nothing need be heard: what was read is written for as long as 30 s before that is an error.
    eventually("it is noticed", async || count("overdue_loop_errors_total", &[("loop", "mark")]) >= 2.0)
        .await;
    redis.sigcont();
    assert!(index(&redis, "q").len() < 5_000, "the scan was over before");
    known(&redis, 5_000).await;
    end(&redis, "s:after").await;
    fired(&redis, "q", 1, &[&running]).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_broken_does_not_hold_up_the_scan_for_others() {
    let redis = redis();
    fill(&redis, "s:", 600);
    fill(&redis, "bad:", 600);
    redis.call(&[b"SET".as_slice(), &super::stage::partition("bad").watched(), b"not ours"]);
    let rules = vec![rule("bad:*", "bad"), rule("s:*", "q")];
    let running = start(&redis.url(), rules, settings("one")).await;
    known(&redis, 600).await;
    scanned("start", 1.0).await;
    running.stop().await;
}
