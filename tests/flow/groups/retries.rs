//! 10,000 retries that wait for hours cost nobody anything.

#![allow(clippy::print_stdout, reason = "the figures are for people")]

use std::time::Duration;

use bytes::Bytes;
use overdue_consumer::{Consumer, Done, Outcome, Raw, Timeout};
use overdue_protocol::call::{Claim, Holder, PAGE, Reclaim, Sweep, SweepRetries};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Keyspace, Partition, QueueName};
use overdue_tests::stage::{group, past};
use overdue_tests::{Stage, Wire, assert_balanced, eventually};
use tokio_util::sync::CancellationToken;

use super::stage::reconcile;

const RETRIES: usize = 10_000;
/// Rounds of calls at most, and at least.
const ROUNDS: [usize; 2] = [300, 5];
/// With retries a call may take this much of what it takes without.
const BOUND: f64 = 1.2;

fn hours() -> Duration {
    Duration::from_secs(4 * 3600)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_of_one_group_neither_fill_the_stream_nor_disturb_another() {
    let mut stage = Stage::new();
    let working = reconcile(&stage.redis, vec![]).await;
    let settings = overdue_store::Settings { url: stage.redis.url(), ..overdue_store::Settings::default() };
    let stop = CancellationToken::new();
    let consumer = |group: &str| Consumer::<Raw>::builder(settings.clone(), "orders", group).concurrency(64);
    let waits = |_: Timeout<Raw>| async { Outcome::retry_after(hours(), "not today") };
    let done = |_: Timeout<Raw>| async { Done };
    let first = tokio::spawn(consumer("a").run(waits, stop.clone().cancelled_owned()));
    let second = tokio::spawn(consumer("b").run(done, stop.clone().cancelled_owned()));
    eventually("both have joined", async || {
        let tally = stage.wire.hgetall(stage.partition.tally()).unwrap();
        ["base:a", "base:b"].iter().all(|base| tally.contains_key(base.as_bytes()))
    })
    .await;
    for page in (0..RETRIES).collect::<Vec<_>>().chunks(500) {
        stage.arm(page.iter().map(|n| past(format!("t{n}"))).collect());
    }
    // While they wait, one more goes its way past them.
    for (retries, late) in [(RETRIES, "late"), (RETRIES + 1, "later")] {
        eventually("all wait, and the stream is empty", async || {
            let state = (stage.retries().len(), stage.entries().len());
            if state == (retries, 0) { Ok(()) } else { Err(state) }
        })
        .await;
        stage.arm(vec![past(late)]);
    }
    eventually("the stream is empty", async || {
        stage.entries().is_empty() && stage.retries().len() == RETRIES + 2
    })
    .await;
    stop.cancel();
    first.await.unwrap().unwrap();
    let report = second.await.unwrap().unwrap();
    assert_eq!((report.done, report.claimed, report.lost), (RETRIES as u64 + 2, 0, 0), "each once");
    working.end().await;
    assert_balanced(&stage.redis, "orders", 1);
}

#[test]
fn sweeps_and_claims_take_no_longer_while_10_000_retries_wait() {
    let mut stage = Stage::new();
    let quiet = stage.partition.clone();
    let busy = Keyspace::default().partition(&QueueName::new("busy").unwrap(), 0);
    for partition in [&quiet, &busy] {
        stage.partition = partition.clone();
        stage.join("mail");
        stage.reclaim("mail");
    }
    // The stage stands in the busy one now.
    for page in (0..RETRIES).collect::<Vec<_>>().chunks(250) {
        let names: Vec<_> = page.iter().map(|n| format!("t{n}")).collect();
        let entries = stage.deliver("mail", "c", &names.iter().map(String::as_str).collect::<Vec<_>>());
        stage.retry(stage.by("mail", "c"), &entries, 4 * 3_600_000);
    }
    assert_eq!((stage.retries().len(), stage.entries().len()), (RETRIES, 0));

    stage.redis.put_first();
    for name in CALLS {
        // In turns, and the fastest round of each counts: what else the machine does only ever adds. It may do so to all
        // of a few rounds: so they go on until the two agree.
        let (mut rounds, mut fastest) = (0, [f64::INFINITY; 2]);
        let ratio = loop {
            for (least, at) in fastest.iter_mut().zip([&quiet, &busy]) {
                *least = least.min(cost(&mut stage, at, name));
            }
            rounds += 1;
            let ratio = fastest[1] / fastest[0];
            if rounds >= ROUNDS[0] || (rounds >= ROUNDS[1] && ratio <= BOUND) {
                break ratio;
            }
        };
        let [before, with] = fastest;
        println!("{name}: {before:.1} us without retries, {with:.1} us with {RETRIES}: x {ratio:.2}");
        assert!(ratio <= BOUND, "{name}: x {ratio:.2} after {rounds} rounds");
    }
}

const CALLS: [&str; 4] = ["sweep", "sweep_retries", "claim", "reclaim"];

/// Microseconds of the server's time for one call, as it counts them itself.
fn cost(stage: &mut Stage, at: &Partition, name: &str) -> f64 {
    const ROUND: usize = 100;
    stage.partition = at.clone();
    if name == "sweep" {
        stage.arm((0..256).map(|n| past(format!("sweep-{n}"))).collect());
    }
    stage.redis.call(&["CONFIG", "RESETSTAT"]);
    let wire = &mut stage.wire;
    let calls = match name {
        "sweep" => call(
            wire,
            1,
            &Sweep { partition: at.clone(), limit: PAGE, grace_ms: 0, sweeper: Bytes::from_static(b"r:1") },
        ),
        "sweep_retries" => call(wire, ROUND, &SweepRetries { partition: at.clone(), limit: PAGE }),
        "claim" => {
            let by = stage.by("mail", "me");
            let holder = Holder::Others { lease_ms: 0, alone: false };
            call(&mut stage.wire, ROUND, &Claim { by, holder, after: EntryId::ZERO, limit: PAGE })
        }
        _ => {
            let reclaim = Reclaim { group: group("mail"), ..stage.to_reclaim("mail") };
            call(&mut stage.wire, ROUND, &reclaim)
        }
    };
    let stats = stage.redis.info("commandstats");
    let scripts = stats.iter().filter(|(name, _)| name.starts_with("cmdstat_eval"));
    let us: f64 = scripts
        .filter_map(|(_, said)| said.split("usec=").nth(1)?.split(',').next()?.parse::<f64>().ok())
        .sum();
    if name == "sweep" {
        // Out of the way for the next round.
        let entries: Vec<_> = stage.read("mail", "c").iter().map(|entry| entry.id).collect();
        stage.xack("mail", &entries);
        while stage.trim().more {}
    }
    us / calls as f64
}

fn call<C: overdue_protocol::call::Call>(wire: &mut Wire, times: usize, call: &C) -> usize {
    for _ in 0..times {
        wire.run(call).unwrap();
    }
    times
}
