//! Keys that end again and again: each life is a timeout of its own, and the last one is not taken for an earlier one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use overdue_tests::{Redis, eventually_blocking};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::pair::{Pair, name, rule};
use crate::stage::deaf_connection;
use crate::truth::{Truth, told};

fn stage(rules: &str) -> (Pair, Truth) {
    let (redis, truth) = told();
    (Pair::at(redis, rules), truth)
}

/// Every expiry that was told is a timeout with a generation of its own, and nothing else is.
fn assert_told(pair: &Pair, truth: &Truth, queues: &[&str]) {
    let mut fired = BTreeMap::new();
    for queue in queues {
        let mut generations = BTreeSet::new();
        for entry in pair.entries(queue) {
            assert!(
                generations.insert((entry.id.as_bytes().clone(), entry.generation)),
                "{entry:?} is there twice"
            );
            *fired.entry(name(entry.id.as_bytes())).or_default() += 1;
        }
    }
    eventually_blocking("the server has told as much", || {
        let told: BTreeMap<_, _> =
            truth.counts().into_iter().map(|(key, n)| (name(&key), n as usize)).collect();
        let apart = |a: &BTreeMap<String, usize>, b: &BTreeMap<String, usize>| {
            a.iter()
                .filter(|(key, n)| b.get(*key) != Some(n))
                .map(|(key, n)| format!("{key}: {n}"))
                .collect::<Vec<_>>()
        };
        if fired == told { Ok(()) } else { Err((apart(&fired, &told), apart(&told, &fired))) }
    });
}

#[test]
fn a_key_that_ends_twice_within_a_second_is_two_timeouts() {
    const KEYS: usize = 100;
    let (pair, truth) = stage(&rule("keys", "k:*", ""));
    let begun = Instant::now();
    for life in 1..=2 {
        (0..KEYS).for_each(|n| pair.set(format!("k:{n}"), "v", 250));
        eventually_blocking("all have ended", || {
            let total = truth.total();
            if total == life * KEYS as u64 { Ok(()) } else { Err(total) }
        });
    }
    println!("two lives within {:?}", begun.elapsed());
    // Several times between two markers, most likely.
    for _ in 0..5 {
        pair.set("k:often", "v", 1);
        while pair.redis.count(&["EXISTS", "k:often"]) == 1 {}
    }
    pair.entries_after("keys", "k:~", pair.redis.now_ms());
    assert_told(&pair, &truth, &["keys"]);
    let fired = pair.fired("keys");
    assert!((0..KEYS).all(|n| fired[&format!("k:{n}")] == 2) && fired["k:often"] == 5, "{fired:?}");
    pair.await_known("keys", &[]);
    pair.end();
}

/// Writes keys again in the very moment of their end: within two milliseconds from its last one.
struct Rewriter {
    stream: TcpStream,
    random: StdRng,
    /// When to write which key, unix microseconds.
    ends: BinaryHeap<Reverse<(u64, String)>>,
}

impl Rewriter {
    fn new(redis: &Redis) -> Self {
        let stream = deaf_connection(redis);
        Self { stream, random: StdRng::seed_from_u64(7), ends: BinaryHeap::new() }
    }

    fn write(&mut self, key: String) {
        let end_ms = now_us() / 1_000 + self.random.random_range(150..450);
        write!(self.stream, "SET {key} v PXAT {end_ms}\r\n").unwrap();
        let again_us = end_ms * 1_000 + self.random.random_range(0..2_000);
        self.ends.push(Reverse((again_us, key)));
    }

    /// The key whose moment is next, when that has come.
    fn next(&mut self) -> Option<String> {
        let Reverse((at_us, _)) = self.ends.peek()?;
        let left = at_us.saturating_sub(now_us());
        // Sleep is coarse: the last bit is waited for awake.
        std::thread::sleep(Duration::from_micros(left.saturating_sub(150)));
        while now_us() < *at_us {}
        self.ends.pop().map(|Reverse((_, key))| key)
    }
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

#[test]
fn load_a_key_that_is_written_again_in_the_moment_of_its_end_is_neither_lost_nor_fired_twice() {
    const KEYS: usize = 60;
    const REWRITES: usize = 2_000;
    let rules = [rule("fire", "k:f:*", ""), rule("drop", "k:d:*", "on_unproven = \"drop\"")].concat();
    let (pair, truth) = stage(&rules);
    let mut rewriter = Rewriter::new(&pair.redis);
    let keys = || (0..KEYS).map(|n| format!("k:{}:{n}", if n % 2 == 0 { "f" } else { "d" }));
    keys().for_each(|key| rewriter.write(key));
    for _ in 0..REWRITES {
        let key = rewriter.next().unwrap();
        rewriter.write(key);
    }
    // The last time they stay.
    while let Some(key) = rewriter.next() {
        write!(rewriter.stream, "SET {key} v PX 3600000\r\n").unwrap();
    }
    for (queue, key) in [("fire", "k:f:~"), ("drop", "k:d:~")] {
        pair.entries_after(queue, key, pair.redis.now_ms());
    }
    let ended = truth.total();
    println!(
        "{ended} of {REWRITES} were written after their end; {} before",
        REWRITES + KEYS - ended as usize + 2
    );
    assert!(ended > 200 && (ended as usize) < REWRITES - 200, "{ended}: not in the moment of their end");
    assert_told(&pair, &truth, &["fire", "drop"]);
    let mut known = pair.known("fire");
    known.extend(pair.known("drop"));
    let known: BTreeMap<_, _> = known.into_iter().map(|(key, due)| (name(&key.key), due)).collect();
    let alive: BTreeMap<_, _> = keys()
        .map(|key| {
            let left = pair.redis.count(&["PTTL", &key]);
            (key, pair.redis.now_ms() + left)
        })
        .collect();
    assert!(known.keys().eq(alive.keys()), "{known:?} instead of {alive:?}");
    // The two clocks are read one after the other, and 6.2 is asked in that way too.
    for (key, due) in known {
        assert!(alive[&key].abs_diff(due) < 100, "{key}: {due} instead of {}", alive[&key]);
    }
    let unproven = pair.tally("fire", "watched_unproven") + pair.tally("drop", "watched_dropped");
    assert_eq!(unproven, 0, "nobody missed anything");
    pair.end();
}
