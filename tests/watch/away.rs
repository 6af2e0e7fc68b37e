//! Both relays are away, and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use overdue_protocol::entry::Proof;
use overdue_tests::eventually_blocking;

use crate::pair::{Pair, name, relay, rule};
use crate::truth::told;

/// Keys of each kind.
const EACH: usize = 40;

#[test]
fn while_both_relays_are_away_only_what_is_written_and_ends_meanwhile_is_lost() {
    let (redis, truth) = told();
    let config = rule("keys", "k:*", "payload = \"value\"");
    let mut pair = Pair::at(redis, &config);
    let (away, behind) = (pair.redis.now_ms() + 6_000, pair.redis.now_ms() + 16_000);
    let set = |pair: &Pair, kind: &str, at_ms: u64| {
        for n in 0..EACH {
            pair.redis.call(&["SET", &format!("k:{kind}:{n}"), "v", "PXAT", &at_ms.to_string()]);
        }
    };
    for (kind, at_ms) in [
        ("known", away),
        ("known, later", behind),
        ("extended", away),
        ("shortened", behind),
        ("deleted", behind),
    ] {
        set(&pair, kind, at_ms);
    }
    eventually_blocking("all are known", || pair.known("keys").len() == 5 * EACH);
    let left = Instant::now();
    pair.relays.iter().for_each(|relay| relay.kill9());
    set(&pair, "new", behind);
    set(&pair, "lost", away);
    for n in 0..EACH {
        pair.redis.call(&["PEXPIREAT", &format!("k:extended:{n}"), &behind.to_string()]);
        pair.redis.call(&["PEXPIREAT", &format!("k:shortened:{n}"), &away.to_string()]);
        pair.redis.call(&["DEL", &format!("k:deleted:{n}")]);
    }
    std::thread::sleep(Duration::from_secs(10).saturating_sub(left.elapsed()));
    assert!(pair.redis.now_ms() > away + 1_000, "this is over before they are back");
    let url = pair.redis.url();
    pair.relays = std::array::from_fn(|_| relay(&pair.redis, &url, &config));
    let back = pair.redis.now_ms();
    eventually_blocking("what was known has fired", || {
        let fired = pair.entries("keys").len();
        if fired >= EACH { Ok(()) } else { Err(fired) }
    });
    println!("fired {} ms after the return", pair.redis.now_ms() - back);
    let entries = pair.entries_after("keys", "k:~", behind);
    let mut fired = BTreeMap::<String, (usize, usize)>::new();
    for entry in &entries {
        let key = name(entry.id.as_bytes());
        let kind = key.split(':').nth(1).unwrap().to_owned();
        let (count, unproven) = fired.entry(kind).or_default();
        *count += 1;
        *unproven += usize::from(entry.proof == Some(Proof::Unproven));
    }
    println!("fired, without proof: {fired:?}");
    // SCAN itself may be what ends a key that nobody knows: then its notification is heard, and it is not even lost.
    let lost = fired.remove("lost").map_or(0, |(fired, _)| fired);
    let counts: BTreeMap<_, _> = fired.iter().map(|(kind, (count, _))| (kind.as_str(), *count)).collect();
    let expected =
        ["known", "known, later", "extended", "shortened", "deleted", "new"].map(|kind| (kind, EACH));
    assert_eq!(counts, BTreeMap::from(expected));
    let keys: BTreeSet<_> = entries.iter().map(|entry| entry.id.as_bytes().clone()).collect();
    assert_eq!(keys.len(), entries.len(), "none twice");
    assert!(lost <= EACH);
    // What is false is marked; what was heard or proven is not.
    assert_eq!(fired["deleted"], (EACH, EACH));
    for kind in ["known, later", "extended", "new"] {
        assert_eq!(fired[kind].1, 0, "{kind}");
    }
    assert_eq!(
        pair.tally("keys", "watched_unproven"),
        fired.values().map(|(_, unproven)| *unproven as u64).sum::<u64>()
    );
    eventually_blocking("the server has told of as many", || {
        let told = truth.total() as usize;
        if told == 6 * EACH + 1 { Ok(()) } else { Err(told) }
    });
    pair.await_known("keys", &[]);
    pair.end();
}
