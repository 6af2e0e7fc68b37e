//! Watched keys in numbers. Bounds on time are generous: the machine is small and shared.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_tests::{Program, Redis, Wire, eventually_blocking};

use crate::stage::{await_quiet, entries, load_background, partition, redis, relay, timeouts};

/// The 99th of a hundred, in milliseconds, of how late keys that were due at `due_ms` entered the stream.
fn lateness(redis: &Redis, due_ms: &BTreeMap<Bytes, u64>) -> u64 {
    let late = entries(redis).into_iter().filter_map(|entry| {
        let due = *due_ms.get(entry.id.as_bytes())?;
        assert!(entry.fired_ms >= due, "{:?} is early", entry.id);
        Some(entry.fired_ms - due)
    });
    let mut late: Vec<u64> = late.collect();
    late.sort_unstable();
    late[late.len() * 99 / 100]
}

/// Writes `k:<from>` and on, all due at one instant; answers when, by key.
fn write_due_at(redis: &Redis, from: usize, keys: usize, due_ms: u64, step_us: u64) -> BTreeMap<Bytes, u64> {
    const WRITE: &str = "for i = ARGV[1], ARGV[2] do \
        redis.call('SET', ARGV[5] .. i, 'value', 'PXAT', string.format('%.0f', ARGV[3] + math.floor((i - ARGV[1]) * ARGV[4] / 1000))) end \
        return 1";
    let mut wire = Wire::connect(redis);
    let mut dues = BTreeMap::new();
    for first in (from..from + keys).step_by(1_000) {
        let last = (first + 999).min(from + keys - 1);
        let due = due_ms + (first - from) as u64 * step_us / 1_000;
        let args = [first.to_string(), last.to_string(), due.to_string(), step_us.to_string()];
        let mut words = vec!["EVAL", WRITE, "0"];
        words.extend(args.iter().map(String::as_str));
        words.push("k:");
        wire.call(&words).unwrap();
        dues.extend(
            (first..=last).map(|i| (format!("k:{i}").into(), due + (i - first) as u64 * step_us / 1_000)),
        );
    }
    dues
}

fn await_timeouts(redis: &Redis, n: usize) {
    eventually_blocking("every timeout is there", || {
        let length = redis.count(&[b"XLEN".as_slice(), &partition().stream()]);
        if length as usize >= n { Ok(()) } else { Err(length) }
    });
}

fn known(redis: &Redis, n: usize) {
    eventually_blocking("the relays know the keys", || {
        let known = redis.count(&[b"ZCARD".as_slice(), &partition().watched()]);
        if known as usize >= n { Ok(()) } else { Err(known) }
    });
}

#[test]
fn load_a_thousand_keys_of_one_instant_among_many_that_are_not_due() {
    let redis = redis();
    load_background(&redis, 100_000);
    let _relays: [Program; 2] = std::array::from_fn(|_| relay(&redis, ""));
    let dues = write_due_at(&redis, 0, 1_000, redis.now_ms() + 2_000, 0);
    await_timeouts(&redis, 1_000);
    await_quiet(&redis, Duration::from_millis(1_500));
    let counts = timeouts(&redis);
    assert_eq!((counts.len(), counts.values().sum::<u64>()), (1_000, 1_000));
    let p99 = lateness(&redis, &dues);
    assert!(p99 < 250, "p99 is {p99} ms");
}

#[test]
fn load_extensions_do_not_make_the_relay_late_or_large() {
    let redis = redis();
    let relay = relay(&redis, "");
    let dues = write_due_at(&redis, 1_000_000, 500, redis.now_ms() + 3_000, 14_000);
    known(&redis, 500);
    let begun = Instant::now();
    let mut wire = Wire::connect(&redis);
    let (mut n, mut memory) = (0_u64, vec![]);
    const EXTEND: &str =
        "for i = 0, 199 do redis.call('SET', 'k:x' .. (ARGV[1] + i) % 20000, 'v', 'PX', 60000) end return 1";
    while begun.elapsed() < Duration::from_secs(10) {
        if n as f64 <= begun.elapsed().as_secs_f64() * 20_000.0 {
            wire.call(&["EVAL", EXTEND, "0", &n.to_string()]).unwrap();
            n += 200;
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
        if begun.elapsed() > Duration::from_secs(3 + memory.len() as u64) {
            memory.push(relay.rss_bytes());
        }
    }
    assert!(n >= 100_000, "only {n} extensions were made");
    await_timeouts(&redis, 500);
    let p99 = lateness(&redis, &dues);
    println!("{n} extensions, p99 {p99} ms, memory {memory:?}");
    assert!(p99 < 250, "p99 is {p99} ms");
    let (first, last) = (memory[0], *memory.last().unwrap());
    assert!(last < first + first / 4 + (8 << 20), "the relay's memory grew: {memory:?}");
    assert_eq!(timeouts(&redis).values().sum::<u64>(), 500);
}

#[test]
fn load_a_storm_of_watched_and_other_keys() {
    const KEYS: usize = 100_000;
    let redis = redis();
    redis.watch_for_slow(50);
    let relays: [Program; 2] = std::array::from_fn(|_| relay(&redis, ""));
    let due = redis.now_ms() + 20_000;
    for first in (0..KEYS).step_by(2_000) {
        write_due_at(&redis, first, 2_000, due + first as u64 / 100, 10);
        // As fast as a few writers are.
        std::thread::sleep(Duration::from_millis(80));
    }
    const OTHERS: &str =
        "for i = ARGV[1], ARGV[2] do redis.call('SET', 'other:' .. i, 'x', 'PXAT', ARGV[3]) end return 1";
    let mut wire = Wire::connect(&redis);
    for first in (0..KEYS).step_by(1_000) {
        let (last, due) = ((first + 999).to_string(), (due + first as u64 / 100).to_string());
        wire.call(&["EVAL", OTHERS, "0", &first.to_string(), &last, &due]).unwrap();
    }
    known(&redis, KEYS);
    assert!(redis.now_ms() < due, "the machine is too slow to write the keys before they are due");
    eventually_blocking("every timeout is there", || {
        let length = redis.count(&[b"XLEN".as_slice(), &partition().stream()]);
        if length as usize >= KEYS { Ok(()) } else { Err(length) }
    });
    await_quiet(&redis, Duration::from_millis(1_500));
    redis.assert_nothing_slow();
    for relay in &relays {
        let memory = relay.rss_bytes() >> 20;
        println!("relay memory {memory} MiB");
        assert!(memory < 200, "a relay takes {memory} MiB");
    }
    let length = redis.count(&[b"XLEN".as_slice(), &partition().stream()]);
    let counts = timeouts(&redis);
    assert_eq!((length as usize, counts.len()), (KEYS, KEYS));
}
