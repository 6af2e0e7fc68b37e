//! What earlier versions left in Redis is read and worked off by this one: `tests/fixtures/VERSION/keys.redis` holds all
//! keys of a server that each wrote, as commands for `redis-cli`.
//!
//! A version without a file gets one from the program as it is now, and the test fails once: see that it is committed
//! with the release. A file that is there is never written again.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod dump;
mod past;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use overdue_tests::{Launch, Program, Redis, assert_balanced, eventually_blocking};
use serde_json::Value;

const RULES: &str = "[[watch]]\npattern = \"session:*\"\nqueue = \"sessions\"\n\
                     [[group]]\nqueue = \"orders\"\nname = \"mail\"\n";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn started(launch: Launch) -> Program {
    let program = launch.start();
    program.addr();
    program
}

fn relay(redis: &Redis) -> Program {
    let file = redis.folder().join("rules.toml");
    fs::write(&file, RULES).unwrap();
    started(Launch::relay(&redis.url()).args(["--config", file.to_str().unwrap()]))
}

fn ended(program: &Program) {
    program.sigterm();
    assert_eq!(program.wait_exit(Duration::from_secs(10)).code(), Some(0), "{}", program.stderr());
}

fn run(redis: &Redis, line: &str) -> String {
    let finished = Launch::new(line.split(' ')).args(["--redis", &redis.url()]).run();
    assert_eq!(finished.code, Some(0), "{line}: {finished:?}");
    finished.stdout
}

/// What a consumer has printed: attempt and payload by id.
fn printed(consumer: &Program) -> BTreeMap<String, (u64, String)> {
    let object = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let row = |object: Value| {
        let text = |name: &str| object[name].as_str().map(str::to_owned);
        let payload = text("payload").or(text("payload_base64")).unwrap();
        (text("id").unwrap(), (object["attempt"].as_u64().unwrap(), payload))
    };
    consumer.stdout().lines().map(|line| row(object(line))).collect()
}

#[test]
fn this_version_has_a_fixture() {
    let file = fixtures().join(env!("CARGO_PKG_VERSION")).join("keys.redis");
    if !file.exists() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, dump::write(&past::live())).unwrap();
        panic!("{} was not there, and is now: commit it with the release", file.display());
    }
}

#[test]
fn what_each_version_left_is_worked_off() {
    let mut seen = 0;
    for version in fs::read_dir(fixtures()).unwrap() {
        let file = version.unwrap().path().join("keys.redis");
        let redis = Redis::start();
        dump::load(&redis, &fs::read_to_string(&file).unwrap());
        assert!(run(&redis, "show orders done --json").contains("\"done\""), "the history");
        work_off(&redis);
        seen += 1;
    }
    assert!(seen > 0);
}

fn work_off(redis: &Redis) {
    let consume = |queue: &str| {
        let launch =
            Launch::consume(&redis.url(), queue, "billing").args(["--print", "--json", "--lease", "1s"]);
        started(launch)
    };
    let programs = [relay(redis), consume("orders"), consume("sessions")];
    let [_, orders, sessions] = &programs;
    assert_eq!(run(redis, "dead list orders --json").lines().count(), 1);
    run(redis, "dead replay orders --all");
    let expected = [
        ("armed", 1, "plain"),
        ("binary", 1, "/wDDKA=="),
        ("dead", 1, "x"),
        ("held", 1, "x"),
        ("keyed", 1, "k"),
        ("retried", 2, "x"),
        ("unread", 1, "x"),
    ];
    let expected = expected.map(|(id, attempt, payload)| (id.to_owned(), (attempt, payload.to_owned())));
    eventually_blocking("all are handled", || {
        let found = (printed(orders), printed(sessions).into_keys().collect::<Vec<_>>());
        if found == (expected.clone().into(), vec!["session:a".to_owned()]) { Ok(()) } else { Err(found) }
    });
    programs.iter().for_each(ended);
    assert_balanced(redis, "orders", 1);
    assert_balanced(redis, "sessions", 1);
}
