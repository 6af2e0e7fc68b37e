//! `trim` deletes what every group has finished, in bounded steps, and never what one of them still needs.

use overdue_protocol::call::CompleteItem::Done;
use overdue_protocol::call::{Trim, Trimmed};
use overdue_protocol::entry::EntryId;
use overdue_tests::Stage;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

fn deliver(stage: &mut Stage, count: usize) -> Vec<EntryId> {
    let names = names(count);
    for some in names.chunks(500) {
        stage.deliver_none(&some.iter().map(String::as_str).collect::<Vec<_>>());
    }
    stage.entries().iter().map(|entry| entry.id).collect()
}

fn ids(stage: &mut Stage) -> Vec<EntryId> {
    stage.entries().iter().map(|entry| entry.id).collect()
}

#[test]
fn without_a_stream_or_a_group_nothing_is_deleted() {
    let mut stage = Stage::new();
    assert_eq!(stage.trim(), Trimmed { deleted: 0, length: 0, more: false, dead_deleted: 0 });
    deliver(&mut stage, 3);
    assert_eq!((stage.trim().deleted, stage.entries().len()), (0, 3));
}

#[test]
fn one_group_that_only_acknowledges() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = deliver(&mut stage, 250);
    assert_eq!(stage.trim().deleted, 0);
    stage.read_some("billing", "c", 200);
    assert_eq!(stage.trim().deleted, 0);
    stage.xack("billing", &entries[..150]);
    assert_eq!((stage.trim().deleted, ids(&mut stage)), (150, entries[150..].to_vec()));
    stage.xack("billing", &entries[150..200]);
    assert_eq!((stage.trim().deleted, ids(&mut stage)), (50, entries[200..].to_vec()));
}

#[test]
fn the_slow_group_of_two_keeps_what_it_has_not_finished() {
    let mut stage = Stage::new();
    stage.join("fast");
    stage.join("slow");
    let entries = deliver(&mut stage, 300);
    stage.read("fast", "f");
    let done = entries.iter().copied().map(Done).collect();
    stage.complete("fast", done);
    assert_eq!(stage.trim().deleted, 0);
    stage.read_some("slow", "s", 100);
    stage.xack("slow", &entries[..40]);
    assert_eq!((stage.trim().deleted, ids(&mut stage)), (40, entries[40..].to_vec()));
    stage.wire.call(&[b"HINCRBY".as_slice(), &stage.partition.tally(), b"done:slow", b"40"]).unwrap();
    stage.assert_balanced();
}

#[test]
fn behind_an_old_pending_entry_the_finished_ones_go_all_the_same() {
    let mut stage = Stage::new();
    stage.join("one");
    stage.join("two");
    let entries = deliver(&mut stage, 900);
    stage.read("one", "o");
    stage.read_some("two", "t", 800);
    // Both hold the first.
    let one_holds = |n: usize| n.is_multiple_of(50);
    let two_holds = |n: usize| n.is_multiple_of(70) || n >= 800;
    let acks = |by: &dyn Fn(usize) -> bool| -> Vec<EntryId> {
        entries.iter().enumerate().filter(|(n, _)| !by(*n)).map(|(_, id)| *id).collect()
    };
    stage.xack("one", &acks(&one_holds));
    stage.xack("two", &acks(&two_holds));
    let left: Vec<_> = entries
        .iter()
        .enumerate()
        .filter(|(n, _)| one_holds(*n) || two_holds(*n))
        .map(|(_, id)| *id)
        .collect();
    assert_eq!(stage.trim().deleted as usize, 900 - left.len());
    assert_eq!(ids(&mut stage), left);
    assert_eq!(stage.trim().deleted, 0);
}

#[test]
fn pending_entries_that_somebody_deleted_hide_no_pending_one() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = deliver(&mut stage, 300);
    stage.read("billing", "c");
    // The first is pending, then 250 pending ones that are deleted, then the last ones: pending, finished, pending.
    let stream = stage.partition.stream();
    for entry in &entries[1..251] {
        stage.wire.call(&[b"XDEL".as_slice(), &stream, &entry.to_bytes()]).unwrap();
    }
    stage.xack("billing", &entries[260..270]);
    assert_eq!(stage.trim().deleted, 10);
    let left: Vec<_> = [&entries[..1], &entries[251..260], &entries[270..]].concat();
    assert_eq!(ids(&mut stage), left);
}

#[test]
fn a_huge_backlog_goes_in_steps() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = deliver(&mut stage, 25_000);
    while !stage.read("billing", "c").is_empty() {}
    stage.xack("billing", &entries[..24_990]);
    let mut steps = vec![];
    loop {
        let trimmed = stage.trim();
        steps.push(trimmed.deleted);
        if !trimmed.more {
            break;
        }
    }
    assert!(steps.len() >= 3 && steps.iter().all(|step| *step <= 10_100), "{steps:?}");
    assert_eq!(ids(&mut stage), entries[24_990..]);
}

#[test]
fn dead_letters_are_kept_within_their_bounds_in_steps() {
    let mut stage = Stage::new();
    let dead = stage.partition.dead();
    let now = stage.wire.now_ms();
    let letters = |stage: &mut Stage, ms: u64, count: u64| {
        for n in 0..count {
            let entry = EntryId { ms, seq: n }.to_bytes();
            stage.wire.call(&[b"XADD".as_slice(), &dead, &entry, b"id", b"x"]).unwrap();
        }
    };
    letters(&mut stage, now - 7_200_000, 2500);
    letters(&mut stage, now, 100);
    let bounded =
        |dead_max, dead_max_age_ms| Trim { partition: stage.partition.clone(), dead_max, dead_max_age_ms };
    let (by_age, by_count) = (bounded(100_000, 3_600_000), bounded(30, 1 << 50));
    let mut steps = vec![];
    while steps.iter().sum::<u64>() < 2500 {
        steps.push(stage.wire.run(&by_age).unwrap().dead_deleted);
    }
    assert!(steps.len() >= 3 && steps.iter().all(|step| *step <= 1100), "{steps:?}");
    assert_eq!(stage.wire.run(&by_age).unwrap().dead_deleted, 0);
    assert_eq!(stage.wire.run(&by_count).unwrap().dead_deleted, 70);
    assert_eq!((stage.dead().len(), stage.tally("dead_trimmed")), (30, 2570));
}

#[test]
fn the_last_entry_id_there_can_be_stops_nobody() {
    let mut stage = Stage::new();
    let stream = stage.partition.stream();
    let last = b"18446744073709551615-18446744073709551615";
    stage.wire.call(&[b"XADD".as_slice(), &stream, last, b"id", b"x"]).unwrap();
    stage.join("billing");
    stage.read("billing", "c");
    stage.wire.call(&[b"XACK".as_slice(), &stream, b"billing", last]).unwrap();
    assert_eq!(stage.trim().length, 0);
    // Nothing can be added to such a stream: all stays where it is.
    stage.arm(vec![overdue_tests::stage::past("a")]);
    assert!(stage.wire.run(&stage.to_sweep()).is_err());
    assert_eq!(stage.index().len(), 1);
}
