//! Several relays on one queue, and relays that die.

use std::time::Duration;

use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use crate::stage::{Producer, assert_one_entry_each, ids, partition, stop, up};

const TIMERS: usize = 20_000;

async fn all_fired(redis: &Redis) {
    eventually("all have fired", async || {
        let armed = redis.count(&[b"ZCARD".as_slice(), &partition(0).index()]);
        if armed == 0 { Ok(()) } else { Err(armed) }
    })
    .await;
}

/// Timers that fall due within one second, a tenth of them keyed: both relays hear of those too.
async fn arm(producer: &Producer) {
    let all = ids("t", TIMERS);
    for (i, page) in all.chunks(TIMERS / 10).enumerate() {
        let when = Duration::from_millis(2_000 + i as u64 * 100);
        producer.arm(page, when, i == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_two_relays_on_20_000_timers_make_20_000_entries() {
    let redis = Redis::start();
    let relays = [up(Launch::relay(&redis.url())), up(Launch::relay(&redis.url()))];
    let producer = Producer::new(&redis.url()).await;
    arm(&producer).await;
    all_fired(&redis).await;
    assert_one_entry_each(&redis, TIMERS);
    assert_balanced(&redis, "orders", 1);
    let fired = |i: usize| relays[i].metrics().get("overdue_fired_total", &[]).unwrap_or(0.0);
    assert_eq!(fired(0) + fired(1), TIMERS as f64, "each entry is counted by one relay");
    relays.iter().for_each(stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_a_relay_killed_in_the_middle_of_20_000_timers_leaves_20_000_entries() {
    let redis = Redis::start();
    let victim = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    arm(&producer).await;
    let stream = partition(0).stream();
    eventually("some have fired", async || redis.count(&[b"XLEN".as_slice(), &stream]) > 500).await;
    victim.kill9();
    let fired = redis.count(&[b"XLEN".as_slice(), &stream]);
    assert!(fired < TIMERS as u64, "it was killed too late");
    let heir = up(Launch::relay(&redis.url()));
    all_fired(&redis).await;
    assert_one_entry_each(&redis, TIMERS);
    assert_balanced(&redis, "orders", 1);
    stop(&heir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_leaves_the_list_of_members_and_a_second_signal_ends_it_at_once() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let members = || redis.count(&["HLEN", "overdue:members"]);
    eventually("it is on the list", async || members() == 1).await;
    stop(&relay);
    assert_eq!(members(), 0);

    let relay = up(Launch::relay(&redis.url()));
    let pid = nix::unistd::Pid::from_raw(relay.pid().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(relay.wait_exit(Duration::from_secs(10)).code(), Some(0), "Ctrl-C drains as SIGTERM does");

    let relay = up(Launch::relay(&redis.url()));
    redis.sigstop();
    relay.sigterm();
    eventually("it has heard the signal", async || relay.stderr().contains("stopping")).await;
    relay.sigterm();
    assert_eq!(relay.wait_exit(Duration::from_secs(1)).code(), Some(130));
    redis.sigcont();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_ends_within_10_s_when_redis_hangs() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    redis.sigstop();
    stop(&relay);
    redis.sigcont();
}
