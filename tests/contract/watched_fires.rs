//! An expiry has one name, and fires once by it, whoever tells of it and how often (section 5).

use bytes::Bytes;
use overdue_protocol::call::SettledWord::{Dup, Fired, More, Ok, Stale};
use overdue_protocol::call::Sight::{self, Due};
use overdue_protocol::call::{SettleItem, SettleOp, SettlePayload};
use overdue_protocol::watch::{Captured, Found};

use crate::watched::{EVENT, PROOF, Watched, key, look, value};

fn captures(due: u64, captured: Captured) -> SettleOp {
    SettleOp::Look { found: Due(due), removal: false, captured: Some(captured) }
}

/// The last entry, all of its fields but the time of firing.
fn fields(w: &mut Watched) -> Vec<(String, String)> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let entry = w.last_entry();
    let all = entry.fields.iter().map(|(name, value)| (text(name), text(value)));
    all.filter(|(name, _)| name != "fired").collect()
}

#[test]
fn the_entry_says_all_that_is_known_in_this_order() {
    let mut w = Watched::new();
    let (due, name) = (w.past(), w.at(20).to_string());
    w.track("session:42", 10, due);
    assert_eq!(w.one("session:42", 20, EVENT), (Fired, due));
    let due = due.to_string();
    let expected = [
        ("id", "session:42"),
        ("gen", &name),
        ("due", &due),
        ("src", "notification"),
        ("kind", "key"),
        ("payload", ""),
        ("rule", "sessions"),
        ("db", "0"),
        ("proof", "event"),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(fields(&mut w), expected);
    let fired: u64 = w.field("fired").unwrap().parse().unwrap();
    assert!(fired.abs_diff(w.stage.wire.now_ms()) < 5_000);
    assert!(w.watched().is_empty());
    assert_eq!((w.looked("session:42"), w.names()), (Some(20), vec![format!("{name}/0:session:42")]));
}

#[test]
fn an_expiry_fires_once_by_event_and_proof_in_either_order() {
    let mut w = Watched::new();
    let due = w.past();
    for (name, first, second) in [("a", EVENT, PROOF), ("b", PROOF, EVENT)] {
        w.track(name, 10, due);
        assert_eq!(w.word(name, 20, first), Fired);
        assert_eq!(w.one(name, 20, second), (Dup, 0));
    }
    let proofs: Vec<_> =
        w.stage.entries().iter().map(|entry| entry.field("proof").unwrap().clone()).collect();
    assert_eq!(proofs, ["event", "nudge"]);
    assert_eq!(w.field("src").unwrap(), "index");
    let both = vec![w.item(key("c"), 5, EVENT), w.item(key("c"), 5, PROOF), w.item(key("c"), 6, EVENT)];
    assert_eq!(w.settle(both), [Fired, Dup, Fired], "within one call too; another name is another expiry");
    assert_eq!(w.stage.tally("watched_fired"), 4);
}

#[test]
fn a_key_that_is_not_tracked_fires_alike_and_one_that_lives_again_stays() {
    let mut w = Watched::new();
    let later = w.later();
    let (word, due) = w.one("unknown", 10, EVENT);
    assert_eq!((word, w.looked("unknown")), (Fired, Some(10)));
    assert!(due.abs_diff(w.stage.wire.now_ms()) < 5_000, "its due is not known: now");
    // The event of its first life comes when the index knows of its second.
    w.track("again", 30, later);
    assert_eq!(w.word("again", 20, EVENT), Fired);
    assert_eq!((w.watched(), w.looked("again")), (vec![("0:again".into(), later)], Some(30)));
    assert!(w.field("due").unwrap().parse::<u64>().unwrap() < later);
    assert_eq!(w.word("again", 25, look(Due(later))), Stale);
    // A look that is later than the expiry, though it was made before its event was heard.
    assert_eq!(w.word("unknown", 11, look(Due(later))), Ok);
}

#[test]
fn a_key_that_ended_before_its_known_due_was_not_early() {
    let mut w = Watched::new();
    let later = w.later();
    w.track("shortened", 10, later);
    assert_eq!(w.word("shortened", 20, EVENT), Fired);
    let of = |w: &mut Watched, name: &str| w.field(name).unwrap().parse::<u64>().unwrap();
    assert!(of(&mut w, "due") <= of(&mut w, "fired"));
    w.track("evicted", 10, later);
    assert_eq!(w.word("evicted", 20, SettleOp::Evicted(SettlePayload::None)), Fired);
    assert_eq!(of(&mut w, "due"), later, "it would have ended then");
    let text = |w: &mut Watched, name: &str| w.field(name).unwrap();
    assert_eq!((text(&mut w, "cause"), text(&mut w, "proof")), ("evicted".into(), "event".into()));
    assert_eq!(text(&mut w, "src"), "notification");
    assert_eq!(w.word("evicted", 20, EVENT), Dup, "n counts both alike");
    assert!(w.watched().is_empty());
}

#[test]
fn the_last_look_is_the_payload_if_it_was_of_this_life() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    let last = || SettleOp::Event(SettlePayload::Last);
    let got = |w: &mut Watched| ["payload", "enc", "captured_ms", "flaw"].map(|name| w.field(name));
    let is = |fields: [Option<&str>; 4]| fields.map(|field| field.map(str::to_owned));
    let none = is([Some(""), None, None, Some("no_value")]);
    let hash = Found::Hash(vec![(Bytes::from("f"), Bytes::from("v"))]);
    let cases = [
        (value("hello"), is([Some("hello"), Some("raw"), Some("77"), None])),
        (value(""), is([Some(""), Some("raw"), Some("77"), None])),
        (Captured::of(hash, 78), is([Some("{\"f\":\"v\"}"), Some("json"), Some("78"), None])),
        (Captured::of(Found::Large(9), 79), is([Some(""), None, Some("79"), Some("value_too_large")])),
        (Captured::of(Found::OtherType, 0), is([Some(""), None, None, Some("value_type")])),
    ];
    for (n, (captured, expected)) in cases.into_iter().enumerate() {
        let name = n.to_string();
        w.word(&name, 10, captures(past, captured));
        assert_eq!(w.word(&name, 20, last()), Fired);
        assert_eq!(got(&mut w), expected);
    }
    w.track("never read", 10, past);
    w.word("never read", 20, last());
    assert_eq!(got(&mut w), none);
    w.word("unknown", 20, last());
    assert_eq!(got(&mut w), none);
    // The value of the next life is not that of the life that ended, and is kept for its own end.
    w.word("again", 30, captures(later, value("second")));
    w.word("again", 20, last());
    assert_eq!(got(&mut w), none);
    w.word("again", 40, last());
    assert_eq!(got(&mut w)[0].as_deref(), Some("second"));
    // Within one call.
    let items = vec![w.item(key("one"), 1, captures(past, value("x"))), w.item(key("one"), 2, last())];
    w.settle(items);
    assert_eq!(got(&mut w)[0].as_deref(), Some("x"));
    // What somebody else wrote there.
    for bad in [&b"\xc1"[..], b"\x07", b"\x94\x01\x02\x03\x04", b""] {
        w.track("bad", 50, past);
        let field = w.stage.partition.last();
        w.stage.wire.call(&[b"HSET".as_slice(), &field, b"0:bad", bad]).unwrap();
        assert_eq!(w.word("bad", 60, last()), Fired);
        assert_eq!(got(&mut w), none);
        w.stage.wire.call(&["FLUSHALL"]).unwrap();
    }
}

