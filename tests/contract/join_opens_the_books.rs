//! A group's books begin when it joins, wherever it joins.

use overdue_protocol::call::{CompleteItem, From, Joined};
use overdue_tests::Stage;

fn all_done(stage: &mut Stage, group: &str) -> usize {
    let entries = stage.read(group, "c");
    let count = entries.len();
    stage.complete(group, entries.iter().map(|entry| CompleteItem::Done(entry.id)).collect());
    stage.assert_balanced();
    count
}

#[test]
fn at_the_oldest_at_the_new_and_again() {
    let mut stage = Stage::new();
    stage.deliver_none(&["before"]);
    assert_eq!(stage.join("billing"), Joined::Created);
    assert_eq!(stage.join_from("new", From::New), Joined::Created);
    stage.assert_balanced();
    let before = stage.snapshot();
    assert_eq!(
        (stage.join("billing"), stage.join_from("billing", From::New)),
        (Joined::Exists, Joined::Exists)
    );
    assert_eq!(stage.snapshot(), before);
    stage.deliver_none(&["after"]);
    assert_eq!((all_done(&mut stage, "billing"), all_done(&mut stage, "new")), (2, 1));
}

#[test]
fn before_anything_was_armed() {
    let mut stage = Stage::new();
    assert_eq!(stage.join_from("new", From::New), Joined::Created);
    stage.deliver_none(&["a"]);
    assert_eq!(all_done(&mut stage, "new"), 1);
}

#[test]
fn a_group_or_stream_removed_behind_our_back_begins_at_0_again_whatever_was_asked() {
    for command in ["XGROUP DESTROY", "DEL"] {
        let mut stage = Stage::new();
        stage.join("billing");
        stage.join("other");
        let entries = stage.deliver("billing", "c", &["a", "b", "c"]);
        let by = stage.by("billing", "c");
        stage.release(by, &entries[..1]);
        stage.complete("billing", vec![CompleteItem::Done(entries[1])]);
        let stream = stage.partition.stream();
        let mut args: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        args.push(&stream);
        if command != "DEL" {
            args.push(b"billing");
        }
        stage.wire.call(&args).unwrap();
        stage.deliver_none(&["d"]);
        assert_eq!(stage.join_from("billing", From::New), Joined::Recreated);
        stage.assert_balanced();
        stage.sweep_retries();
        stage.assert_balanced();
        let expected = if command == "DEL" { 2 } else { 5 };
        assert_eq!(all_done(&mut stage, "billing"), expected, "{command}");
    }
}

#[test]
fn after_a_flush_of_everything() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.deliver("billing", "c", &["a"]);
    stage.wire.call(&["FLUSHALL"]).unwrap();
    stage.deliver_none(&["b"]);
    assert_eq!(stage.join("billing"), Joined::Created);
    assert_eq!(all_done(&mut stage, "billing"), 1);
}

#[test]
fn one_made_by_hand_is_adopted_as_it_stands() {
    let mut stage = Stage::new();
    stage.join("billing");
    let stream = stage.partition.stream();
    stage.wire.call(&[b"XGROUP".as_slice(), b"CREATE", &stream, b"hand", b"0"]).unwrap();
    let entries = stage.deliver("hand", "h", &["finished", "pending", "deleted"]);
    stage.wire.call(&[b"XACK".as_slice(), &stream, b"hand", &entries[0].to_bytes()]).unwrap();
    stage.wire.call(&[b"XDEL".as_slice(), &stream, &entries[2].to_bytes()]).unwrap();
    stage.read("billing", "c");
    let by = stage.by("billing", "c");
    stage.release(by, &entries[..2]);
    stage.sweep_retries();
    stage.read_some("hand", "h", 1); // one of the two that are addressed to the other group
    stage.deliver_none(&["unread"]);
    assert_eq!(stage.join("hand"), Joined::Exists);
    let books = overdue_tests::books::Books::read(&stage.redis, 0, &stage.partition);
    let hand = books.lines.iter().find(|line| line.what == "group hand").unwrap();
    assert_eq!(hand.difference(), 0, "{hand}");
    assert_eq!(hand.right.last().unwrap(), &("live", 2));
}

#[test]
fn with_entries_addressed_to_others_and_to_it_and_retries_waiting() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let entries = stage.deliver("billing", "c", &["a", "b", "c", "d"]);
    stage.read("mailing", "m");
    let (ours, theirs) = (stage.by("billing", "c"), stage.by("mailing", "m"));
    stage.release(ours.clone(), &entries[..2]);
    stage.release(theirs, &entries[..1]);
    stage.sweep_retries();
    stage.retry(ours, &entries[2..3], 3_600_000);
    stage.assert_balanced();
    assert_eq!(stage.join("late"), Joined::Created);
    stage.assert_balanced();
    let stream = stage.partition.stream();
    stage.wire.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"billing"]).unwrap();
    assert_eq!(stage.join("billing"), Joined::Recreated);
    stage.assert_balanced();
}

#[test]
fn a_long_stream_holds_the_server_shortly() {
    let mut stage = Stage::new();
    let names: Vec<_> = (0..5000).map(|n| n.to_string()).collect();
    stage.assert_nothing_slow(|stage| {
        names
            .chunks(500)
            .for_each(|some| stage.deliver_none(&some.iter().map(String::as_str).collect::<Vec<_>>()));
        stage.join("billing");
    });
    stage.assert_balanced();
}
