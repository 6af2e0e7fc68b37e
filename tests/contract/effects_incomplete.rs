//! An effect that fails although all was checked: what stood before it is done, the timeout is dead, never repeated.

use bytes::Bytes;
use overdue_protocol::call::{Applied, Apply, Replayed};
use overdue_protocol::entry::EntryId;
use overdue_tests::Stage;

use crate::effects::{get, incr, sadd, xadd};

/// A stream that takes no entry any more: no check can see it.
fn full(stage: &mut Stage, name: &str) -> Bytes {
    let key = stage.beside(name);
    let last = b"18446744073709551615-18446744073709551615";
    stage.wire.call(&[b"XADD".as_slice(), &key, last, b"f", b"v"]).unwrap();
    key
}

#[test]
fn the_rest_is_skipped_and_the_dead_letter_names_the_index_and_the_error() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let (x, n, s) = (full(&mut stage, "x"), stage.beside("n"), stage.beside("s"));
    let (bad, good) = ([incr(&n, 1), xadd(&x, 1), sadd(&s, "m"), incr(&n, 1)], [incr(&n, 10)]);
    let by = stage.by("billing", "c");
    let call = Apply { history: 9, ..stage.to_apply(by.clone(), &[(entries[0], &bad), (entries[1], &good)]) };
    let applied = stage.wire.run(&call).unwrap();
    let [Applied::Incomplete(why), Applied::Ok] = &applied[..] else { panic!("{applied:?}") };
    assert!(why.starts_with("effect 2, XADD {orders:0}x: ") && why.contains("ID"), "{why}");
    assert_eq!(get(&mut stage, &n).unwrap(), "11");
    assert_eq!(stage.wire.call(&[b"EXISTS".as_slice(), &s]).unwrap().as_u64(), Some(0));
    let letter = stage.dead().remove(0);
    for (field, value) in [("reason", "effects_incomplete"), ("group", "billing"), ("by", "c"), ("id", "a")] {
        assert_eq!(letter.field(field).unwrap(), value);
    }
    assert_eq!(letter.field("detail").unwrap(), why);
    assert_eq!(letter.field("entry").unwrap(), &entries[0].to_bytes());
    assert_eq!((stage.entries().len(), stage.dead().len()), (0, 1));
    assert_eq!((stage.tally("buried:billing"), stage.tally("done:billing")), (1, 1));
    let history = stage.wire.xrange(stage.partition.history()).unwrap();
    assert_eq!((history.len(), history[0].field("id").unwrap()), (1, &"b".into()));
    stage.assert_balanced();
    // Never again, but by hand.
    assert_eq!(stage.apply(by, entries[0], &bad), Applied::Lost);
    assert_eq!(get(&mut stage, &n).unwrap(), "11");
    let replay =
        overdue_protocol::call::Replay { partition: stage.partition.clone(), letters: vec![letter.id] };
    assert_eq!(stage.wire.run(&replay).unwrap(), [Replayed::Ok]);
    stage.assert_balanced();
}

#[test]
fn dead_letters_that_take_no_entry_are_a_side_error_and_nothing_else_fails() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let (x, n) = (full(&mut stage, "x"), stage.beside("n"));
    let (dead, last) = (stage.partition.dead(), EntryId { ms: u64::MAX, seq: u64::MAX }.to_bytes());
    stage.wire.call(&[b"XADD".as_slice(), &dead, &last, b"f", b"v"]).unwrap();
    let (bad, good) = ([xadd(&x, 1)], [incr(&n, 1)]);
    let call = stage.to_apply(stage.by("billing", "c"), &[(entries[0], &bad), (entries[1], &good)]);
    let reply = stage.wire.eval(&call).unwrap();
    let side = overdue_protocol::Call::side_error(&call, &reply).unwrap();
    assert!(side.contains("ID"), "{side}");
    let applied = overdue_protocol::Call::answer(&call, reply).unwrap();
    assert!(matches!(&applied[..], [Applied::Incomplete(_), Applied::Ok]), "{applied:?}");
    assert_eq!(get(&mut stage, &n).unwrap(), "1");
    // It is said, and the books show it: a timeout is missing.
    let books = overdue_tests::books::Books::read(&stage.redis, 0, &stage.partition);
    assert_eq!(books.faults().iter().map(|line| line.difference()).collect::<Vec<_>>(), [1]);
}
