//! Groups that are gone, slow, undeclared, or kept from their work.

use overdue_protocol::Keyspace;
use overdue_protocol::member::Member;
use overdue_tests::Stage as Hands;

use super::{assert_found, findings};
use crate::commands::stage::{Stage, partition};

/// A queue with a group, and one timeout that has been in the stream for two minutes.
fn old(read: bool) -> Stage {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    let entry = format!("{}-0", stage.redis.now_ms() - 120_000);
    let stream = partition("orders").stream();
    let fields =
        ["id", "a", "gen", "7", "due", "1", "fired", "1", "src", "index", "kind", "timer", "payload", ""];
    let head = [b"XADD".as_slice(), &stream, entry.as_bytes()];
    stage.redis.call(&head.into_iter().chain(fields.map(str::as_bytes)).collect::<Vec<_>>());
    if read {
        assert_eq!(stage.take("orders", "billing").len(), 1);
    }
    stage
}

fn ours(stage: &Stage, trouble: &str) {
    let text = |text: &str| text.to_owned();
    let seen = stage.redis.now_ms();
    let (role, version, host) = (text("consumer"), text("1.0.0"), text("here"));
    let (queues, rules, trouble) = (vec![text("orders/billing")], String::new(), text(trouble));
    let member = Member { role, version, host, pid: 1, started: seen, seen, queues, rules, trouble };
    let key = Keyspace::default().members();
    stage.redis.call(&[b"HSET".as_slice(), &key, b"me", &member.encode()]);
}

#[test]
fn a_group_that_is_gone_is_found_and_can_be_forgotten() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    stage.join("orders", "mail");
    stage.redis.call(&[b"XGROUP".as_slice(), b"DESTROY", &partition("orders").stream(), b"billing"]);
    assert_found(&stage, "groups", "bad", "group billing of orders is gone");
    assert_eq!(findings(&stage, "groups").len(), 2);
    stage.run(["groups", "drop", "orders", "billing"]);
    assert_eq!(findings(&stage, "groups").len(), 1, "nothing reminds of it");
}

#[test]
fn a_group_that_is_slow_is_found_whether_it_holds_the_timeout_or_has_not_read_it() {
    for read in [false, true] {
        let stage = old(read);
        ours(&stage, "");
        assert_found(&stage, "groups", "ok", "group billing of orders has a consumer");
        assert_found(&stage, "slow", "warn", "its oldest timeout has been in the stream for 2m");
        stage.ok("pause orders");
        assert_eq!(findings(&stage, "slow"), [], "it is to wait");
    }
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    stage.arm_due("orders", b"b", b"");
    stage.fire("orders");
    assert_eq!(findings(&stage, "slow"), [], "it has just fired");
}

#[test]
fn consumers_of_somebody_else_that_nobody_declared_are_found() {
    let stage = old(true);
    assert_found(&stage, "plain", "warn", "nobody hands out again what they drop");
    ours(&stage, "");
    assert_eq!(findings(&stage, "plain"), [], "a consumer of ours takes over");
    let stage = old(false);
    assert_eq!(findings(&stage, "plain"), [], "nobody holds it");
    let mut hands = Hands::new();
    hands.join("mail");
    hands.reclaim("mail");
    let stage = Stage { redis: hands.redis };
    stage.ok("queues create orders");
    assert_eq!(findings(&stage, "plain"), [], "it is declared");
}

#[test]
fn an_endpoint_that_is_down_is_found() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    ours(&stage, "the endpoint is down: connection refused");
    assert_found(&stage, "endpoint", "bad", "consumer on here: the endpoint is down: connection refused");
    ours(&stage, "");
    assert_eq!(findings(&stage, "endpoint"), []);
}
