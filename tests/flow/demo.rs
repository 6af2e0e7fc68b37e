//! `overdue demo` and `overdue bench`, small, from outside: they end by themselves, and say what they promise to say.

use std::time::Duration;

use overdue_tests::Launch;
use serde_json::Value;

/// They arm, wait, kill and wait for leases; on a busy machine a small one takes some 15 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `overdue` to its end and reads the last line of its stdout.
fn last_line(args: &[&str]) -> Value {
    let mut launch = Launch::new(args);
    // The program starts a Redis of its own.
    if let Some(server) = std::env::var_os("OVERDUE_REDIS_SERVER") {
        launch = launch.env("OVERDUE_REDIS_SERVER", server);
    }
    let program = launch.start();
    let status = program.wait_exit(PATIENCE);
    let (stdout, stderr) = (program.stdout(), program.stderr());
    assert_eq!(status.code(), Some(0), "{args:?}\n{stdout}\n{stderr}");
    assert_eq!(stderr, "", "with --json nothing is said beside the result");
    let line = stdout.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}: {value}"))
}

#[test]
fn the_demo_loses_nothing_while_a_relay_and_a_consumer_are_killed() {
    let args = ["demo", "--timers", "1000", "--seconds", "3", "--background-keys", "5000", "--json"];
    let said = last_line(&args);
    for (path, expected) in [
        ("/armed", 1_000.0),
        ("/fired", 1_000.0),
        ("/handled", 1_000.0),
        ("/duplicate_entries", 0.0),
        ("/lost", 0.0),
        ("/early", 0.0),
        ("/baseline/expected", 100.0),
    ] {
        assert!((number(&said, path) - expected).abs() < 0.5, "{path} is not {expected}: {said}");
    }
    let [p50, p99, max] = ["p50", "p99", "max"].map(|name| number(&said, &format!("/lateness_ms/{name}")));
    assert!(p50 > 0.0 && p50 <= p99 && p99 <= max, "{said}");
    assert!(number(&said, "/baseline/seen") <= 100.0, "{said}");
    // Null when the plain listener saw nothing.
    assert!(said.pointer("/baseline/p50_ms").is_some(), "{said}");
}

#[test]
fn bench_burst_counts_every_timeout() {
    let said = last_line(&["bench", "burst", "--timers", "5000", "--json"]);
    assert_eq!(said["bench"], "burst");
    assert_eq!(said["timers"], 5_000);
    assert!(number(&said, "/per_s") > 100.0 && number(&said, "/redis_us") > 0.0, "{said}");
    assert!(said.get("our_us").is_some(), "{said}");
}

#[test]
fn bench_steady_counts_every_timeout_from_its_due_time() {
    let said =
        last_line(&["bench", "steady", "--rate", "200", "--armed", "1000", "--seconds", "2", "--json"]);
    assert_eq!(said["bench"], "steady");
    assert_eq!((&said["rate"], &said["armed"], &said["seconds"]), (&200.into(), &1_000.into(), &2.into()));
    assert_eq!(said["handled"], 400);
    let at = ["p50", "p99", "p999", "max"].map(|name| number(&said, &format!("/lateness_ms/{name}")));
    assert!(at[0] > 0.0 && at.is_sorted(), "{said}");
    assert!(number(&said, "/redis_us") > 0.0 && said.get("our_us").is_some(), "{said}");
}
