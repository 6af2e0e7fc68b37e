//! An acknowledgement counts once, and deletes only what nobody else needs.

use overdue_protocol::call::CompleteItem::{Done, DoneOurs, Passed};
use overdue_tests::Stage;

#[test]
fn the_only_group_deletes_what_it_finished_and_a_second_ack_is_lost() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b", "c"]);
    let done = stage.complete("billing", vec![Done(entries[0]), Done(entries[1]), Done(entries[0])]);
    assert_eq!((done.done, done.lost), (2, vec![2]));
    assert_eq!(stage.fired_ids(), ["c"]);
    stage.assert_balanced();
    let again = stage.complete("billing", vec![Done(entries[1]), Done(entries[2])]);
    assert_eq!((again.done, again.lost), (1, vec![0]));
    assert_eq!(stage.tally("done:billing"), 3);
    stage.assert_balanced();
}

#[test]
fn in_whatever_order_they_are_finished_all_are_deleted_and_no_other() {
    let mut stage = Stage::new();
    stage.join("billing");
    let names: Vec<_> = (0..600).map(|n| n.to_string()).collect();
    let entries = stage.deliver("billing", "c", &names.iter().map(String::as_str).collect::<Vec<_>>());
    // 7 has no divisor in common with 600: every entry once, each call from all over the stream.
    let shuffled: Vec<_> = (0..600).map(|n| entries[n * 7 % 600]).collect();
    for (n, batch) in shuffled.chunks(50).enumerate() {
        assert_eq!(stage.complete("billing", batch.iter().copied().map(Done).collect()).done, 50);
        assert_eq!(stage.entries().len(), 550 - 50 * n);
    }
    stage.assert_balanced();
}

#[test]
fn in_order_all_are_deleted_but_what_somebody_holds_and_what_nobody_has_read() {
    let mut stage = Stage::new();
    stage.join("billing");
    let names: Vec<_> = (0..250).map(|n| n.to_string()).collect();
    let entries = stage.deliver("billing", "c", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let unread: Vec<_> = (0..40).map(|n| format!("unread{n}")).collect();
    stage.deliver_none(&unread.iter().map(String::as_str).collect::<Vec<_>>());
    let held = 130;
    let mut left = entries.len() + unread.len();
    for batch in (0..entries.len()).collect::<Vec<_>>().chunks(30) {
        let batch: Vec<_> = batch.iter().filter(|&&n| n != held).map(|&n| Done(entries[n])).collect();
        left -= batch.len();
        stage.complete("billing", batch);
        assert_eq!(stage.entries().len(), left);
    }
    assert_eq!(stage.entries()[0].id, entries[held]);
    stage.complete("billing", vec![Done(entries[held])]);
    stage.assert_balanced();
    assert_eq!(stage.read("billing", "c").len(), unread.len());
}

#[test]
fn of_two_groups_each_needs_the_entry_until_it_is_trimmed() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    assert_eq!(stage.complete("billing", entries.iter().copied().map(Done).collect()).done, 2);
    assert_eq!(stage.entries().len(), 2);
    assert_eq!(stage.read("mailing", "m").len(), 2);
    assert_eq!(stage.complete("mailing", vec![Done(entries[0])]).done, 1);
    stage.assert_balanced();
    assert_eq!(stage.trim().deleted, 1);
    assert_eq!(stage.fired_ids(), ["b"]);
    stage.assert_balanced();
}

#[test]
fn what_is_addressed_to_one_group_is_passed_over_by_the_other_and_deleted_by_its_own() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let entries = stage.deliver("billing", "c", &["a"]);
    stage.read("mailing", "m");
    stage.complete("mailing", vec![Done(entries[0])]);
    let by = stage.by("billing", "c");
    stage.release(by, &entries);
    assert_eq!(stage.sweep_retries().fired, 1);
    let retry = stage.read("billing", "c").remove(0).id;
    assert_eq!(stage.read("mailing", "m").remove(0).id, retry);
    let passed = stage.complete("mailing", vec![Passed(retry)]);
    assert_eq!((passed.done, passed.lost.len()), (0, 0));
    assert_eq!(stage.tally("done:mailing"), 1);
    stage.assert_balanced();
    assert_eq!(stage.complete("billing", vec![DoneOurs(retry)]).done, 1);
    assert!(stage.entries().iter().all(|entry| entry.id != retry));
    stage.assert_balanced();
}

#[test]
fn a_group_or_stream_that_is_gone_is_lost_and_counts_nothing() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a"]);
    let stream = stage.partition.stream();
    stage.wire.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"billing"]).unwrap();
    assert_eq!(stage.complete("billing", vec![Done(entries[0])]).lost, [0]);
    stage.wire.call(&[b"DEL".as_slice(), &stream]).unwrap();
    assert_eq!(stage.complete("billing", vec![Done(entries[0])]).lost, [0]);
    assert_eq!(stage.tally("done:billing"), 0);
}

#[test]
fn a_thousand_at_once_lost_or_not() {
    let mut stage = Stage::new();
    stage.join("billing");
    let names: Vec<_> = (0..1000).map(|n| n.to_string()).collect();
    let entries = stage.deliver("billing", "c", &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(stage.complete("billing", entries.iter().copied().map(Done).collect()).done, 1000);
    let lost = stage.complete("billing", entries.iter().copied().map(Done).collect()).lost;
    assert_eq!(lost, (0..1000).collect::<Vec<_>>());
    stage.assert_balanced();
}
