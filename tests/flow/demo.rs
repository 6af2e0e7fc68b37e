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
    let line = "demo --timers 1000 --keys 100 --seconds 3 --background-keys 5000 --json";
    let said = last_line(&line.split(' ').collect::<Vec<_>>());
    for (path, expected) in [
        ("/armed", 1_000.0),
        ("/fired", 1_000.0),
        ("/handled", 1_000.0),
        ("/duplicate_entries", 0.0),
        ("/lost", 0.0),
        ("/early", 0.0),
        ("/baseline/expected", 100.0),
        ("/beside/expected", 100.0),
        ("/watched/written", 100.0),
        ("/watched/timeouts", 100.0),
        ("/watched/handled", 100.0),
        ("/watched/lost", 0.0),
        ("/watched/twice", 0.0),
        ("/watched/early", 0.0),
    ] {
        assert!((number(&said, path) - expected).abs() < 0.5, "{path} is not {expected}: {said}");
    }
    for names in [
        ["/lateness_ms/p50", "/lateness_ms/p99", "/lateness_ms/max"],
        ["/watched/p50_ms", "/watched/p99_ms", "/watched/max_ms"],
    ] {
        let at = names.map(|name| number(&said, name));
        assert!(at[0] > 0.0 && at.is_sorted(), "{said}");
    }
    let by = ["/watched/by_notification", "/watched/by_nudge", "/watched/unproven"];
    let by = by.map(|path| number(&said, path)).into_iter().sum::<f64>();
    assert!((by - 100.0).abs() < 0.5, "each key was fired by something: {said}");
    // Both are cut off for a moment; the one on the Redis that nobody watches hears of few, as Redis ends them late.
    assert!(number(&said, "/baseline/seen") < 100.0 && number(&said, "/beside/seen") <= 100.0, "{said}");
    // Null when the plain listener saw nothing.
    assert!(said.pointer("/baseline/p50_ms").is_some(), "{said}");
}

#[test]
fn bench_lag_hears_of_every_watched_key_and_timer() {
    let said = last_line(&["bench", "lag", "--background", "0,100", "--json"]);
    assert_eq!(said["bench"], "lag");
    let rows = said["rows"].as_array().unwrap_or_else(|| panic!("no rows: {said}"));
    let background: Vec<_> = rows.iter().filter_map(|row| row["background"].as_u64()).collect();
    assert_eq!(background, [0, 100], "{said}");
    for row in rows {
        assert_eq!(row["plain"]["of"], 1_000, "{said}");
        assert!(row["plain"]["seen"].as_u64().is_some_and(|seen| seen <= 1_000), "{said}");
        assert!(row["plain"].get("p50_ms").is_some(), "{said}");
        for what in ["watched", "timers"] {
            assert_eq!(row[what]["seen"], 1_000, "{said}");
            let at = ["p50_ms", "p99_ms"].map(|name| number(&row[what], &format!("/{name}")));
            assert!(at[0] > 0.0 && at.is_sorted(), "{said}");
        }
    }
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