#[test]
fn a_given_payload_goes_out_as_it_is_binary_or_large() {
    let mut w = Watched::new();
    let large: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let ops = [SettleOp::Proof, SettleOp::Unproven];
    for (n, payload) in [Bytes::from(large), Bytes::from_static(b"\xff\0")].into_iter().enumerate() {
        let (name, due) = (n.to_string(), w.past());
        w.track(&name, 1, due);
        w.word(&name, 2, ops[n](SettlePayload::Given(value(payload.clone()))));
        assert!(w.last_entry().field("payload") == Some(&payload));
    }
    assert_eq!((w.field("proof"), w.field("captured_ms")), (Some("none".into()), Some("77".into())));
    let missing = SettlePayload::Given(Captured::of(Found::Missing, 0));
    assert_eq!(w.word("b", 1, SettleOp::Evicted(missing)), Fired);
    assert_eq!((w.field("flaw"), w.field("cause")), (Some("no_value".into()), Some("evicted".into())));
}

#[test]
fn captured_values_come_in_pages_of_1_mib_and_what_follows_a_key_waits_for_it() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    for n in 0..6 {
        w.word(&n.to_string(), 10, captures(past, value(vec![b'x'; 400_000])));
    }
    let last = |w: &Watched, n: usize| w.item(key(n.to_string()), 20, SettleOp::Event(SettlePayload::Last));
    let mut items: Vec<SettleItem> = (0..6).map(|n| last(&w, n)).collect();
    items.insert(3, w.item(key("2"), 30, look(Due(later))));
    items.push(w.item(key("none"), 20, EVENT));
    let mut calls = vec![];
    while !items.is_empty() {
        let words = w.settle(items.clone());
        let left = items.into_iter().zip(&words).filter(|(_, word)| **word == More);
        items = left.map(|(item, _)| item).collect();
        calls.push(words);
    }
    assert_eq!(calls[0], [Fired, Fired, More, More, More, More, More, Fired]);
    assert_eq!(calls[1], [Fired, Ok, Fired, More, More]);
    assert_eq!(calls.len(), 3);
    let sizes: Vec<_> = w.stage.entries().iter().map(|entry| entry.field("payload").unwrap().len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 6 * 400_000);
    assert_eq!(w.watched(), [("0:2".into(), later)]);
}

#[test]
fn a_call_of_which_nobody_knows_the_outcome_may_be_sent_again() {
    use rand::RngExt;
    let mut w = Watched::new();
    w.stage.join("billing");
    let mut rng = rand::rng();
    let (past, later) = (w.past(), w.later());
    for round in 0..200 {
        let mut items: Vec<_> = (0..40)
            .map(|_| {
                let op = match rng.random_range(0..10) {
                    0 => EVENT,
                    1 => SettleOp::Event(SettlePayload::Last),
                    2 => SettleOp::Evicted(SettlePayload::Last),
                    3 => PROOF,
                    4 => SettleOp::Unproven(SettlePayload::Last),
                    5 => SettleOp::Drop,
                    6 => look(Sight::Gone),
                    7 => crate::watched::removal(Sight::Gone),
                    8 => captures(past, value("v")),
                    _ => look(Due(if rng.random() { past } else { later })),
                };
                w.item(key(rng.random_range(0..8u8).to_string()), round * 30 + rng.random_range(0..30), op)
            })
            .collect();
        items.sort_by_key(|item| item.position);
        w.settle(items.clone());
        let before = w.stage.snapshot();
        let again = w.settle(items);
        assert!(again.iter().all(|word| !word.is_fired()), "{again:?}");
        assert_eq!(w.stage.snapshot(), before);
    }
    w.stage.assert_balanced();
    let read = w.stage.entries();
    assert_eq!(read.len() as i64, w.stage.tally("watched_fired"));
    let names: std::collections::BTreeSet<_> =
        read.iter().map(|entry| (entry.field("id"), entry.field("gen"))).collect();
    assert_eq!(names.len(), read.len());
}
