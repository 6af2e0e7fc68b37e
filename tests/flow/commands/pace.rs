//! No command that looks holds the server up, however much there is and whatever else it has to do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::stage::{Stage, partition};

/// Entries in the stream, dead letters, waiting retries, armed timers.
const MANY: [u32; 4] = [100_000, 10_000, 10_000, 100_000];
/// The longest that one command of ours may take, in microseconds.
const SLOW_US: u64 = 5_000;
/// What others do meanwhile.
const LOAD: &str = "load";

/// Fills the queue `orders` by a script, a thousand at a time.
fn fill(stage: &Stage) {
    let (part, fields) =
        (partition("orders"), "'gen',i,'due','1','fired','1','src','index','kind','timer','payload','p'");
    let letter = "'group','billing','reason','attempts','detail','no','buried','5','by','c'";
    let keys = [part.stream(), part.dead(), part.retry_index(), part.index()];
    let scripts = [
        format!("redis.call('XADD', KEYS[1], '*', 'id', 's' .. i, {fields})"),
        format!("redis.call('XADD', KEYS[1], '*', {letter}, 'id', 'd' .. i, {fields})"),
        "redis.call('ZADD', KEYS[1], 4000000000000 + i, 'billing/r' .. i .. '/7')".to_owned(),
        "redis.call('ZADD', KEYS[1], 4000000000000 + i, 'armed' .. i)".to_owned(),
    ];
    for ((key, script), many) in keys.iter().zip(scripts).zip(MANY) {
        let script = format!("for i = ARGV[1], ARGV[1] + 999 do {script} end");
        for from in (0..many).step_by(1_000) {
            stage.redis.call(&[
                b"EVAL".as_slice(),
                script.as_bytes(),
                b"1",
                key,
                from.to_string().as_bytes(),
            ]);
        }
    }
}

/// Ends the load, whatever becomes of the test.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs lines that do the same, while the server is kept busy. A machine that does other things too makes now one command
/// slow and now another; one that is slow by itself is so each time.
fn quick(stage: &Stage, code: i32, lines: &[&str; 3]) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = stage.redis.connection().unwrap();
            while !over.load(Ordering::Relaxed) {
                connection.call(&["SET", LOAD, "x"]).unwrap();
            }
        });
        let _over = Until(&over);
        let slowest = lines.map(|line| {
            stage.redis.watch_for_slow(1);
            stage.code(code, line);
            slowest(stage)
        });
        for command in slowest[0].keys() {
            let least = slowest.iter().map(|of| of.get(command).copied().unwrap_or(0)).min();
            assert!(least < Some(SLOW_US), "{lines:?}: {command}: {slowest:#?}");
        }
    });
}

/// The time of each command, or script, that took over a millisecond, in microseconds: of many pages that are alike the
/// median, for among many there is always one that had to wait for the processor.
fn slowest(stage: &Stage) -> BTreeMap<String, u64> {
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (us, command) in stage.redis.slow().into_iter().filter(|(_, command)| !command.contains(LOAD)) {
        let words = if command.starts_with("EVAL") { 2 } else { 1 };
        let name = command.split(' ').take(words).collect::<Vec<_>>().join(" ");
        times.entry(name).or_default().push(us);
    }
    let median = |mut times: Vec<u64>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    times.into_iter().map(|(name, times)| (name, median(times))).collect()
}

#[test]
fn no_command_that_looks_holds_redis_up() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    fill(&stage);
    for id in ["s99999", "r9999", "d9999"] {
        assert_eq!(stage.json(&format!("show orders {id}")).len(), 1, "{id}");
    }
    assert_eq!(stage.json("groups drop orders billing --dry-run")[0]["retries"], 10_000);
    assert_eq!(stage.json("dead list orders --id d99?7").len(), 10);
    quick(&stage, 1, &["show orders nothing"; 3]);
    quick(&stage, 0, &["dead list orders --limit 0 --reason attempts --json"; 3]);
    quick(&stage, 0, &["dead replay orders --all --dry-run"; 3]);
    quick(&stage, 0, &["groups list"; 3]);
    quick(&stage, 0, &["list orders --limit 0"; 3]);
    quick(&stage, 0, &["top --once"; 3]);
    quick(&stage, 4, &["doctor"; 3]);
    quick(&stage, 4, &["audit orders"; 3]);
    quick(&stage, 0, &["discard orders r5", "discard orders r6", "discard orders r7"]);
    quick(
        &stage,
        0,
        &["dead replay orders --id d1*", "dead replay orders --id d2*", "dead replay orders --id d3*"],
    );
    quick(
        &stage,
        0,
        &["dead purge orders --id d4*", "dead purge orders --id d5*", "dead purge orders --id d6*"],
    );
    assert_eq!(stage.redis.count(&[b"XLEN".as_slice(), &partition("orders").dead()]), 3_334);
}

#[test]
fn a_group_with_many_retries_is_dropped_a_page_at_a_time() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    for group in ["a", "b", "c"] {
        stage.join("orders", group);
        let script = "for i = 1, 10000 do redis.call('ZADD', KEYS[1], i, ARGV[1] .. '/r' .. i .. '/7') end";
        let key = partition("orders").retry_index();
        stage.redis.call(&[b"EVAL".as_slice(), script.as_bytes(), b"1", &key, group.as_bytes()]);
    }
    quick(&stage, 0, &["groups drop orders a", "groups drop orders b", "groups drop orders c"]);
    assert_eq!(stage.redis.count(&[b"EXISTS".as_slice(), &partition("orders").retry_index()]), 0);
}

#[test]
fn a_long_history_is_cut_a_little_at_a_time() {
    let stage = Stage::new();
    stage.ok("queues create orders --history 100000");
    let history = partition("orders").history();
    let script = "for i = 1, 5000 do redis.call('XADD', KEYS[1], '*', 'id', 'a', 'done', '1') end";
    for _ in 0..30 {
        stage.redis.call(&[b"EVAL".as_slice(), script.as_bytes(), b"1", &history]);
    }
    quick(
        &stage,
        0,
        &[
            "queues set orders --history 100000",
            "queues set orders --history 50000",
            "queues set orders --history 10",
        ],
    );
    assert_eq!(stage.redis.count(&[b"XLEN".as_slice(), &history]), 10);
    stage.ok("queues set orders --history 0");
    assert_eq!(stage.redis.count(&[b"EXISTS".as_slice(), &history]), 0);
}
