//! A life with something in every place.

use std::fs;

use overdue_tests::{Launch, Redis, eventually_blocking};

use super::{ended, relay, run, started};

/// By the first letters of its id a command succeeds, is retried, rejects or never ends.
const SCRIPT: &str =
    "case $OVERDUE_ID in retried) echo retry-after: 8s; exit 75;; dead) exit 65;; held) sleep 30;; esac";

/// A server with one timer or timeout in each place, and nobody at work any more.
pub(super) fn live() -> Redis {
    let redis = Redis::start();
    run(&redis, "queues create orders --partitions 1 --history 3");
    let relay = relay(&redis);
    let handle = ["--lease", "1s", "--exec", "--", "sh", "-c", SCRIPT];
    let consumer = started(Launch::consume(&redis.url(), "orders", "billing").args(handle));
    let count = |command: &str, key: &str| redis.count(&[command, &format!("overdue:{key}")]);
    for id in ["done", "dead", "retried", "held"] {
        run(&redis, &format!("schedule orders {id} --in 0s --payload x"));
    }
    let tally = |field: &str| redis.call(&["HGET", "overdue:{orders:0}:tally", field]).text();
    let settled = || {
        let pending = redis.call(&["XPENDING", "overdue:{orders:0}:stream", "billing"]).items()[0].int();
        let handled =
            (tally("done:billing"), tally("buried:billing"), count("ZCARD", "{orders:0}:retry-index"));
        handled == ("1".to_owned(), "1".to_owned(), 1) && pending == Some(1)
    };
    eventually_blocking("three are out of hand and one is held", settled);
    consumer.kill9();
    redis.call(&["SET", "session:a", "x", "PX", "4000"]);
    run(&redis, "schedule orders unread --in 0s --payload x");
    eventually_blocking("the key is known, and the timer has fired", || {
        count("ZCARD", "{sessions:0}:watched") == 1 && count("ZCARD", "{orders:0}:index") == 0
    });
    ended(&relay);
    let binary = redis.folder().join("binary");
    fs::write(&binary, b"\xff\x00\xc3\x28").unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    run(&redis, &format!("schedule orders armed --in 4s --payload plain --traceparent {trace}"));
    run(&redis, &format!("schedule orders binary --in 4s --payload-file {}", binary.display()));
    run(&redis, "schedule orders keyed --in 4s --payload k --keyed");
    redis
}
