//! What these tests share: relays with a rule, and what stands in the stream.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_protocol::{Entry, Keyspace, Partition, QueueName};
use overdue_tests::redis::Options;
use overdue_tests::{Launch, Program, Redis, Wire};

/// The queue of the rule.
pub(crate) const QUEUE: &str = "keys";

/// A server whose subscribers may be as slow as they like: the truth must hear all of it.
pub(crate) fn redis() -> Redis {
    let redis = Redis::with(Options::default());
    redis.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"]);
    redis
}

/// The one partition of the queue.
pub(crate) fn partition() -> Partition {
    Keyspace::default().partition(&QueueName::new(QUEUE).unwrap(), 0)
}

/// A relay that watches `k:*`; `more` goes into its only rule.
pub(crate) fn relay(redis: &Redis, more: &str) -> Program {
    let file = redis.folder().join(format!("relay-{:x}.toml", rand_name()));
    let rule = format!("[[watch]]\nname = \"{QUEUE}\"\npattern = \"k:*\"\nqueue = \"{QUEUE}\"\n{more}\n");
    std::fs::write(&file, rule).unwrap();
    let program = Launch::relay(&redis.url()).args(["--config", file.to_str().unwrap()]).start();
    program.addr();
    program
}

fn rand_name() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
}

/// Keys with a TTL that end long after the test, in steps of 1,000.
pub(crate) fn load_background(redis: &Redis, keys: usize) {
    let mut wire = Wire::connect(redis);
    const LOAD: &str =
        "for i = ARGV[1], ARGV[2] do redis.call('SET', 'bg:' .. i, 'x', 'PX', 3600000 + i) end return 1";
    for from in (0..keys).step_by(1_000) {
        let upto = (from + 999).min(keys - 1);
        wire.call(&["EVAL", LOAD, "0", &from.to_string(), &upto.to_string()]).unwrap();
    }
}

/// Every entry in the stream.
pub(crate) fn entries(redis: &Redis) -> Vec<Entry> {
    let raw = Wire::connect(redis).xrange(partition().stream()).unwrap();
    raw.iter().map(|raw| Entry::decode(raw).unwrap()).collect()
}

/// How many timeouts there are of each key, and that no generation of a key is there twice.
pub(crate) fn timeouts(redis: &Redis) -> BTreeMap<Bytes, u64> {
    let mut counts = BTreeMap::<Bytes, u64>::new();
    let mut names = BTreeSet::new();
    for entry in entries(redis) {
        let key = entry.id.into_bytes();
        assert!(
            names.insert((key.clone(), entry.generation)),
            "{key:?}: generation {} is there twice",
            entry.generation
        );
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// Waits until the stream has stood still for `quiet`: what nobody waits for is late.
pub(crate) fn await_quiet(redis: &Redis, quiet: Duration) {
    let length = || redis.count(&[b"XLEN".as_slice(), &partition().stream()]);
    let (mut last, mut since) = (length(), Instant::now());
    let end = Instant::now() + overdue_tests::patience();
    while since.elapsed() < quiet {
        assert!(Instant::now() < end, "the stream never stood still");
        std::thread::sleep(Duration::from_millis(50));
        let now = length();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}

/// A connection to write to. Answers are nobody's concern: many a command meets no key.
pub(crate) fn deaf_connection(redis: &Redis) -> TcpStream {
    let stream = TcpStream::connect(redis.addr()).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut drain = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut sink = vec![0; 1 << 16];
        while drain.read(&mut sink).is_ok_and(|n| n > 0) {}
    });
    stream
}
