//! `bench/peers/run`, small: what it measures, what it says when it can't.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use overdue_sandbox::Process;
use overdue_tests::binary;
use overdue_tests::program::Finished;
use serde_json::Value;

/// A burst of our own and one of the plain listener take some seconds each.
const PATIENCE: Duration = Duration::from_secs(120);
const PARTS: [&str; 4] = ["burst", "memory", "schedule", "steady"];

/// Runs it to its end. Nothing is installed where it looks for the peers.
fn run(args: &[&str]) -> Finished {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/peers/run");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let installed = file("nothing-installed");
    let mut command = Command::new(&script);
    command.args(args).arg("--installed").arg(&installed).env("OVERDUE_BIN", binary::find().unwrap());
    // So that what it starts keeps its files where they go with the test.
    command.env("TMPDIR", folder.path()).stdin(Stdio::null());
    command.stdout(File::create(file("stdout")).unwrap()).stderr(File::create(file("stderr")).unwrap());
    let mut process = Process::spawn(&mut command)
        .unwrap_or_else(|error| panic!("{}, which needs python3: {error}", script.display()));
    let status = process.wait_exit(PATIENCE);
    let text = |name: &str| fs::read_to_string(file(name)).unwrap();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    let status = status.unwrap_or_else(|| panic!("it still runs after {PATIENCE:?}:\n{stdout}\n{stderr}"));
    Finished { code: status.code(), stdout, stderr }
}

#[test]
fn the_same_is_said_of_each_contestant_and_of_what_was_not_measured() {
    let line = "--only overdue,plain --quick --timers 500 --runs 1 --parts burst";
    let ended = run(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said: Value = serde_json::from_str(ended.stdout.lines().last().unwrap_or_default()).unwrap();
    let keys = |value: &Value| {
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort_unstable();
        keys
    };
    for name in ["overdue", "plain"] {
        assert_eq!(keys(&said[name]), PARTS, "{said}");
        assert!(PARTS.iter().all(|part| said[name][part].is_null() == (*part != "burst")), "{said}");
        assert!(ended.stdout.lines().any(|line| line.starts_with(name)), "{}", ended.stdout);
    }
    let [ours, plain] = ["overdue", "plain"].map(|name| &said[name]["burst"]);
    assert_eq!(keys(ours), ["handled", "lateness_ms", "our_us", "per_s", "redis_us", "timers"], "{said}");
    assert_eq!(keys(ours), keys(plain), "{said}");
    // Ours takes no fewer.
    assert_eq!((ours["timers"].as_u64(), ours["handled"].as_u64()), (Some(1_000), Some(1_000)), "{said}");
    assert!(ours["per_s"].as_f64().is_some_and(|rate| rate > 10.0), "{said}");
    assert_eq!((plain["timers"].as_u64(), plain["handled"].as_u64()), (Some(500), Some(500)), "{said}");
    assert!(plain["per_s"].is_null(), "it acknowledges nothing: {said}");
    assert!(plain["lateness_ms"]["p50"].as_f64().is_some_and(|ms| ms > 0.0), "{said}");
    assert_eq!(said["ratios"], Value::Array(vec![]), "the plain listener is no peer to compare with");
}

#[test]
fn a_contestant_that_is_not_there_is_said_before_anything_is_measured() {
    let unknown = run(&["--only", "overdue,sidekiq"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""), "{unknown:?}");
    assert!(
        unknown.stderr.contains("no such contestant: 'sidekiq'; there are overdue, bullmq,"),
        "{unknown:?}"
    );
    let absent = run(&["--only", "overdue,bullmq,celery"]);
    assert_eq!((absent.code, absent.stdout.as_str()), (Some(2), ""), "{absent:?}");
    let said = "not installed: bullmq, celery; run bench/peers/setup first";
    assert!(absent.stderr.contains(said), "{absent:?}");
}
