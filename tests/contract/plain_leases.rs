//! What a plain consumer read and did not acknowledge within its lease comes back, and is dead after its attempts.

use overdue_protocol::call::{Reclaim, Reclaimed, ScheduleItem};
use overdue_protocol::record::pack_extras;
use overdue_protocol::{Entry, RawEntry};
use overdue_tests::Stage;
use overdue_tests::stage::past;

use crate::plain_books::plain;
use crate::wake_messages::Ear;

#[test]
fn what_is_within_its_lease_stays() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.deliver("php", "a", &["one", "two"]);
    let before = stage.snapshot();
    let call = Reclaim { lease_ms: 3_600_000, ..stage.to_reclaim("php") };
    assert_eq!(stage.wire.run(&call).unwrap(), Reclaimed { retried: 0, buried: 0, more: false });
    assert_eq!(stage.snapshot(), before);
    let read_at = stage.wire.now_ms();
    stage.pass(read_at + 60);
    let call = Reclaim { lease_ms: 50, ..stage.to_reclaim("php") };
    assert_eq!(stage.wire.run(&call).unwrap().retried, 2);
    assert!(stage.entries().is_empty());
    stage.assert_balanced();
}

#[test]
fn each_attempt_waits_longer_and_behind_the_last_it_is_dead() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    let extras = pack_extras(&[("enc", b"json"), ("trace", b"00-ab")]);
    stage.arm_one(ScheduleItem { extras, ..past("poison\0 one") });
    stage.sweep();
    let first = stage.read("php", "ann\0e").remove(0);
    let call = Reclaim { first_ms: 40, most_ms: 100, attempts: 4, ..stage.to_reclaim("php") };
    let mut entry = first.clone();
    for (attempt, wait) in [(1, 40), (2, 80), (3, 100)] {
        assert_eq!(Entry::decode(&entry).unwrap().attempt, attempt);
        let before = stage.wire.now_ms();
        assert_eq!(stage.wire.run(&call).unwrap(), Reclaimed { retried: 1, buried: 0, more: false });
        let after = stage.wire.now_ms();
        let not_before = stage.retries()[0].1;
        assert!((before + wait..=after + wait).contains(&not_before), "attempt {attempt}");
        stage.assert_balanced();
        stage.pass(not_before);
        assert_eq!(stage.sweep_retries().fired, 1);
        entry = stage.read("php", "ann\0e").remove(0);
        for kept in ["id", "gen", "due", "payload", "enc", "trace", "src", "kind"] {
            assert_eq!(entry.field(kept), first.field(kept), "{kept}");
        }
        assert_eq!(entry.field("group").unwrap(), "php");
    }
    assert_eq!(stage.wire.run(&call).unwrap(), Reclaimed { retried: 0, buried: 1, more: false });
    let letter = stage.dead().remove(0);
    let by_hand = [
        ("group", "php"),
        ("reason", "attempts"),
        ("by", "ann\0e"),
        ("attempt", "4"),
        ("id", "poison\0 one"),
    ];
    for (field, value) in by_hand {
        assert_eq!(letter.field(field).unwrap(), value, "{field}");
    }
    assert_eq!(letter.field("detail").unwrap(), "its holder ann\0e did not acknowledge it within 0 ms");
    assert_eq!((stage.entries().len(), stage.retries().len()), (0, 0));
    stage.assert_balanced();
}

#[test]
fn waits_spread_by_the_share_that_the_caller_chose_and_wake_who_is_near() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.deliver("php", "a", &["one"]);
    let mut ear = Ear::open(&stage);
    let before = stage.wire.now_ms();
    let call = Reclaim { first_ms: 1001, most_ms: 1001, chance: 0.5, ..stage.to_reclaim("php") };
    stage.wire.run(&call).unwrap();
    let after = stage.wire.now_ms();
    let not_before = stage.retries()[0].1;
    assert!((before + 500..=after + 500).contains(&not_before));
    assert_eq!(ear.heard(&mut stage), [not_before.to_string()]);
    // A wait that no number can hold is the longest one.
    let by = stage.by("php", "b");
    stage.deliver("php", "b", &["two"]);
    let entry = stage.entries()[0].id;
    stage.release(by, &[entry]);
    let member = stage.retries()[0].0.clone();
    assert!(member.starts_with(b"php/two/"));
    stage.sweep_retries();
    stage.read("php", "c");
    let call = Reclaim { first_ms: u64::MAX / 2, most_ms: u64::MAX / 2, ..stage.to_reclaim("php") };
    assert_eq!(stage.wire.run(&call).unwrap().retried, 1);
    assert_eq!(stage.retries().last().unwrap().1, overdue_protocol::Due::MAX_MS);
    stage.assert_balanced();
}

