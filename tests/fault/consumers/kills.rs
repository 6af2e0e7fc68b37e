//! Ten consumers, one of which is killed every second.

#![allow(clippy::print_stdout, reason = "the figures are for people")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use overdue_tests::{Launch, Redis, Wire, assert_balanced};
use rand::RngExt;

use super::hands::Place;
use crate::stage::{GROUP, Producer, QUEUE, ids, last, partition, settled, stop, up};

const TIMERS: usize = 100_000;
/// How many come due in each second.
const RATE: usize = 5_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_a_counter_is_exact_and_only_what_the_killed_held_runs_twice() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let noting = format!("notes={}", notes.display());
    let places: Vec<_> =
        (0..10).map(|_| Place::new(&redis, "effects", &["concurrency=32", &noting])).collect();
    let all = ids("t", TIMERS);
    let first = redis.now_ms() + 3_000;
    for (second, page) in (0..).zip(all.chunks(RATE)) {
        producer.arm(page, overdue::When::UnixMs(first + second * 1_000), false).await;
    }

    let (mut held, mut kills, mut next) = (BTreeSet::new(), 0, Instant::now() + Duration::from_secs(3));
    let meanwhile = async || {
        if Instant::now() >= next {
            let pid = places[rand::rng().random_range(0..places.len())].kill();
            held.extend(held_by(&redis, pid));
            (kills, next) = (kills + 1, next + Duration::from_secs(1));
        }
    };
    last(Duration::from_secs(3 + (TIMERS / RATE) as u64), meanwhile).await;
    settled(&redis, 1).await;
    places.iter().for_each(|place| place.with(stop));

    let [a, b] = [b"a", b"b"].map(|name| partition(0).neighbour(name));
    let counter = redis.call(&[b"GET".as_slice(), &a]).text();
    assert_eq!((counter, redis.count(&[b"HLEN".as_slice(), &b])), (TIMERS.to_string(), TIMERS as u64));
    let dead = Wire::connect(&redis).xrange(partition(0).dead()).unwrap();
    assert!(dead.is_empty(), "{dead:?}");
    let notes = std::fs::read_to_string(&notes).unwrap();
    let mut runs = BTreeMap::<&str, u32>::new();
    notes.lines().for_each(|id| *runs.entry(id).or_default() += 1);
    assert_eq!(runs.len(), TIMERS, "each has run");
    let twice: Vec<_> = runs.iter().filter(|(_, n)| **n > 1).map(|(id, _)| *id).collect();
    let odd: Vec<_> = twice.iter().filter(|id| !held.contains(**id)).collect();
    assert!(odd.is_empty(), "{} ran twice though no killed consumer held them: {odd:?}", odd.len());
    println!("{kills} kills; {} timeouts were held by the killed, {} ran again", held.len(), twice.len());
    assert!(kills > 5, "{kills} kills");
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}

/// The timers that the consumer with this process id had in hand when it was killed.
fn held_by(redis: &Redis, pid: u32) -> BTreeSet<String> {
    let (mut wire, stream) = (Wire::connect(redis), partition(0).stream());
    let consumers = redis.call(&[b"XINFO".as_slice(), b"CONSUMERS", &stream, GROUP.as_bytes()]);
    let names = consumers.items().iter().map(|consumer| consumer.items()[1].text());
    let Some(name) = names.into_iter().find(|name| name.contains(&format!(":{pid}:"))) else {
        return BTreeSet::new();
    };
    let pending = redis.call(&[
        b"XPENDING".as_slice(),
        &stream,
        GROUP.as_bytes(),
        b"-",
        b"+",
        b"10000",
        name.as_bytes(),
    ]);
    let held: BTreeSet<_> = pending.items().iter().map(|row| row.items()[0].text()).collect();
    let entries = wire.xrange(&stream).unwrap();
    let held = entries.iter().filter(|entry| held.contains(&entry.id.to_string()));
    held.map(|entry| String::from_utf8_lossy(entry.field("id").unwrap()).into_owned()).collect()
}
