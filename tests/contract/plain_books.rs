//! A plain group acknowledges with XACK, and nobody counts it: its books balance at every step all the same.

use overdue_protocol::call::{Applied, CompleteItem, Discard, DiscardItem, Discarded, Replay, Words};
use overdue_protocol::entry::EntryId;
use overdue_tests::Stage;
use overdue_tests::stage::group;

use crate::effects::{incr, xadd};

/// A plain group, made so as a relay does: joined, and taken back from.
pub(crate) fn plain(stage: &mut Stage, name: &str) {
    stage.join(name);
    stage.reclaim(name);
    stage.assert_balanced();
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{n:05}")).collect()
}

pub(crate) fn deliver(stage: &mut Stage, name: &str, count: usize) -> Vec<EntryId> {
    let names = names(count);
    for some in names.chunks(500) {
        stage.deliver_none(&some.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let mut entries = vec![];
    loop {
        let page = stage.read(name, "c");
        if page.is_empty() {
            return entries;
        }
        entries.extend(page.iter().map(|entry| entry.id));
    }
}

#[test]
fn the_only_group_from_the_first_entry_to_the_last() {
    let mut stage = Stage::new();
    stage.deliver_none(&["before"]);
    plain(&mut stage, "php");
    let entries = deliver(&mut stage, "php", 9);
    stage.assert_balanced();
    stage.xack("php", &entries[..4]);
    stage.assert_balanced();
    assert_eq!((stage.trim().deleted, stage.tally("done:php")), (4, 4));
    stage.assert_balanced();
    stage.xack("php", &entries[6..]);
    stage.assert_balanced();
    assert_eq!((stage.trim().deleted, stage.tally("done:php")), (4, 8));
    stage.assert_balanced();
    let back = stage.reclaim("php");
    assert_eq!((back.retried, back.buried), (2, 0));
    stage.assert_balanced();
    assert_eq!((stage.entries().len(), stage.tally("done:php")), (0, 8));
    stage.sweep_retries();
    let again: Vec<_> = stage.read("php", "c").iter().map(|entry| entry.id).collect();
    stage.xack("php", &again);
    assert_eq!((stage.trim().length, stage.tally("done:php")), (0, 10));
    stage.assert_balanced();
}

#[test]
fn beside_an_ordinary_group_every_way_that_a_timeout_can_go() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.join("billing");
    let entries = deliver(&mut stage, "php", 8);
    stage.read("billing", "b");
    stage.complete("billing", entries.iter().copied().map(CompleteItem::Done).collect());
    stage.assert_balanced();
    // Acknowledged by hand; by our consumer; with effects; retried; handed back; buried; taken out; held.
    stage.xack("php", &entries[..1]);
    assert_eq!(stage.complete("php", vec![CompleteItem::Done(entries[1])]).done, 1);
    stage.assert_balanced();
    let by = stage.by("php", "c");
    let n = stage.beside("n");
    assert_eq!(stage.apply(by.clone(), entries[2], &[incr(&n, 1)]), Applied::Ok);
    assert_eq!(stage.tally("done:php"), 0, "nothing is deleted yet");
    stage.assert_balanced();
    assert_eq!(stage.retry(by.clone(), &entries[3..4], 0), [Words::Ok]);
    stage.assert_balanced();
    assert_eq!(stage.release(by.clone(), &entries[4..5]), [Words::Ok]);
    stage.assert_balanced();
    assert_eq!(stage.bury(by.clone(), &entries[5..6]), [Words::Ok]);
    stage.assert_balanced();
    let items = vec![DiscardItem::Entry(entries[6], group("php"))];
    let call = Discard { partition: stage.partition.clone(), items };
    assert_eq!(stage.wire.run(&call).unwrap(), [Discarded::Ok]);
    assert_eq!(stage.tally("done:php"), -4);
    stage.assert_balanced();
    assert_eq!(stage.trim().deleted, 7);
    assert_eq!(stage.tally("done:php"), 3);
    stage.assert_balanced();
    // The retries come back addressed to it; the other group passes them over, and nothing is counted for it.
    assert_eq!(stage.sweep_retries().fired, 2);
    let back: Vec<_> = stage.read("php", "c").iter().map(|entry| entry.id).collect();
    stage.read("billing", "b");
    stage.complete("billing", back.iter().copied().map(CompleteItem::Passed).collect());
    stage.assert_balanced();
    assert_eq!(stage.complete("php", vec![CompleteItem::DoneOurs(back[0])]).done, 1);
    assert_eq!(stage.tally("done:php"), 4, "deleted at once");
    stage.assert_balanced();
    stage.xack("php", &back[1..]);
    let letters = stage.dead().iter().map(|letter| letter.id).collect();
    stage.wire.run(&Replay { partition: stage.partition.clone(), letters }).unwrap();
    stage.assert_balanced();
    stage.xack("php", &entries[7..]);
    let replayed: Vec<_> = stage.read("php", "c").iter().map(|entry| entry.id).collect();
    stage.read("billing", "b");
    stage.complete("billing", replayed.iter().copied().map(CompleteItem::Passed).collect());
    stage.xack("php", &replayed);
    assert_eq!(stage.trim().length, 0);
    assert_eq!((stage.tally("done:php"), stage.tally("done:billing")), (7, 8));
    stage.assert_balanced();
}

#[test]
fn the_only_group_through_our_consumer_counts_what_was_acknowledged_by_hand_too() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    let entries = deliver(&mut stage, "php", 600);
    stage.xack("php", &entries[..300]);
    let done = entries[300..590].iter().copied().map(CompleteItem::Done).collect();
    assert_eq!((stage.complete("php", done).done, stage.tally("done:php")), (290, 290));
    stage.assert_balanced();
    stage.trim();
    assert_eq!((stage.entries().len(), stage.tally("done:php")), (10, 590));
    stage.assert_balanced();
}

