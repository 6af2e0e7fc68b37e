//! Retry, release and bury: only the holder may, once, and what comes back is the same timeout.

use overdue_protocol::call::{CompleteItem, RetryItem, ScheduleItem, Words};
use overdue_protocol::record::pack_extras;
use overdue_protocol::retry::RetryMember;
use overdue_protocol::{Entry, entry::EntryId};
use overdue_tests::Stage;
use overdue_tests::stage::{group, id, past};

/// What `billing`'s consumer of this name says of these entries.
type Outcome = fn(&mut Stage, &str, &[EntryId]) -> Vec<Words>;

/// The three that are fenced alike.
fn outcomes() -> [Outcome; 3] {
    [
        |stage, who, entries| stage.retry(stage.by("billing", who), entries, 0),
        |stage, who, entries| stage.release(stage.by("billing", who), entries),
        |stage, who, entries| stage.bury(stage.by("billing", who), entries),
    ]
}

#[test]
fn who_lost_the_lease_changes_nothing() {
    for outcome in outcomes() {
        let mut stage = Stage::new();
        stage.join("billing");
        let entries = stage.deliver("billing", "a", &["one", "two", "three"]);
        let by = stage.by("billing", "b");
        stage.claim(by);
        let before = stage.snapshot();
        assert_eq!(outcome(&mut stage, "a", &entries), [Words::Lost; 3]);
        assert_eq!(outcome(&mut stage, "nobody", &entries), [Words::Lost; 3]);
        assert_eq!(stage.snapshot(), before);
        // The new holder may, and the same entry twice in one call moves once.
        let twice = [entries[0], entries[1], entries[0]];
        assert_eq!(outcome(&mut stage, "b", &twice), [Words::Ok, Words::Ok, Words::Lost]);
        assert_eq!(stage.retries().len() + stage.dead().len(), 2);
        assert_eq!(outcome(&mut stage, "b", &entries), [Words::Lost, Words::Lost, Words::Ok]);
        assert!(stage.entries().is_empty(), "the only group needs them no more");
        stage.assert_balanced();
    }
}

#[test]
fn an_entry_that_somebody_deleted_is_gone_and_acknowledged() {
    for outcome in outcomes() {
        let mut stage = Stage::new();
        stage.join("billing");
        let entries = stage.deliver("billing", "a", &["one", "two"]);
        let (stream, first) = (stage.partition.stream(), entries[0].to_bytes());
        stage.wire.call(&[b"XDEL".as_slice(), &stream, &first]).unwrap();
        assert_eq!(outcome(&mut stage, "a", &entries), [Words::Gone, Words::Ok]);
        assert_eq!(outcome(&mut stage, "a", &entries), [Words::Lost, Words::Lost]);
        assert_eq!(stage.retries().len() + stage.dead().len(), 1);
    }
}

#[test]
fn a_group_that_is_gone_is_an_error_and_writes_nothing() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "a", &["one"]);
    let (stream, by) = (stage.partition.stream(), stage.by("billing", "a"));
    stage.wire.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"billing"]).unwrap();
    let before = stage.snapshot();
    let item = RetryItem { entry: entries[0], delay_ms: 0 };
    let call = overdue_protocol::call::Release { by, items: vec![item] };
    assert!(stage.wire.eval(&call).unwrap_err().contains("NOGROUP"));
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn everything_but_the_attempt_travels_through_retry_release_and_burial() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let extras =
        pack_extras(&[("enc", b"json"), ("trace", b"00-ab"), ("colour", b"\xff\x00"), ("count", b"7")]);
    let name = b"a/b\xff/{}/7";
    stage.arm_one(ScheduleItem { payload: "\u{0}binary".into(), extras, ..past(name) });
    stage.sweep();
    let first = stage.read("billing", "c").remove(0);
    let generation = Entry::decode(&first).unwrap().generation;
    let by = stage.by("billing", "c");

    let mut entry = first.clone();
    for (attempt, releases) in [(2, false), (2, true), (3, false), (4, false)] {
        let words = if releases {
            stage.release(by.clone(), &[entry.id])
        } else {
            stage.retry(by.clone(), &[entry.id], 0)
        };
        assert_eq!(words, [Words::Ok]);
        let member = stage.retries()[0].0.clone();
        let names = RetryMember { group: group("billing"), id: id(name), generation };
        assert_eq!(RetryMember::decode(&member), Some(names));
        stage.assert_balanced();
        assert_eq!(stage.sweep_retries().fired, 1);
        entry = stage.read("billing", "c").remove(0);
        let read = Entry::decode(&entry).unwrap();
        assert_eq!((read.attempt, read.generation, read.due_ms), (attempt, generation, 1000));
        for kept in ["id", "due", "payload", "src", "kind", "enc", "trace", "colour", "count"] {
            assert_eq!(entry.field(kept), first.field(kept), "{kept}");
        }
        assert_eq!(entry.field("group").unwrap(), "billing");
        stage.assert_balanced();
    }
    stage.bury(by, &[entry.id]);
    let letter = stage.dead().remove(0);
    for kept in ["id", "gen", "due", "payload", "enc", "trace", "colour", "attempt"] {
        assert_eq!(letter.field(kept), entry.field(kept), "{kept}");
    }
    assert_eq!(letter.field("group").unwrap(), "billing");
    assert_eq!(letter.field("reason").unwrap(), "rejected");
    assert_eq!(letter.field("detail").unwrap(), "no such order");
    assert_eq!(letter.field("by").unwrap(), "c");
    assert_eq!(letter.field("entry").unwrap(), &entry.id.to_bytes());
    // The other group still has the first entry, and only that is its.
    assert_eq!(stage.read("mailing", "m")[0].id, first.id);
    assert_eq!(stage.complete("mailing", vec![CompleteItem::Done(first.id)]).done, 1);
    stage.assert_balanced();
}

