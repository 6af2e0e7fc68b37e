//! What the relay says of groups in its metrics.

use overdue_protocol::call::CompleteItem;
use overdue_tests::{Launch, Stage, eventually_blocking};

const BACKLOG: &str = "overdue_group_backlog";
const OLDEST: &str = "overdue_group_oldest_pending_seconds";
const GONE: &str = "overdue_group_gone";

#[test]
fn what_is_before_a_group_and_whether_it_is_gone_is_a_metric() {
    let mut stage = Stage::new();
    let relay = Launch::relay(&stage.redis.url()).start();
    assert_eq!(
        Launch::new(["--redis", &stage.redis.url(), "queues", "create", "orders"]).run().code,
        Some(0)
    );
    let says =
        |metric: &str, group: &str| relay.metrics().get(metric, &[("queue", "orders"), ("group", group)]);
    let wait = |metric: &str, group: &str, value: f64| {
        eventually_blocking(&format!("{metric} of {group} is {value}"), || match says(metric, group) {
            Some(said) if (said - value).abs() < f64::EPSILON => Ok(()),
            said => Err(said),
        });
    };
    stage.join("billing");
    stage.join("mail");
    let entries = stage.deliver("billing", "c", &["done", "waits", "held"]);
    stage.deliver_none(&["unread"]);
    assert_eq!(stage.complete("billing", vec![CompleteItem::Done(entries[0])]).done, 1);
    stage.retry(stage.by("billing", "c"), &entries[1..2], 3_600_000);
    wait(BACKLOG, "billing", 3.0);
    wait(BACKLOG, "mail", 4.0);
    wait(GONE, "billing", 0.0);
    eventually_blocking("the oldest grows", || says(OLDEST, "billing").is_some_and(|age| age > 2.0));

    stage.redis.call(&[b"XGROUP".as_slice(), b"DESTROY", &stage.partition.stream(), b"billing"]);
    wait(GONE, "billing", 1.0);
    let dropped = Launch::new(["--redis", &stage.redis.url(), "groups", "drop", "orders", "billing"]).run();
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    for metric in [GONE, BACKLOG, OLDEST] {
        wait(metric, "billing", 0.0);
    }
    relay.sigterm();
}
