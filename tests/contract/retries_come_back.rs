//! The retry index: swept like the index, addressed to its group, and never to nobody.

use overdue_protocol::Entry;
use overdue_protocol::call::{Drop, Joined, Words};
use overdue_tests::Stage;
use overdue_tests::stage::group;

/// Waiting retries, due, made by `deliver` and `release`.
fn waiting(stage: &mut Stage, names: &[&str]) {
    let entries = stage.deliver("billing", "c", names);
    let by = stage.by("billing", "c");
    assert!(stage.release(by, &entries).iter().all(|word| *word == Words::Ok));
}

fn put(stage: &mut Stage, score: &str, member: &[u8], record: Option<&[u8]>) {
    let (index, timers) = (stage.partition.retry_index(), stage.partition.retry_timers());
    stage.wire.call(&[b"ZADD".as_slice(), &index, score.as_bytes(), member]).unwrap();
    if let Some(record) = record {
        stage.wire.call(&[b"HSET".as_slice(), &timers, member, record]).unwrap();
    }
}

#[test]
fn they_come_in_pages() {
    let mut stage = Stage::new();
    stage.join("billing");
    let names: Vec<_> = (0..600).map(|n| format!("id/{n}/")).collect();
    waiting(&mut stage, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let pages: Vec<_> =
        (0..4).map(|_| stage.sweep_retries()).map(|swept| (swept.fired, swept.more)).collect();
    assert_eq!(pages, [(256, true), (256, true), (88, false), (0, false)]);
    assert_eq!(stage.read("billing", "c").len(), 600);
    stage.assert_balanced();
}

#[test]
fn of_a_group_that_was_dropped_they_become_dead_letters() {
    let mut stage = Stage::new();
    stage.join("billing");
    waiting(&mut stage, &["a"]);
    stage
        .wire
        .run(&Drop { partition: stage.partition.clone(), group: group("billing"), cursor: None })
        .unwrap();
    put(&mut stage, "1", b"billing/b/7", Some(b"\x94\x07\xa1p\xa0\x92\xa3due\xa15"));
    let swept = stage.sweep_retries();
    assert_eq!((swept.fired, swept.group_gone, swept.more), (0, 1, false));
    let letter = stage.dead().remove(0);
    let read = Entry::decode(&letter).unwrap();
    assert_eq!((read.id.as_bytes(), read.generation, read.due_ms), (&"b".into(), 7, 5));
    assert_eq!(letter.field("reason").unwrap(), "group_gone");
    assert_eq!(letter.field("group").unwrap(), "billing");
    assert_eq!(stage.tally("group_gone"), 1);
    stage.assert_balanced();
}

#[test]
fn of_a_group_that_only_lost_its_stream_they_go_on() {
    let mut stage = Stage::new();
    stage.join("billing");
    waiting(&mut stage, &["a", "b"]);
    let stream = stage.partition.stream();
    stage.wire.call(&[b"DEL".as_slice(), &stream]).unwrap();
    let swept = stage.sweep_retries();
    assert_eq!((swept.fired, swept.group_gone), (2, 0));
    assert_eq!(stage.join("billing"), Joined::Recreated);
    assert_eq!(stage.read("billing", "c").len(), 2);
    stage.assert_balanced();
}

#[test]
fn members_and_records_that_are_none_of_ours_stop_nobody() {
    let mut stage = Stage::new();
    stage.join("billing");
    waiting(&mut stage, &["good", "b/\u{0}/7"]);
    put(&mut stage, "-inf", b"billing/no record/8", None);
    put(&mut stage, "1.5", b"billing/bad record/9", Some(b"\x92\x07\x92\x01\x02"));
    put(&mut stage, "2", b"no member", Some(b"\x94\x07\xa1p\xa0\x90"));
    put(&mut stage, "3", b"//", None);
    put(&mut stage, "4", b"billing//7", None);
    put(&mut stage, "inf", b"billing/never/7", None);
    let swept = stage.sweep_retries();
    assert_eq!((swept.fired, swept.flawed, swept.group_gone, swept.more), (4, 4, 3, false));
    let entries = stage.read("billing", "c");
    let decoded: Vec<_> = entries.iter().map(|entry| Entry::decode(entry).unwrap()).collect();
    let field = |n: usize| (decoded[n].generation, decoded[n].flaw.clone(), decoded[n].group.clone());
    assert_eq!(field(0), (8, Some("no record".into()), Some(group("billing"))));
    assert_eq!(field(1), (9, Some("bad record".into()), Some(group("billing"))));
    assert_eq!(decoded[1].payload, &b"\x92\x07\x92\x01\x02"[..]);
    let reasons: Vec<_> = stage.dead().iter().map(|letter| letter.field("reason").unwrap().clone()).collect();
    assert_eq!(reasons, ["malformed"; 3]);
    assert_eq!(stage.sweep_retries().fired, 0);
}

#[test]
fn the_member_says_which_group_whatever_the_record_says() {
    let mut stage = Stage::new();
    stage.join("billing");
    put(&mut stage, "1", b"billing/a/7", Some(b"\x94\x07\xa1p\xa0\x94\xa5group\xa7mailing\xa2id\xa1x"));
    stage.sweep_retries();
    let entry = Entry::decode(&stage.entries()[0]).unwrap();
    assert_eq!((entry.group, entry.id.as_bytes()), (Some(group("billing")), &"a".into()));
}

#[test]
fn two_of_the_same_generation_become_one_and_the_books_say_so() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    waiting(&mut stage, &["a"]);
    // The group is made anew while its retry waits, and gets the entry once more.
    let (stream, tally) = (stage.partition.stream(), stage.partition.tally());
    stage.wire.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"billing"]).unwrap();
    assert_eq!(stage.join("billing"), Joined::Recreated);
    let again: Vec<_> = stage.read("billing", "d").iter().map(|entry| entry.id).collect();
    stage.assert_balanced();
    let by = stage.by("billing", "d");
    assert_eq!(stage.retry(by, &again, 0), [Words::Ok]);
    assert_eq!(stage.retries().len(), 1);
    assert_eq!(stage.wire.hgetall(tally).unwrap().get("discarded:billing".as_bytes()).unwrap(), "1");
    stage.assert_balanced();
}
