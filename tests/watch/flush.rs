//! Databases that are flushed or swapped. The server says nothing of it, and thousands of keys are gone without proof:
//! they must not become thousands of false timeouts, though their rule says to fire.

use overdue_protocol::entry::Proof;
use overdue_sandbox::Connection;
use overdue_tests::eventually_blocking;

use crate::pair::{Pair, rule};

/// The most that may fire falsely before two relays see what happened.
const FALSE_MAX: usize = 200;

/// Writes keys that end one after the other from `from_ms` on, within `within_ms`.
fn fill(connection: &mut Connection, prefix: &str, keys: usize, from_ms: u64, within_ms: u64) {
    let fill = "for i = 0, ARGV[2] - 1 do
        local at = ARGV[3] + math.floor(i * ARGV[4] / ARGV[2])
        redis.call('SET', ARGV[1] .. i, 'v', 'PXAT', string.format('%.0f', at))
    end";
    let (keys, from, within) = (keys.to_string(), from_ms.to_string(), within_ms.to_string());
    connection.call(&["EVAL", fill, "0", prefix, &keys, &from, &within]).unwrap();
}

fn await_known(pair: &Pair, keys: usize) {
    eventually_blocking("all are known", || {
        let known = pair.known("keys").len();
        if known == keys { Ok(()) } else { Err(known) }
    });
}

fn await_time(pair: &Pair, ms: u64) {
    eventually_blocking("the time has come", || pair.redis.now_ms() >= ms);
}

fn unproven(pair: &Pair) -> usize {
    pair.entries("keys").iter().filter(|entry| entry.proof == Some(Proof::Unproven)).count()
}

fn is_shown(pair: &Pair, feed: &str) {
    let what = format!("degraded  flushed {feed}");
    eventually_blocking("both relays show it", || {
        pair.relays.iter().all(|relay| relay.readyz().body.contains(&what))
    });
    for relay in &pair.relays {
        let said = relay
            .stderr()
            .lines()
            .filter(|line| line.contains("seems to have been flushed or swapped"))
            .count();
        assert_eq!(said, 1, "{}", relay.stderr());
        assert_eq!(relay.metrics().get("overdue_flushed", &[("feed", feed)]), Some(1.0));
        // It still does its work.
        assert_eq!(relay.readyz().status, 200, "{}", relay.readyz().body);
    }
}

#[test]
fn a_flushed_database_of_ten_thousand_keys_is_not_ten_thousand_timeouts() {
    const KEYS: usize = 10_000;
    // The index is in another database: it survives.
    let pair = Pair::start(&rule("keys", "k:*", "db = 3"));
    let mut three = pair.db(3);
    let from = pair.redis.now_ms() + 8_000;
    fill(&mut three, "k:old:", KEYS, from, 6_000);
    await_known(&pair, KEYS);
    await_time(&pair, from + 500);
    three.call(&["FLUSHDB"]).unwrap();
    let flushed = pair.redis.now_ms();
    is_shown(&pair, "server/3");
    println!("seen after {} ms", pair.redis.now_ms() - flushed);
    // What is new fires meanwhile, and so does what ends behind the last of the old.
    fill(&mut three, "k:new:", 50, pair.redis.now_ms() + 300, 200);
    fill(&mut three, "k:last:", 50, from + 8_000, 200);
    let fired = |prefix: &str| {
        let entries = pair.entries("keys");
        entries
            .into_iter()
            .filter(|entry| entry.id.as_bytes().starts_with(prefix.as_bytes()))
            .collect::<Vec<_>>()
    };
    eventually_blocking("the last have fired", || {
        let last = fired("k:last:").len();
        if last == 50 { Ok(()) } else { Err(last) }
    });
    assert_eq!(fired("k:new:").len(), 50);
    let old = fired("k:old:");
    let proven = old.len() - unproven(&pair);
    println!("of the old: {proven} fired before, {} falsely", unproven(&pair));
    assert!(
        unproven(&pair) <= FALSE_MAX && (500..2_500).contains(&proven),
        "{proven}, {} falsely",
        unproven(&pair)
    );
    let dues =
        old.iter().filter(|entry| entry.proof != Some(Proof::Unproven)).map(|entry| entry.due_ms).max();
    assert!(dues <= Some(flushed), "what was flushed was never proven to expire");
    await_known(&pair, 0);
    eventually_blocking("the state ends", || {
        pair.relays.iter().all(|relay| !relay.readyz().body.contains("flushed"))
    });
    pair.end();
}

#[test]
fn a_server_that_is_flushed_with_the_index_fires_nothing_and_goes_on() {
    let pair = Pair::start(&rule("keys", "k:*", ""));
    let mut zero = pair.db(0);
    let from = pair.redis.now_ms() + 8_000;
    fill(&mut zero, "k:old:", 10_000, from, 2_000);
    await_known(&pair, 10_000);
    zero.call(&["FLUSHALL"]).unwrap();
    fill(&mut zero, "k:new:", 50, pair.redis.now_ms() + 300, 200);
    let entries = pair.entries_after("keys", "k:~", from + 2_000);
    let (new, false_ones): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| entry.id.as_bytes().starts_with(b"k:new:"));
    println!("{} falsely", false_ones.len());
    assert!(new.len() == 50 && false_ones.len() <= FALSE_MAX, "{}, {} falsely", new.len(), false_ones.len());
    await_known(&pair, 0);
    eventually_blocking("the queue is there again", || {
        pair.redis.count(&["HEXISTS", "overdue:queues", "keys"]) == 1
    });
    pair.end();
}

#[test]
fn a_swapped_database_is_seen_and_the_keys_that_came_with_it_are_found() {
    let pair = Pair::start(&rule("keys", "k:*", "db = 3"));
    let (mut three, mut four) = (pair.db(3), pair.db(4));
    let from = pair.redis.now_ms() + 5_000;
    fill(&mut three, "k:old:", 400, from, 2_000);
    fill(&mut four, "k:came:", 50, from + 2_000, 2_000);
    await_known(&pair, 400);
    // The relays look how many there are once a second.
    await_time(&pair, from - 2_000);
    three.call(&["SWAPDB", "3", "4"]).unwrap();
    is_shown(&pair, "server/3");
    eventually_blocking("those that came have fired", || {
        let fired =
            pair.fired("keys").into_iter().filter(|(key, n)| key.starts_with("k:came:") && *n == 1).count();
        if fired == 50 { Ok(()) } else { Err(fired) }
    });
    println!("{} falsely", unproven(&pair));
    assert!(unproven(&pair) <= FALSE_MAX && pair.entries("keys").len() == 50 + unproven(&pair));
    await_known(&pair, 0);
    pair.end();
}
