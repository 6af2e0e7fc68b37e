//! The examples of the client library, as they stand there, beside a relay.

use overdue_tests::{Launch, Redis, assert_balanced, binary, patience};

/// Runs an example to its end; what it printed.
fn run(name: &str, redis: &Redis) -> String {
    let _relay = Launch::relay(&redis.url()).start();
    let example = binary::example(name).unwrap_or_else(|error| panic!("{error}"));
    let example = Launch::new([redis.url()]).start_as(&example);
    let status = example.wait_exit(patience());
    assert!(status.success(), "{name}: {status:?}\n{}{}", example.stdout(), example.stderr());
    example.stdout()
}

#[test]
fn an_order_that_is_not_paid_is_cancelled_and_one_that_is_paid_is_not() {
    let redis = Redis::start();
    assert_eq!(run("order", &redis), "order-1 is paid\norder-2 was not paid in time: cancelled\n");
    assert_balanced(&redis, "orders", 1);
}

#[test]
fn a_device_that_is_silent_is_reported_and_one_that_beats_is_not() {
    let redis = Redis::start();
    let said = run("watchdog", &redis);
    let mut lines: Vec<_> = said.lines().collect();
    lines[..2].sort_unstable();
    assert_eq!(lines, ["pump is watched: armed", "valve is watched: armed", "valve is silent"]);
    assert_balanced(&redis, "devices", 1);
    assert_eq!(redis.count(&["ZCARD", "overdue:{devices:0}:index"]), 0);
}

#[test]
fn seats_that_are_not_bought_are_free_again_with_the_acknowledgement() {
    let redis = Redis::start();
    let said = run("seats", &redis);
    let mut lines: Vec<_> = said.lines().collect();
    lines.sort_unstable();
    let free = |id: &str, seats| format!("{id} did not buy: {seats} seats for hamlet are free");
    assert_eq!(lines, [free("ann", 2), free("bob", 3)]);
    assert_eq!(redis.call(&["HGET", "{holds:0}free", "hamlet"]).text(), "5");
    assert_eq!(redis.count(&["XLEN", "{holds:0}log"]), 2);
    assert_balanced(&redis, "holds", 1);
}