#[test]
fn two_plain_groups_and_entries_addressed_to_one_of_them() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    plain(&mut stage, "go");
    let entries = deliver(&mut stage, "php", 4);
    stage.read("go", "g");
    stage.xack("go", &entries);
    assert_eq!(stage.reclaim("php").retried, 4);
    stage.assert_balanced();
    assert_eq!((stage.trim().length, stage.tally("done:php"), stage.tally("done:go")), (0, 0, 4));
    stage.assert_balanced();
    stage.sweep_retries();
    // The other one reads them too, and does not know what to do with them: they are acknowledged for it.
    assert_eq!((stage.read("php", "c").len(), stage.read("go", "g").len()), (4, 4));
    let back = stage.reclaim("go");
    assert_eq!((back.retried, back.buried, stage.entries().len()), (0, 0, 4));
    stage.assert_balanced();
    let mine: Vec<_> = stage.entries().iter().map(|entry| entry.id).collect();
    stage.xack("php", &mine);
    assert_eq!((stage.trim().length, stage.tally("done:php"), stage.tally("done:go")), (0, 4, 4));
    stage.assert_balanced();
}

#[test]
fn effects_that_fail_and_a_history() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.join("billing");
    let entries = deliver(&mut stage, "php", 2);
    let x = stage.beside("x");
    let last = b"18446744073709551615-18446744073709551615";
    stage.wire.call(&[b"XADD".as_slice(), &x, last, b"f", b"v"]).unwrap();
    let by = stage.by("php", "c");
    assert!(matches!(stage.apply(by.clone(), entries[0], &[xadd(&x, 1)]), Applied::Incomplete(_)));
    stage.assert_balanced();
    stage.read("billing", "b");
    stage.complete("billing", entries.iter().copied().map(CompleteItem::Done).collect());
    assert_eq!((stage.trim().deleted, stage.tally("done:php"), stage.tally("buried:php")), (1, 0, 1));
    stage.assert_balanced();
    let items = vec![CompleteItem::Done(entries[1])];
    stage.wire.run(&overdue_protocol::call::Complete { by, items, history: 5 }).unwrap();
    stage.trim();
    assert_eq!(
        (stage.wire.xrange(stage.partition.history()).unwrap().len(), stage.tally("done:php")),
        (1, 1)
    );
    stage.assert_balanced();
}