#[test]
fn pages_end_at_their_limit_or_one_mebibyte_and_say_that_there_is_more() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    for n in 0..5 {
        stage.arm_one(ScheduleItem { payload: vec![0; 700_000].into(), ..past(n.to_string()) });
    }
    while stage.sweep().more {}
    stage.read("php", "a");
    let page = |stage: &mut Stage| {
        let done = stage.reclaim("php");
        stage.assert_balanced();
        (done.retried, done.more)
    };
    assert_eq!([page(&mut stage), page(&mut stage), page(&mut stage)], [(2, true), (2, true), (1, false)]);
    let names: Vec<_> = (0..5).map(|n| n.to_string()).collect();
    stage.wire.call(&["FLUSHALL"]).unwrap();
    plain(&mut stage, "php");
    stage.deliver("php", "a", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let call = Reclaim { limit: 3, ..stage.to_reclaim("php") };
    let mut page = || stage.wire.run(&call).unwrap();
    assert_eq!(page(), Reclaimed { retried: 3, buried: 0, more: true });
    assert_eq!(page(), Reclaimed { retried: 2, buried: 0, more: false });
}

fn xadd(stage: &mut Stage, fields: &[&str]) {
    let stream = stage.partition.stream();
    let head: [&[u8]; 3] = [b"XADD", &stream, b"*"];
    let args: Vec<&[u8]> = head.into_iter().chain(fields.iter().map(|field| field.as_bytes())).collect();
    stage.wire.call(&args).unwrap();
}

#[test]
fn what_is_none_of_ours_is_buried_what_is_deleted_acknowledged_what_is_anothers_passed_over() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.join("billing");
    let entries = stage.deliver("php", "a", &["deleted", "kept"]);
    let stream = stage.partition.stream();
    stage.wire.call(&[b"XDEL".as_slice(), &stream, &entries[0].to_bytes()]).unwrap();
    xadd(&mut stage, &["no", "id"]);
    xadd(&mut stage, &["id", "x", "gen", "nan"]);
    xadd(&mut stage, &["id", "x", "gen", "7", "group", "billing"]);
    let mut entries = stage.entries();
    stage.read("php", "a");
    assert_eq!(stage.reclaim("php"), Reclaimed { retried: 1, buried: 2, more: false });
    let reasons: Vec<_> = stage.dead().iter().map(|letter| letter.field("reason").unwrap().clone()).collect();
    assert_eq!(reasons, ["malformed", "malformed"]);
    assert!(stage.dead().iter().all(|letter| letter.field("detail").unwrap().starts_with(b"it has no id")));
    assert_eq!(stage.entries(), entries, "the other group has not finished them");
    // The only group deletes what it moves, but not what is addressed to another.
    stage.wire.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"billing"]).unwrap();
    xadd(&mut stage, &["id", "x", "gen", "8", "group", "billing"]);
    xadd(&mut stage, &["id", "y", "gen", "9", "attempt", "lots"]);
    entries = stage.entries();
    stage.read("php", "a");
    assert_eq!(stage.reclaim("php").retried, 1);
    assert_eq!(stage.entries(), entries[..entries.len() - 1]);
    let pending = stage.wire.call(&[b"XPENDING".as_slice(), &stream, b"php"]).unwrap().into_array().unwrap();
    assert_eq!(pending[0].as_u64(), Some(0));
}

#[test]
fn of_a_group_or_stream_that_is_gone_the_error_says_so_and_nothing_is_written() {
    let mut stage = Stage::new();
    stage.join("billing");
    let before = stage.snapshot();
    let error = stage.wire.eval(&stage.to_reclaim("php")).unwrap_err();
    assert!(error.contains("NOGROUP"), "{error}");
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn at_maxmemory_leases_run_out_all_the_same() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.deliver("php", "a", &["one", "two"]);
    stage.wire.call(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    assert_eq!(stage.reclaim("php").retried, 2);
    stage.wire.call(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    stage.assert_balanced();
}

#[test]
fn who_acknowledges_too_late_finishes_nothing_twice() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.join("billing");
    let entries = stage.deliver("php", "a", &["one"]);
    stage.reclaim("php");
    stage.xack("php", &entries); // it is not pending any more
    stage.assert_balanced();
    stage.sweep_retries();
    let again: Vec<RawEntry> = stage.read("php", "a");
    stage.xack("php", &[entries[0], again[0].id]);
    stage.assert_balanced();
    let all: Vec<_> = stage.read("billing", "b").iter().map(|entry| entry.id).collect();
    stage.complete("billing", vec![overdue_protocol::call::CompleteItem::Done(all[0])]);
    stage.complete("billing", vec![overdue_protocol::call::CompleteItem::Passed(all[1])]);
    assert_eq!((stage.trim().length, stage.tally("done:php"), stage.tally("done:billing")), (0, 1, 1));
    stage.assert_balanced();
}