#[test]
fn a_retry_waits_as_long_as_it_was_told() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let by = stage.by("billing", "c");
    let before = stage.wire.now_ms();
    stage.retry(by.clone(), &entries[..1], 80);
    stage.retry(by, &entries[1..], u64::MAX / 2);
    let swept = stage.sweep_retries();
    assert!(swept.fired == 0 || swept.now_ms >= before + 80);
    let due = stage.retries()[0].1;
    assert!(due >= before + 80);
    stage.pass(due);
    let swept = stage.sweep_retries();
    assert_eq!((swept.more, swept.next_due_ms), (false, Some(overdue_protocol::Due::MAX_MS)));
    assert_eq!(stage.entries().len(), 1);
    stage.assert_balanced();
}

#[test]
fn what_is_handed_back_for_later_comes_back_then_with_the_same_attempt() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let by = stage.by("billing", "c");
    let before = stage.wire.now_ms();
    let items = vec![
        RetryItem { entry: entries[0], delay_ms: 60 },
        RetryItem { entry: entries[1], delay_ms: 3_600_000 },
    ];
    let call = overdue_protocol::call::Release { by, items };
    assert_eq!(stage.wire.run(&call).unwrap(), [Words::Ok; 2]);
    let dues: Vec<_> = stage.retries().into_iter().map(|(_, due)| due).collect();
    assert!(dues[0] >= before + 60 && dues[1] >= before + 3_600_000, "{dues:?}");
    let swept = stage.sweep_retries();
    assert!(swept.fired == 0 || swept.now_ms >= dues[0]);
    stage.pass(dues[0]);
    stage.sweep_retries();
    let back = stage.read("billing", "c");
    assert_eq!((back.len(), Entry::decode(&back[0]).unwrap().attempt), (1, 1));
    assert_eq!(stage.retries().len(), 1);
    stage.assert_balanced();
}

#[test]
fn an_entry_that_is_none_of_ours_can_be_buried_and_nothing_else() {
    let mut stage = Stage::new();
    stage.join("billing");
    let stream = stage.partition.stream();
    let mut wide = vec![b"XADD".to_vec(), stream.to_vec(), b"*".to_vec()];
    wide.extend((0..20_000).map(|n: u32| n.to_string().into_bytes()));
    stage.wire.call(&wide).unwrap();
    for fields in [["id", "x", "gen", "nan"], ["id", "", "gen", "7"], ["no", "id", "gen", "7"]] {
        let head: [&[u8]; 3] = [b"XADD", &stream, b"*"];
        let args: Vec<&[u8]> = head.into_iter().chain(fields.iter().map(|field| field.as_bytes())).collect();
        stage.wire.call(&args).unwrap();
    }
    let entries: Vec<_> = stage.read("billing", "c").iter().map(|entry| entry.id).collect();
    let by = stage.by("billing", "c");
    assert_eq!(stage.retry(by.clone(), &entries, 0), [Words::Lost; 4]);
    assert_eq!(stage.release(by.clone(), &entries), [Words::Lost; 4]);
    assert_eq!((stage.entries().len(), stage.retries().len()), (4, 0));
    assert_eq!(stage.bury(by, &entries), [Words::Ok; 4]);
    assert_eq!((stage.entries().len(), stage.dead().len()), (0, 4));
}

#[test]
fn forty_fields_of_others_do_not_spoil_the_record() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.deliver("billing", "c", &["a"]);
    let stream = stage.partition.stream();
    let mut entry = vec![b"XADD".to_vec(), stream.to_vec(), b"*".to_vec()];
    for (name, value) in [("id", "wide"), ("gen", "7"), ("due", "5"), ("payload", "p")] {
        entry.extend([name.into(), value.into()]);
    }
    entry.extend((0..80).map(|n: u32| n.to_string().into_bytes()));
    stage.wire.call(&entry).unwrap();
    let wide = stage.read("billing", "c").remove(0).id;
    let by = stage.by("billing", "c");
    assert_eq!(stage.retry(by, &[wide], 0), [Words::Ok]);
    assert_eq!(stage.sweep_retries().flawed, 0);
    let back = stage.read("billing", "c").remove(0);
    assert_eq!((back.field("payload").unwrap(), back.field("attempt").unwrap()), (&"p".into(), &"2".into()));
}
