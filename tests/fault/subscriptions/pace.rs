//! More than the holder takes: counted to the last one, in order, with bounded memory.

use std::time::Duration;

use overdue_store::{Node, Signal};
use overdue_tests::redis::Options;
use overdue_tests::{Mode as Net, Proxy, Redis, eventually};

use super::{Signals, any, message, next, subscribe};

const PUBLISH: &str = "for i = ARGV[1], ARGV[2] do redis.call('PUBLISH', 'abc', i) end return 1";

/// What was heard of publications that are numbered from 1.
#[derive(Default)]
struct Heard {
    told: u64,
    lost: u64,
    losses: u64,
}

impl Heard {
    /// Checks that each number is there, or counted, at its place.
    fn take(&mut self, signal: Signal) {
        match signal {
            Signal::Lost { count, .. } => {
                self.lost += count;
                self.losses += 1;
            }
            Signal::Message { payload, .. } => {
                self.told += 1;
                let number: u64 = std::str::from_utf8(&payload).unwrap().parse().unwrap();
                assert_eq!(number, self.told + self.lost, "every loss is told before what comes after it");
            }
            other => panic!("{other:?}"),
        }
    }

    fn all(&self) -> u64 {
        self.told + self.lost
    }
}

/// Resident memory of this process in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

async fn drain(signals: &mut Signals, heard: &mut Heard, until: u64) {
    while heard.all() < until {
        let signal = any(signals).await;
        heard.take(signal);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_beyond_a_slow_holder_is_counted_exactly_and_costs_no_memory() {
    const SENT: u64 = 200_000;
    let redis = Redis::start();
    let (_subscriber, mut signals) = subscribe(&redis.url(), &["a*"], 1_000).await;
    let before = memory();
    let sender = async {
        for first in (1..=SENT).step_by(20_000) {
            redis.call(&["EVAL", PUBLISH, "0", &first.to_string(), &(first + 19_999).to_string()]);
            tokio::task::yield_now().await;
        }
    };
    let mut heard = Heard::default();
    let holder = async {
        while heard.all() < SENT {
            for _ in 0..100 {
                if heard.all() < SENT {
                    let signal = any(&mut signals).await;
                    heard.take(signal);
                }
            }
            // It is slow: this is its work, not a wait for anything.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::join!(sender, holder);
    assert_eq!(heard.all(), SENT);
    assert!(heard.lost > 0 && heard.losses < heard.told, "{} of {}", heard.losses, heard.lost);
    assert!(memory() < before + 32, "{before} MiB before, {} after", memory());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quick_holder_loses_nothing() {
    const SENT: u64 = 200_000;
    let redis = Redis::start();
    let (_subscriber, mut signals) = subscribe(&redis.url(), &["a*"], 65_536).await;
    let mut heard = Heard::default();
    for first in (1..=SENT).step_by(50_000) {
        redis.call(&["EVAL", PUBLISH, "0", &first.to_string(), &(first + 49_999).to_string()]);
        drain(&mut signals, &mut heard, first + 49_999).await;
    }
    assert_eq!((heard.told, heard.lost), (SENT, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_payloads_are_bounded_by_their_bytes() {
    const SENT: u64 = 4_000;
    let redis = Redis::with(Options::default().line("client-output-buffer-limit pubsub 0 0 0"));
    let (_subscriber, mut signals) = subscribe(&redis.url(), &["a*"], 65_536).await;
    let before = memory();
    let long =
        "local x = string.rep('x', 65536) for i = 1, ARGV[1] do redis.call('PUBLISH', 'abc', x) end return 1";
    for _ in 0..SENT / 100 {
        redis.call(&["EVAL", long, "0", "100"]);
    }
    redis.call(&["PUBLISH", "abc", "end"]);
    eventually("all is read", async || {
        let clients = redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
        if clients.contains(" omem=0 ") { Ok(()) } else { Err(clients) }
    })
    .await;
    assert!(memory() < before + 120, "{before} MiB before, {} after", memory());
    let (mut told, mut lost) = (0, 0);
    while told + lost < SENT + 1 {
        match any(&mut signals).await {
            Signal::Lost { count, .. } => lost += count,
            Signal::Message { .. } => told += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(told >= 1_000 && lost > 0, "{told} told, {lost} lost");
    assert_eq!(told + lost, SENT + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lag_is_counted_not_silent_and_up_and_down_are_never_dropped() {
    const SENT: u64 = 5_000;
    let redis = Redis::start();
    let (_subscriber, mut signals) = subscribe(&redis.url(), &["a*"], 10).await;
    redis.call(&["EVAL", PUBLISH, "0", "1", &SENT.to_string()]);
    redis.call(&["PUBLISH", "abc", "5001"]);
    eventually("all is read", async || {
        let clients = redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
        if clients.contains(" omem=0 ") { Ok(()) } else { Err(clients) }
    })
    .await;
    // Nobody listens meanwhile; the last reconnect must still be told.
    for _ in 0..4 {
        let id = redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
        redis.call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        eventually("it is back", async || {
            let now = redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
            now.contains("psub=1") && now.split(' ').next() != id.split(' ').next()
        })
        .await;
    }
    let (mut told, mut lost, mut words) = (0, 0, vec![]);
    while words.len() < 4 || told + lost < SENT + 1 {
        match any(&mut signals).await {
            Signal::Lost { count, .. } => lost += count,
            Signal::Message { .. } => told += 1,
            word => words.push(word),
        }
    }
    let node = Node::server();
    assert_eq!(words, [Signal::Closed(node.clone()), Signal::Down, Signal::Opened(node), Signal::Up]);
    assert!(lost > 0);
    assert_eq!(told + lost, SENT + 1);
    redis.call(&["PUBLISH", "abc", "again"]);
    assert_eq!(any(&mut signals).await, message("abc", "again"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cuts_a_slow_subscription_is_a_gap() {
    let redis = Redis::with(Options::default().line("client-output-buffer-limit pubsub 1mb 0 0"));
    let proxy = Proxy::start(redis.addr());
    let (_subscriber, mut signals) = subscribe(&proxy.url(), &["a*"], 65_536).await;
    proxy.down(Net::Hold);
    let long =
        "local x = string.rep('x', 65536) for i = 1, 400 do redis.call('PUBLISH', 'abc', x) end return 1";
    eventually("the server has cut it", async || {
        redis.call(&["EVAL", long, "0"]);
        redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text().is_empty()
    })
    .await;
    proxy.heal();
    loop {
        match next(&mut signals).await {
            Signal::Message { .. } => {}
            word => break assert_eq!(word, Signal::Down),
        }
    }
    assert_eq!(next(&mut signals).await, Signal::Up);
    redis.call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
}
