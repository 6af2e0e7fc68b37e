//! A key that is gone at its due, without proof, when every event before that has been applied (section 5).

use overdue_protocol::call::SettledWord::{Done, Dropped, Dup, Fired, Gone, Ok, Paid, Stale, Unproven};
use overdue_protocol::call::Sight::Due;
use overdue_protocol::call::{SettleOp, SettlePayload};

use crate::watched::{EVENT, PROOF, UNPROVEN, Watched, key, look, value};

#[test]
fn it_is_fired_or_dropped_as_the_rule_says_once() {
    let mut w = Watched::new();
    w.stage.join("billing");
    let due = w.past();
    for (name, op, word) in [("fired", UNPROVEN, Unproven), ("dropped", SettleOp::Drop, Dropped)] {
        w.track(name, 10, due);
        assert_eq!(w.one(name, 20, op.clone()), (word, due));
        assert_eq!(w.word(name, 20, op.clone()), Stale, "sent again");
        assert_eq!((w.looked(name), w.watched().len()), (Some(20), 0));
        assert_eq!(w.word(name, 21, op), Done);
        assert_eq!(w.word(name, 15, look(Due(due))), Stale);
    }
    let got = ["id", "gen", "due", "src", "proof"].map(|name| w.field(name).unwrap());
    assert_eq!(got, ["fired".into(), w.at(20).to_string(), due.to_string(), "index".into(), "none".into()]);
    assert_eq!(w.names(), ["?0:fired"]);
    let tally = ["watched_fired", "watched_unproven", "watched_dropped"].map(|field| w.stage.tally(field));
    assert_eq!((tally, w.stage.entries().len()), ([1, 1, 1], 1));
    w.stage.assert_balanced();
}

#[test]
fn a_later_look_or_a_known_end_or_a_due_that_is_not_over_leaves_nothing_to_do() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    for op in [UNPROVEN, SettleOp::Drop] {
        assert_eq!(w.word("never seen", 20, op.clone()), Done);
        w.track("looked at", 30, past);
        assert_eq!(w.one("looked at", 30, op.clone()), (Stale, past));
        assert_eq!(w.one("looked at", 29, op.clone()), (Stale, past));
        w.track("not over", 10, later);
        assert_eq!(
            w.one("not over", 20, op.clone()),
            (Gone, later),
            "what went before its due has not expired"
        );
        assert_eq!(w.looked("not over"), Some(10));
        w.stage.wire.call(&["FLUSHALL"]).unwrap();
    }
    assert_eq!(w.stage.entries().len(), 0);
}

#[test]
fn the_event_that_comes_after_all_pays_the_debt_and_the_next_one_fires() {
    let mut w = Watched::new();
    let due = w.past();
    w.track("a", 10, due);
    w.word("a", 20, UNPROVEN);
    assert_eq!(w.word("a", 15, EVENT), Paid);
    assert_eq!(w.names(), [format!("{}/0:a", w.at(15))]);
    assert_eq!(w.word("a", 15, PROOF), Dup);
    assert_eq!(w.word("a", 16, EVENT), Fired, "one debt, one payment");
    for (name, position) in [("at the debt", 20), ("before it", 11)] {
        w.track(name, 10, due);
        w.word(name, 20, UNPROVEN);
        assert_eq!(w.word(name, position, EVENT), Paid);
    }
    w.track("behind", 10, due);
    w.word("behind", 20, UNPROVEN);
    assert_eq!(w.word("behind", 21, EVENT), Fired, "of a life that began after it");
    assert_eq!(w.word("behind", 19, EVENT), Paid, "it is still owed");
    assert_eq!(w.stage.tally("watched_fired"), 4 + 2);
}

#[test]
fn two_lives_that_fired_without_proof_owe_two_debts() {
    let mut w = Watched::new();
    let due = w.past();
    w.track("a", 10, due);
    w.word("a", 20, UNPROVEN);
    w.track("a", 30, due);
    w.word("a", 40, UNPROVEN);
    w.track("a", 50, due);
    w.word("a", 60, UNPROVEN);
    assert_eq!(
        w.names(),
        ["???0:a", "??0:a", "?0:a"],
        "the newest is read first, the oldest is forgotten first"
    );
    assert_eq!(w.word("a", 35, EVENT), Paid, "the second pays its own, not that of the first");
    assert_eq!(w.word("a", 15, EVENT), Paid);
    assert_eq!(w.word("a", 16, EVENT), Paid, "the oldest that is not before it");
    assert_eq!(w.word("a", 17, EVENT), Fired);
    assert_eq!(w.stage.tally("watched_fired"), 4);
    assert!(!w.names().iter().any(|name| name.starts_with('?')));
}

#[test]
fn in_one_call_too_and_the_payment_leaves_the_next_life_alone() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    let op = |n, op| w.item(key("a"), n, op);
    let items = vec![
        op(10, look(Due(past))),
        op(20, UNPROVEN),
        op(30, look(Due(later))),
        op(18, EVENT),
        op(18, EVENT),
        op(19, SettleOp::Evicted(SettlePayload::None)),
    ];
    assert_eq!(w.settle(items), [Ok, Unproven, Ok, Paid, Dup, Fired]);
    assert_eq!(w.watched(), [("0:a".into(), later)]);
    assert!(!w.names().contains(&"?0:a".to_owned()));
    let again = vec![w.item(key("a"), 40, look(Due(past))), w.item(key("a"), 50, UNPROVEN)];
    assert_eq!(w.settle(again), [Ok, Unproven]);
    assert!(w.names().contains(&"?0:a".to_owned()));
}

#[test]
fn a_dropped_key_owes_nothing_its_late_event_fires() {
    let mut w = Watched::new();
    let due = w.past();
    w.track("a", 10, due);
    w.word("a", 20, SettleOp::Drop);
    assert_eq!(w.word("a", 15, EVENT), Fired, "it was proven in the end");
}

#[test]
fn a_debt_ahead_of_the_time_counts_as_none() {
    let mut w = Watched::new();
    let (fired, now) = (w.stage.partition.fired(), w.stage.wire.now_ms() * 1_000);
    let owe = |w: &mut Watched, position: u64| {
        w.stage.wire.call(&[b"ZADD".as_slice(), &fired, position.to_string().as_bytes(), b"?0:a"]).unwrap();
    };
    owe(&mut w, now + 10_000_000);
    assert_eq!(w.word("a", 10, EVENT), Fired);
    owe(&mut w, now + 900_000);
    assert_eq!(w.word("a", 11, EVENT), Paid);
}

#[test]
fn what_the_last_look_captured_goes_out_without_proof_too() {
    let mut w = Watched::new();
    let due = w.past();
    let capture = SettleOp::Look { found: Due(due), removal: false, captured: Some(value("v")) };
    w.word("a", 10, capture);
    assert_eq!(w.word("a", 20, SettleOp::Unproven(SettlePayload::Last)), Unproven);
    assert_eq!((w.field("payload"), w.field("proof")), (Some("v".into()), Some("none".into())));
    let last = w.stage.partition.last();
    assert!(w.stage.wire.hgetall(last).unwrap().is_empty());
}
