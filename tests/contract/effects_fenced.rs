//! Effects happen for who holds the lease, for nobody else, and in pages that hold the server shortly.

use overdue_protocol::call::{Applied, Apply, CompleteItem};
use overdue_tests::Stage;

use crate::effects::{get, hincr, hset, incr, sadd, set};

#[test]
fn who_lost_the_lease_writes_nothing_and_the_second_of_two_is_lost() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "a", &["one", "two"]);
    let (a, b) = (stage.by("billing", "a"), stage.by("billing", "b"));
    stage.claim(b.clone());
    let before = stage.snapshot();
    let n = stage.beside("n");
    let one = [incr(&n, 1)];
    for by in [a, stage.by("billing", "nobody")] {
        assert_eq!(stage.apply(by, entries[0], &one), Applied::Lost);
    }
    assert_eq!(stage.snapshot(), before);
    let call = stage.to_apply(b, &[(entries[0], &one), (entries[1], &one), (entries[0], &one)]);
    assert_eq!(stage.wire.run(&call).unwrap(), [Applied::Ok, Applied::Ok, Applied::Lost]);
    assert_eq!((get(&mut stage, &n).unwrap(), stage.tally("done:billing")), ("2".into(), 2));
    stage.assert_balanced();
}

#[test]
fn what_somebody_deleted_is_acknowledged_without_effects_and_a_group_that_is_gone_is_an_error() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["one", "two"]);
    let (stream, by, n) = (stage.partition.stream(), stage.by("billing", "c"), stage.beside("n"));
    stage.wire.call(&[b"XDEL".as_slice(), &stream, &entries[0].to_bytes()]).unwrap();
    assert_eq!(stage.apply(by.clone(), entries[0], &[incr(&n, 1)]), Applied::Gone);
    assert_eq!(stage.apply(by.clone(), entries[0], &[incr(&n, 1)]), Applied::Lost);
    assert_eq!((get(&mut stage, &n), stage.tally("done:billing")), (None, 0));
    stage.wire.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"billing"]).unwrap();
    let before = stage.snapshot();
    let one = [incr(&n, 1)];
    let call = stage.to_apply(by, &[(entries[1], &one)]);
    assert!(stage.wire.eval(&call).unwrap_err().contains("NOGROUP"));
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn of_two_groups_each_has_its_effects_and_the_entry_stays_until_both_are_done() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let (by, n) = (stage.by("billing", "c"), stage.beside("n"));
    assert_eq!(stage.apply(by.clone(), entries[0], &[incr(&n, 1)]), Applied::Ok);
    assert_eq!(stage.entries().len(), 2);
    stage.assert_balanced();
    // A retry is addressed to the group: with its acknowledgement it goes.
    stage.release(by.clone(), &entries[1..]);
    stage.sweep_retries();
    let retry = stage.read("billing", "c")[0].id;
    assert_eq!(stage.apply(by, retry, &[incr(&n, 1)]), Applied::Ok);
    assert!(stage.entries().iter().all(|entry| entry.id != retry));
    stage.read("mailing", "m");
    let m = stage.by("mailing", "m");
    assert_eq!(stage.apply(m, entries[0], &[incr(&n, 1)]), Applied::Ok);
    stage.complete("mailing", vec![CompleteItem::Done(entries[1]), CompleteItem::Passed(retry)]);
    assert_eq!((stage.trim().length, get(&mut stage, &n).unwrap()), (0, "3".into()));
    stage.assert_balanced();
}

#[test]
fn at_maxmemory_what_is_finished_goes_on_whole() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let (by, n, s) = (stage.by("billing", "c"), stage.beside("n"), stage.beside("s"));
    stage.wire.call(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    assert!(stage.wire.call(&[b"SET".as_slice(), &s, b"x"]).is_err());
    let (first, second) = ([incr(&n, 1), set(&s, "x")], [hset(&s, "f", "v")]);
    let call = stage.to_apply(by, &[(entries[0], &first), (entries[1], &second)]);
    let applied = stage.wire.run(&call).unwrap();
    assert!(matches!(&applied[..], [Applied::Ok, Applied::Refused(_)]), "{applied:?}");
    assert_eq!((get(&mut stage, &n).unwrap(), get(&mut stage, &s).unwrap()), ("1".into(), "x".into()));
    stage.wire.call(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    stage.assert_balanced();
}

#[test]
fn a_full_call_holds_the_server_shortly() {
    let mut stage = Stage::new();
    let names: Vec<_> = (0..250).map(|n| n.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    stage.assert_nothing_slow(|stage| {
        stage.join("billing");
        let entries = stage.deliver("billing", "c", &names);
        let (n, h) = (stage.beside("n"), stage.beside("h"));
        let effects = [incr(&n, 1), hincr(&h, "n", 1), hset(&h, "f", "v"), sadd(&stage.beside("s"), "m")];
        let items: Vec<_> = entries.iter().map(|entry| (*entry, &effects[..])).collect();
        let call = Apply { history: 100, ..stage.to_apply(stage.by("billing", "c"), &items) };
        assert_eq!(stage.wire.run(&call).unwrap(), vec![Applied::Ok; 250]);
        assert_eq!(get(stage, &n).unwrap(), "250");
    });
    stage.assert_balanced();
}
