//! No command that looks holds the server up, however much there is.

use super::stage::{Stage, partition};

/// Entries in the stream, dead letters, waiting retries.
const MANY: [u32; 3] = [100_000, 10_000, 10_000];
/// The longest that one command may take, in milliseconds, in the best of three runs: this machine may be busy.
const SLOW_MS: u64 = 10;

/// Fills the queue `orders` by a script, a thousand at a time.
fn fill(stage: &Stage) {
    let (part, fields) =
        (partition("orders"), "'gen',i,'due','1','fired','1','src','index','kind','timer','payload','p'");
    let letter = "'group','billing','reason','attempts','detail','no','buried','5','by','c'";
    let keys = [part.stream(), part.dead(), part.retry_index()];
    let scripts = [
        format!("redis.call('XADD', KEYS[1], '*', 'id', 's' .. i, {fields})"),
        format!("redis.call('XADD', KEYS[1], '*', {letter}, 'id', 'd' .. i, {fields})"),
        "redis.call('ZADD', KEYS[1], 4000000000000 + i, 'billing/r' .. i .. '/7')".to_owned(),
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

/// Runs lines that do the same until one held Redis up for no longer than it may.
fn quick(stage: &Stage, code: i32, lines: &[&str; 3]) {
    let slow = lines.map(|line| {
        stage.redis.watch_for_slow(SLOW_MS);
        stage.code(code, line);
        stage.redis.slow()
    });
    assert!(slow.iter().any(Vec::is_empty), "{lines:?}: {slow:?}");
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
