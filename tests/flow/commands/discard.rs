//! `discard`.

use overdue_tests::FiredKey;

use super::stage::{Stage, objects, partition};

#[test]
fn retries_and_unhandled_timeouts_of_the_id_are_taken_out_and_the_books_balance() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    stage.arm_due("orders", b"a", b"");
    stage.fire("orders");
    let taken = stage.take("orders", "billing");
    stage.retry("orders", "billing", &taken);
    for id in [b"a", b"b"] {
        stage.arm_due("orders", id, b"");
    }
    stage.fire("orders");
    let discarded = stage.json("discard orders a");
    assert_eq!(
        discarded,
        [serde_json::json!({"queue": "orders", "id": "a", "retries": 1, "timeouts": 1, "unread": 0})]
    );
    assert_eq!(stage.take("orders", "billing").len(), 1, "b stays");
    assert!(stage.ok("audit orders").starts_with("queue orders: balanced\n"));
    let again = stage.code(1, "discard orders a");
    assert!(again.stderr.contains("nothing of a in orders to discard"), "{}", again.stderr);
}

#[test]
fn the_timeout_of_a_watched_key_is_discarded_by_its_name_however_long() {
    let stage = Stage::new();
    stage.ok("queues create sessions");
    stage.join("sessions", "mail");
    let long = "x".repeat(65_536);
    let fire =
        |generation| FiredKey::new(long.clone(), generation).fire(&mut stage.wire(), &partition("sessions"));
    fire(7);
    let taken = stage.take("sessions", "mail");
    stage.retry("sessions", "mail", &taken);
    fire(8);
    assert!(stage.ok("audit sessions").starts_with("queue sessions: balanced\n"));
    let discarded = &stage.json(&format!("discard sessions {long}"))[0];
    assert_eq!((&discarded["retries"], &discarded["timeouts"]), (&1.into(), &1.into()));
    assert!(stage.ok("audit sessions").starts_with("queue sessions: balanced\n"));
}

#[test]
fn only_the_asked_for_group_loses_it_and_what_it_has_not_read_stays() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    stage.join("orders", "mailing");
    stage.arm_due("orders", b"a", b"");
    stage.fire("orders");
    let unread = stage.code(1, "discard orders a --group billing --json");
    assert_eq!(objects(&unread)[0]["unread"], 1);
    assert!(unread.stderr.contains("1 stay: other groups need the entry"), "{}", unread.stderr);
    let taken = stage.take("orders", "billing");
    stage.retry("orders", "billing", &taken);
    let taken = stage.take("orders", "mailing");
    stage.retry("orders", "mailing", &taken);
    let discarded = stage.ok("discard orders a --group billing");
    assert_eq!(discarded, "discarded 1 waiting retries and 0 fired timeouts of a of group billing\n");
    assert_eq!(stage.json("groups list orders")[1]["retries"], 1);
    assert!(stage.ok("audit orders").starts_with("queue orders: balanced\n"));
    stage.code(1, "discard orders a --group nobody");
}
