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
    assert!((1.0..=201.0).contains(&number(&said, "/per_s")), "no more than were due: {said}");
    assert!(said["arming_behind_ms"].is_u64(), "{said}");
}

#[test]
fn bench_ceiling_is_above_what_a_burst_does_with_the_same_calls() {
    let said = last_line(&["bench", "ceiling", "--timers", "20000", "--runs", "1", "--json"]);
    assert_eq!(said["bench"], "ceiling");
    assert_eq!((&said["timers"], &said["runs"]), (&20_000.into(), &1.into()));
    let (ceiling, burst) = (number(&said, "/per_s"), number(&said, "/burst/per_s"));
    let percent = number(&said, "/percent_of_ceiling");
    assert!((percent - 100.0 * burst / ceiling).abs() < 0.1, "{said}");
    // 79 full pages each to sweep and to acknowledge, and 40 full reads: never fewer calls than that.
    for whose in ["", "/burst"] {
        let of = |name: &str| number(&said, &format!("{whose}/{name}"));
        assert!(of("scripts") >= 158.0 && of("reads") >= 40.0 && of("redis_us") > 0.0, "{said}");
    }
}

#[test]
fn bench_schedule_arms_every_timer_in_both_ways() {
    let said = last_line(&["bench", "schedule", "--timers", "2000", "--callers", "16", "--json"]);
    assert_eq!(said["bench"], "schedule");
    assert_eq!((&said["timers"], &said["callers"]), (&2_000.into(), &16.into()));
    for way in ["many", "single"] {
        let of = |name: &str| number(&said, &format!("/{way}_{name}"));
        assert!(of("per_s") > 100.0 && of("redis_us") > 0.0, "{said}");
        assert!(said.get(format!("{way}_our_us")).is_some(), "{said}");
    }
    // One call for many is what spares Redis work.
    assert!(number(&said, "/many_redis_us") < number(&said, "/single_redis_us"), "{said}");
}

#[test]
fn bench_idle_tells_relay_consumer_and_redis_apart() {
    let said = last_line(&["bench", "idle", "--armed", "1000", "--seconds", "2", "--json"]);
    assert_eq!(
        (&said["bench"], &said["armed"], &said["seconds"]),
        (&"idle".into(), &1_000.into(), &2.into())
    );
    // Each is one process with two cores at most; a second of work in two would be 50.
    for path in ["/cpu_percent", "/consumer_cpu_percent", "/redis_cpu_percent"] {
        assert!((0.0..50.0).contains(&number(&said, path)), "{path}: {said}");
    }
    assert!(number(&said, "/redis_cpu_percent") > 0.0, "heartbeats and looks cost something: {said}");
}

#[test]
fn bench_memory_grows_with_the_payload_and_with_what_is_kept() {
    let of =
        |bytes: &str| last_line(&["bench", "memory", "--timers", "2000", "--payload-bytes", bytes, "--json"]);
    let (small, large) = (of("100"), of("1100"));
    for name in ["/armed_bytes", "/keyed_bytes", "/fired_bytes", "/pending_bytes"] {
        let grown = number(&large, name) - number(&small, name);
        assert!((900.0..1_500.0).contains(&grown), "{name} grows by {grown} for 1000 bytes of payload");
        assert!(number(&small, name) > 100.0, "{name}: {small}");
    }
    assert!(number(&small, "/keyed_bytes") > number(&small, "/armed_bytes"), "{small}");
    assert!(number(&small, "/pending_bytes") > number(&small, "/fired_bytes"), "{small}");
}

#[test]
fn bench_scale_counts_each_number_of_consumers_against_the_first() {
    let line = "bench scale --consumers 1,2 --work 20ms --concurrency 2 --seconds 2 --json";
    let said = last_line(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(said["bench"], "scale");
    let rows = said["rows"].as_array().unwrap_or_else(|| panic!("no rows: {said}"));
    let of = |name: &str| rows.iter().map(|row| row[name].as_u64()).collect::<Vec<_>>();
    assert_eq!(
        (of("consumers"), of("timers")),
        (vec![Some(1), Some(2)], vec![Some(200), Some(400)]),
        "{said}"
    );
    // Two handlers of 20 ms do no more than 100 a second.
    let first = number(&rows[0], "/per_s");
    assert!(first > 1.0 && first <= 101.0, "{said}");
    assert!((number(&rows[0], "/ratio") - 1.0).abs() < 0.01, "{said}");
    assert!((number(&rows[1], "/ratio") - number(&rows[1], "/per_s") / first).abs() < 0.02, "{said}");
}

#[test]
fn bench_scripts_compares_with_the_scripts_of_a_folder() {
    let lua = concat!(env!("CARGO_MANIFEST_DIR"), "/../lua");
    let line = "bench scripts --rounds 1 --items 1024 --batch 1,256 --json --lua";
    let said = last_line(&line.split(' ').chain([lua]).collect::<Vec<_>>());
    assert_eq!(said["bench"], "scripts");
    let rows = said["rows"].as_array().unwrap_or_else(|| panic!("no rows: {said}"));
    // Those where a call for one costs five times its share of a full one, however busy the machine.
    for script in ["schedule", "sweep", "complete", "touch"] {
        let of = |batch: u64| {
            let row = rows.iter().find(|row| row["script"] == script && row["batch"] == batch);
            row.unwrap_or_else(|| panic!("no row of {script} with {batch}: {said}"))
        };
        let (one, many) = (number(of(1), "/us"), number(of(256), "/us"));
        assert!(one > many, "a call for one {script} costs more than its share of a full one: {one}, {many}");
        assert!(number(of(256), "/lua_us") > 0.0 && number(of(256), "/lua_ratio") > 0.0, "{said}");
    }
}

#[test]
fn bench_says_what_is_wrong_with_its_arguments() {
    for (args, said) in [
        (&["bench", "scripts", "--batch", "3"][..], "1, 2, 4, 8, 16, 32, 64, 128 or 256"),
        (&["bench", "scripts", "--lua", "/nowhere"], "/nowhere/lib/"),
        (&["bench", "scale", "--work", "0s"], "--work is 0"),
        (&["bench", "schedule", "--callers", "0"], "--callers"),
        (&["bench", "ceiling", "--runs", "0"], "--runs"),
    ] {
        let program = Launch::new(args).start();
        assert_eq!(program.wait_exit(PATIENCE).code(), Some(2), "{args:?}");
        assert!(program.stderr().contains(said), "{args:?}: {}", program.stderr());
    }
}
