//! Taking out by hand: what is discarded is booked, what is dropped is gone with its books.

use overdue_protocol::call::{Discard, DiscardItem, Discarded, Drop, Dropped, Joined};
use overdue_protocol::entry::EntryId;
use overdue_tests::Stage;
use overdue_tests::stage::group;

fn discard(stage: &mut Stage, items: Vec<DiscardItem>) -> Vec<Discarded> {
    stage.wire.run(&Discard { partition: stage.partition.clone(), items }).unwrap()
}

fn entry(id: EntryId, name: &str) -> DiscardItem {
    DiscardItem::Entry(id, group(name))
}

#[test]
fn a_waiting_retry_once() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a/b", "c"]);
    let by = stage.by("billing", "c");
    stage.retry(by, &entries, 3_600_000);
    let member = stage.retries()[0].0.clone();
    let retry = || DiscardItem::Retry(member.clone());
    assert_eq!(discard(&mut stage, vec![retry(), retry()]), [Discarded::Ok, Discarded::Absent]);
    assert_eq!(discard(&mut stage, vec![retry()]), [Discarded::Absent]);
    assert_eq!(stage.wire.hgetall(stage.partition.retry_timers()).unwrap().len(), 1);
    assert_eq!(stage.tally("discarded:billing"), 1);
    stage.assert_balanced();
}

#[test]
fn of_the_only_group_pending_and_unread_entries() {
    let mut stage = Stage::new();
    stage.join("billing");
    let pending = stage.deliver("billing", "c", &["pending"])[0];
    stage.deliver_none(&["unread"]);
    let unread = stage.entries()[1].id;
    let never = EntryId { ms: 7, seq: 7 };
    let words = discard(
        &mut stage,
        vec![
            entry(pending, "billing"),
            entry(unread, "billing"),
            entry(never, "billing"),
            entry(unread, "nobody"),
        ],
    );
    assert_eq!(words, [Discarded::Ok, Discarded::Ok, Discarded::Absent, Discarded::Absent]);
    assert!(stage.entries().is_empty() && stage.read("billing", "c").is_empty());
    stage.assert_balanced();
}

#[test]
fn of_two_groups_only_what_this_one_holds_or_is_addressed_to_it() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let by = stage.by("billing", "c");
    stage.release(by, &entries[1..]);
    stage.sweep_retries();
    let ours = stage.entries()[2].id;
    let words = discard(
        &mut stage,
        vec![
            entry(entries[0], "billing"),
            entry(entries[0], "mailing"),
            entry(ours, "mailing"),
            entry(ours, "billing"),
            entry(entries[1], "billing"),
        ],
    );
    use Discarded::{Absent, Ok, Unread};
    assert_eq!(words, [Ok, Unread, Absent, Ok, Absent]);
    assert_eq!(stage.entries().len(), 2);
    stage.assert_balanced();
    // Read by the other group it is not for: not to be discarded for it.
    stage.read("mailing", "m");
    assert_eq!(
        discard(&mut stage, vec![entry(entries[0], "mailing"), entry(entries[0], "mailing")]),
        [Ok, Absent]
    );
    stage.assert_balanced();
}

#[test]
fn a_dropped_group_takes_its_retries_and_books_along_and_no_one_elses() {
    let mut stage = Stage::new();
    for name in ["billing", "bill", "billing-2"] {
        stage.join(name);
    }
    let names: Vec<_> = (0..700).map(|n| n.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let entries = stage.deliver("billing", "c", &names);
    for name in ["bill", "billing-2"] {
        stage.read(name, "c");
        let by = stage.by(name, "c");
        stage.retry(by, &entries[..5], 3_600_000);
    }
    let by = stage.by("billing", "c");
    entries[..600].chunks(200).for_each(|some| drop(stage.retry(by.clone(), some, 3_600_000)));
    stage.bury(by, &entries[600..601]);
    let (mut cursor, mut retries) = (None, 0);
    loop {
        let call = Drop { partition: stage.partition.clone(), group: group("billing"), cursor };
        let dropped = stage.wire.run(&call).unwrap();
        assert!(dropped.existed);
        retries += dropped.retries;
        cursor = dropped.cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((retries, stage.retries().len()), (600, 10));
    assert_eq!(stage.wire.hgetall(stage.partition.retry_timers()).unwrap().len(), 10);
    let tally = stage.wire.hgetall(stage.partition.tally()).unwrap();
    assert!(!tally.keys().any(|field| field.ends_with(b":billing")), "{tally:?}");
    stage.assert_balanced();
    assert_eq!(stage.join("billing"), Joined::Created);
    stage.assert_balanced();
    let call = Drop { partition: stage.partition.clone(), group: group("never"), cursor: None };
    assert_eq!(stage.wire.run(&call).unwrap(), Dropped { existed: false, retries: 0, cursor: None });
}
