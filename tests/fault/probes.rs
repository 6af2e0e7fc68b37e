//! `/livez` and `/readyz` while Redis is away, by what they are asked every few milliseconds; and who is ready though it
//! takes nothing.

use std::time::{Duration, Instant};

use overdue::Raw;
use overdue_tests::{Launch, Program, Redis, eventually};

use crate::stage::{GROUP, Producer, QUEUE, in_hand, printing, running, stop, up};

/// Within so much of the fault, and of the return, `/readyz` says so.
const SOON: Duration = Duration::from_secs(5);

/// How long Redis is away: 12 s, or `OVERDUE_TEST_OUTAGE` in seconds.
fn outage() -> Duration {
    let seconds = std::env::var("OVERDUE_TEST_OUTAGE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(12))
}

/// How Redis goes away.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nobody listens.
    Killed,
    /// Connections stay, and nothing answers.
    Hangs,
}

/// Fails unless `/readyz` is `status` at the latest [`SOON`] after `from`, and `/livez` is 200 all the time.
async fn becomes(programs: &[Program], status: u16, from: Instant, fault: Fault) {
    for program in programs {
        eventually("it says so", async || {
            let live = program.livez();
            assert_eq!(live.status, 200, "{fault:?}\n{}", live.body);
            let ready = program.readyz();
            assert!(from.elapsed() < SOON, "{fault:?}, still {}:\n{}", ready.status, ready.body);
            ready.status == status
        })
        .await;
    }
}

async fn go_away_and_come_back(fault: Fault) {
    let redis = Redis::with_aof();
    let url = redis.url();
    let producer = Producer::new(&url).await;
    producer.arm(["held"], Duration::ZERO, false).await;
    // The first has all its slots busy, the second is of a queue that is paused, the third has nothing to do.
    let busy = up(running(&url, "exec sleep 600", &["--concurrency", "1", "--grace", "1s"]));
    let relay = up(Launch::relay(&url));
    in_hand(&redis, 1).await;
    let paused = up(Launch::consume(&url, "paused", GROUP).args(["--print"]));
    let idle = up(printing(&url));
    assert_eq!(Launch::new(["pause", "paused", "--redis", &url]).run().code, Some(0));
    producer.arm(["waits"], Duration::ZERO, false).await;
    let programs = [relay, busy, paused, idle];
    becomes(&programs, 200, Instant::now(), fault).await;

    match fault {
        Fault::Killed => redis.kill9(),
        Fault::Hangs => redis.sigstop(),
    }
    let gone = Instant::now();
    becomes(&programs, 503, gone, fault).await;
    while gone.elapsed() < outage() {
        for program in &programs {
            assert_eq!((program.livez().status, program.readyz().status), (200, 503), "{fault:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    match fault {
        Fault::Killed => redis.restart().unwrap(),
        Fault::Hangs => redis.sigcont(),
    }
    becomes(&programs, 200, Instant::now(), fault).await;
    programs.iter().for_each(stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_down_all_are_live_and_not_ready_and_seconds_after_its_return_they_are() {
    go_away_and_come_back(Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_hangs_all_are_live_and_not_ready_and_seconds_after_its_return_they_are() {
    go_away_and_come_back(Fault::Hangs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_or_with_all_slots_busy_a_consumer_is_ready_all_the_time() {
    let redis = Redis::start();
    let url = redis.url();
    let producer = Producer::new(&url).await;
    producer.arm_with(["held", "waits"], Duration::ZERO, false, &Raw::new("")).await;
    let busy = up(running(&url, "exec sleep 600", &["--concurrency", "1", "--grace", "1s"]));
    let _relay = up(Launch::relay(&url));
    in_hand(&redis, 1).await;
    let paused = up(Launch::consume(&url, "paused", GROUP).args(["--print"]));
    assert_eq!(Launch::new(["pause", "paused", "--redis", &url]).run().code, Some(0));
    // Longer than any bound of a loop.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(12) {
        for program in [&busy, &paused] {
            let ready = program.readyz();
            assert_eq!((ready.status, program.livez().status), (200, 200), "{}", ready.body);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(redis.count(&["XLEN", &format!("overdue:{{{QUEUE}:0}}:stream")]), 2);
    [&busy, &paused].into_iter().for_each(stop);
}
