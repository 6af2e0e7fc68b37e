//! Looks are applied in the order of their positions, whoever made them and whenever they arrive (section 5).

use bytes::Bytes;
use overdue_protocol::call::SettleOp;
use overdue_protocol::call::SettledWord::{Fired, Gone, Ok, Stale, Wait};
use overdue_protocol::call::Sight::{self, Due, Forever};
use overdue_protocol::watch::{Captured, Found};
use overdue_tests::Stage;

use crate::watched::{EVENT, Watched, key, look, removal, value};

#[test]
fn a_look_counts_only_when_it_is_later_than_the_last() {
    let mut w = Watched::new();
    let due = w.later();
    w.track("a", 10, due);
    for late in [9, 10] {
        for op in [look(Due(due + 5)), look(Forever), removal(Sight::Gone), removal(Due(due + 5))] {
            assert_eq!(w.one("a", late, op), (Stale, due));
        }
    }
    assert_eq!(w.watched(), [("0:a".into(), due)]);
    w.track("a", 11, due - 7);
    assert_eq!(w.watched(), [("0:a".into(), due - 7)]);
    assert_eq!(w.looked("a"), Some(11));
}

#[test]
fn a_key_without_a_ttl_is_left_and_one_that_is_gone_waits_for_its_event() {
    let mut w = Watched::new();
    let due = w.later();
    w.track("a", 10, due);
    assert_eq!(w.one("a", 11, look(Sight::Gone)), (Wait, due));
    assert_eq!(
        (w.watched().len(), w.looked("a")),
        (1, Some(10)),
        "no touch of a key that is gone says why it is"
    );
    assert_eq!(w.one("a", 12, look(Forever)), (Ok, 0));
    assert!(w.watched().is_empty());
    assert_eq!(w.word("a", 13, look(Sight::Gone)), Gone);
    assert_eq!(w.looked("a"), Some(12));
    assert!(w.stage.entries().is_empty());
}

#[test]
fn a_removal_is_a_look_that_no_earlier_one_undoes() {
    let mut w = Watched::new();
    let due = w.later();
    w.track("a", 10, due);
    assert_eq!(w.one("a", 12, removal(Sight::Gone)), (Ok, 0));
    assert_eq!(w.word("a", 11, look(Due(due))), Stale, "it was seen before it was deleted");
    // One that was never in the index too: the slower relay must not bring it back.
    assert_eq!(w.word("b", 12, removal(Sight::Gone)), Gone);
    assert_eq!(w.word("b", 11, look(Due(due))), Stale);
    assert!(w.watched().is_empty());
    // Deleted and written again before the touch: it is alive.
    assert_eq!(w.word("a", 13, removal(Due(due))), Ok);
    assert_eq!(w.watched().len(), 1);
}

#[test]
fn one_call_applies_the_items_of_a_key_in_their_order() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    let items = vec![
        w.item(key("a"), 10, look(Due(past))),
        w.item(key("a"), 11, EVENT),
        w.item(key("a"), 12, look(Due(later))),
        w.item(key("a"), 12, look(Due(past))),
        w.item(key("b"), 20, look(Due(later))),
        w.item(key("b"), 21, removal(Sight::Gone)),
    ];
    assert_eq!(w.settle(items), [Ok, Fired, Ok, Stale, Ok, Ok]);
    assert_eq!(w.watched(), [("0:a".into(), later)]);
    assert_eq!(w.field("due"), Some(past.to_string()));
    assert_eq!((w.looked("a"), w.looked("b")), (Some(12), Some(21)));
}

#[test]
fn a_look_ahead_of_the_time_counts_as_none() {
    let mut w = Watched::new();
    let due = w.later();
    w.track("a", 10, due);
    let (looked, now) = (w.stage.partition.looked(), w.stage.wire.now_ms() * 1_000);
    let set = |w: &mut Watched, position: u64| {
        w.stage.wire.call(&[b"ZADD".as_slice(), &looked, position.to_string().as_bytes(), b"0:a"]).unwrap();
    };
    set(&mut w, now + 10_000_000);
    assert_eq!(
        w.word("a", 11, look(Due(due - 1))),
        Ok,
        "of a clock that was wrong: it would stop this key for ever"
    );
    set(&mut w, now + 900_000);
    assert_eq!(w.word("a", 12, look(Due(due - 2))), Stale, "clocks may differ a little");
}

fn captures(due: u64, captured: Option<Captured>) -> SettleOp {
    SettleOp::Look { found: Due(due), removal: false, captured }
}

#[test]
fn a_captured_value_is_replaced_by_the_next_look_and_goes_with_the_key() {
    let mut w = Watched::new();
    let due = w.later();
    let last = w.stage.partition.last();
    let kept = |w: &mut Watched| w.stage.wire.hgetall(&last).unwrap().remove(&b"0:a"[..]);
    assert_eq!(w.word("a", 1, captures(due, Some(value("one")))), Ok);
    assert_eq!(kept(&mut w), Some(value("one").pack()));
    assert_eq!(w.word("a", 0, captures(due, Some(value("late")))), Stale);
    assert_eq!(w.word("a", 2, captures(due, Some(Captured::of(Found::OtherType, 5)))), Ok);
    assert_eq!(kept(&mut w), Some(Captured::of(Found::OtherType, 5).pack()));
    assert_eq!(w.word("a", 3, look(Sight::Gone)), Wait);
    assert!(kept(&mut w).is_some());
    for (n, op) in [look(Due(due)), look(Forever), removal(Sight::Gone), EVENT].into_iter().enumerate() {
        let n = 10 * (n as u64 + 1);
        w.word("a", n, captures(due, Some(value("again"))));
        assert!(kept(&mut w).is_some());
        w.word("a", n + 1, op);
        assert_eq!(kept(&mut w), None);
    }
}

