//! A plain group that was an ordinary one, begins late, is gone, joined again or dropped; and its backlog, trimmed.

use overdue_protocol::call::{CompleteItem, Drop, From, Joined};
use overdue_tests::Stage;
use overdue_tests::stage::group;

use crate::plain_books::{deliver, plain};

#[test]
fn a_group_that_was_an_ordinary_one_and_one_that_begins_with_the_new() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b", "c", "d"]);
    stage.join("mailing");
    stage.complete("billing", vec![CompleteItem::Done(entries[0])]);
    stage.xack("billing", &entries[1..2]); // which no one counted
    let by = stage.by("billing", "c");
    stage.retry(by, &entries[2..3], 3_600_000);
    assert_eq!(stage.join_from("new", From::New), Joined::Created);
    stage.assert_balanced_but_for("billing", 1);
    assert_eq!(stage.reclaim("billing").retried, 1);
    stage.assert_balanced();
    stage.reclaim("new");
    stage.assert_balanced();
    // All three finish what there is: of what was there before it, `new` reads nothing, and it counts all the same.
    let e = deliver(&mut stage, "new", 1);
    assert_eq!(e.len(), 1);
    stage.xack("new", &e);
    let all: Vec<_> = stage.entries().iter().map(|entry| entry.id).collect();
    for name in ["billing", "mailing"] {
        stage.read(name, "c");
        stage.xack(name, &all);
    }
    stage.assert_balanced_but_for("mailing", 5);
    assert_eq!(stage.trim().length, 0);
    let faults = overdue_tests::books::Books::read(&stage.redis, 0, &stage.partition);
    let faults: Vec<_> = faults.faults().iter().map(|line| line.what.clone()).collect();
    assert_eq!(faults, ["group mailing"], "an ordinary group must not XACK");
}

#[test]
fn gone_and_joined_again_dropped_and_ordinary_again() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    stage.join("billing");
    let entries = deliver(&mut stage, "php", 6);
    stage.xack("php", &entries[..2]);
    let by = stage.by("php", "c");
    stage.retry(by, &entries[2..3], 3_600_000);
    let stream = stage.partition.stream();
    stage.wire.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"php"]).unwrap();
    assert_eq!(stage.join_from("php", From::New), Joined::Recreated);
    stage.assert_balanced();
    stage.read("php", "c");
    stage.xack("php", &entries);
    stage.read("billing", "b");
    stage.complete("billing", entries.iter().copied().map(CompleteItem::Done).collect());
    assert_eq!((stage.trim().length, stage.tally("done:php")), (0, 6));
    stage.assert_balanced();
    let call = Drop { partition: stage.partition.clone(), group: group("php"), cursor: None };
    assert!(stage.wire.run(&call).unwrap().existed);
    let tally = stage.wire.hgetall(stage.partition.tally()).unwrap();
    assert!(!tally.keys().any(|field| field.ends_with(b":php")), "{tally:?}");
    assert_eq!(stage.join("php"), Joined::Created);
    let entries = deliver(&mut stage, "php", 3);
    stage.complete("php", entries.iter().copied().map(CompleteItem::Done).collect());
    assert_eq!(stage.tally("done:php"), 3);
    stage.assert_balanced();
}

#[test]
fn a_backlog_goes_in_steps_that_hold_the_server_shortly() {
    let mut stage = Stage::new();
    stage.assert_nothing_slow(|stage| {
        plain(stage, "php");
        let entries = deliver(stage, "php", 5_000);
        stage.xack("php", &entries[..4_990]);
        let mut steps = vec![];
        loop {
            let trimmed = stage.trim();
            steps.push(trimmed.deleted);
            if !trimmed.more {
                break;
            }
        }
        assert!(steps.len() >= 5 && steps.iter().all(|step| *step <= 1_020), "{steps:?}");
        assert_eq!((stage.entries().len(), stage.tally("done:php")), (10, 4_990));
    });
    stage.assert_balanced();
}

#[test]
fn behind_old_pending_entries_the_finished_ones_go_all_the_same() {
    let mut stage = Stage::new();
    plain(&mut stage, "php");
    let entries = deliver(&mut stage, "php", 900);
    let finished: Vec<_> =
        entries.iter().enumerate().filter(|(n, _)| !n.is_multiple_of(70)).map(|(_, id)| *id).collect();
    stage.xack("php", &finished);
    let trimmed = stage.trim();
    assert_eq!((trimmed.deleted as usize, trimmed.more), (finished.len(), false));
    assert_eq!(stage.trim().deleted, 0);
    stage.assert_balanced();
}