#[test]
fn what_is_first_to_come_and_due_within_two_seconds_wakes_once_a_call() {
    let mut w = Watched::new();
    let mut ear = crate::wake_messages::Ear::open(&w.stage);
    let (past, now) = (w.past(), w.stage.wire.now_ms());
    let far = w.item(key("far"), 1, look(Due(now + 60_000)));
    w.settle(vec![w.item(key("waits"), 1, look(Due(past))), far]);
    assert!(ear.heard(&mut w.stage).is_empty());
    let near = [1_500, 1_200].map(|ms| w.item(key(ms.to_string()), 2, look(Due(now + ms))));
    w.settle(near.to_vec());
    assert_eq!(
        ear.heard(&mut w.stage),
        [(now + 1_200).to_string()],
        "though one that waits for proof is before it"
    );
    w.track("behind", 3, now + 1_900);
    w.word("1200", 4, removal(Sight::Gone));
    assert!(ear.heard(&mut w.stage).is_empty());
}

#[test]
fn foreign_members_scores_and_positions_stop_nobody() {
    let mut w = Watched::new();
    let (due, partition) = (w.later(), w.stage.partition.clone());
    let mut add = |key: Bytes, score: &str, member: &[u8]| {
        w.stage.wire.call(&[b"ZADD".as_slice(), &key, score.as_bytes(), member]).unwrap();
    };
    for (n, score) in ["-inf", "inf", "1.5", "-9", "1e300"].into_iter().enumerate() {
        let member = format!("0:{n}").into_bytes();
        add(partition.watched(), score, &member);
        add(partition.looked(), score, &member);
    }
    add(partition.watched(), "5", b"no key");
    w.stage.wire.call(&[b"HSET".as_slice(), &partition.tally(), b"horizon", b"nan?"]).unwrap();
    for n in 0..5 {
        assert_eq!(w.word(&n.to_string(), 5, EVENT), Fired);
        let due: u64 = w.field("due").unwrap().parse().unwrap();
        assert!((1..=w.stage.wire.now_ms()).contains(&due), "{due}");
        w.track(&n.to_string(), 6, due + 1);
    }
    w.track("good", 5, due);
}

#[test]
fn at_maxmemory_looks_and_expiries_go_on() {
    let mut w = Watched::new();
    assert_eq!(w.stage.join("billing"), overdue_protocol::call::Joined::Created);
    w.stage.wire.call(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let due = w.later();
    let items = (0..100).flat_map(|n: u64| {
        let name = key(n.to_string());
        [w.item(name.clone(), n, look(Due(due))), w.item(name, n + 1, EVENT)]
    });
    assert_eq!(w.settle(items.collect()).iter().filter(|word| **word == Fired).count(), 100);
    w.track("a", 1, due);
    let upto = w.forget(300, 1_000);
    assert_eq!((upto.removed, upto.more), (201, false));
    let touched = w.touch(&[b"none"], overdue_protocol::watch::Capture::NONE);
    assert_eq!(touched.seen, [overdue_protocol::watch::Seen::Gone]);
    w.stage.wire.call(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    w.stage.assert_balanced();
}

#[test]
fn names_may_hold_anything_and_be_64_kib_long_and_databases_are_apart() {
    let mut w = Watched::on(Stage::new());
    let due = w.past();
    let every_byte: Vec<u8> = (0..=255).cycle().take(65_536).collect();
    let names: Vec<Vec<u8>> = vec![
        b"a:b\r\n\0{}*[?".to_vec(),
        b"\xff".to_vec(),
        b":".to_vec(),
        b"?a".to_vec(),
        b"7/0:a".to_vec(),
        every_byte,
    ];
    let keys = names.iter().flat_map(|name| [0, 3].map(|db| (db, name.clone())));
    let keys: Vec<_> =
        keys.map(|(db, name)| overdue_protocol::watch::WatchedKey { db, key: name.into() }).collect();
    let looks = keys.iter().map(|key| w.item(key.clone(), 1, look(Due(due)))).collect();
    assert!(w.settle(looks).iter().all(|word| *word == Ok));
    assert_eq!(w.watched().len(), 2 * names.len());
    for db in [3, 0] {
        let events =
            keys.iter().filter(|key| key.db == db).map(|key| w.item(key.clone(), 2, EVENT)).collect();
        assert!(w.settle(events).iter().all(|word| *word == Fired));
        let fired: Vec<_> = w.stage.entries().iter().rev().take(names.len()).rev().cloned().collect();
        for (entry, name) in fired.iter().zip(&names) {
            assert!(entry.field("id").unwrap() == name, "{:?}", name.len());
            assert_eq!(entry.field("db").unwrap(), &db.to_string());
            assert_eq!(entry.field("due").unwrap(), &due.to_string());
        }
    }
    assert!(w.watched().is_empty());
}
