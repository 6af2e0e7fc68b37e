//! The history of a queue that keeps one: what was finished, by whom and when, never more than asked for.

use overdue_protocol::call::{Apply, Complete, CompleteItem};
use overdue_protocol::entry::EntryId;
use overdue_tests::Stage;

use crate::effects::incr;

fn complete(stage: &mut Stage, name: &str, entries: &[EntryId], history: u32) -> u64 {
    let items = entries.iter().copied().map(CompleteItem::Done).collect();
    let call = Complete { by: stage.by(name, "c"), items, history };
    stage.wire.run(&call).unwrap().done
}

fn kept(stage: &mut Stage) -> Vec<String> {
    let history = stage.wire.xrange(stage.partition.history()).unwrap();
    history.iter().map(|one| String::from_utf8(one.field("id").unwrap().to_vec()).unwrap()).collect()
}

#[test]
fn each_done_timeout_says_what_it_was_and_who_finished_it_when() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a"]);
    let by = stage.by("billing", "c");
    stage.retry(by, &entries, 0);
    stage.sweep_retries();
    let entry = stage.read("billing", "c").remove(0);
    let before = stage.wire.now_ms();
    let call =
        Complete { by: stage.by("billing", "c"), items: vec![CompleteItem::DoneOurs(entry.id)], history: 5 };
    assert_eq!(stage.wire.run(&call).unwrap().done, 1);
    let one = stage.wire.xrange(stage.partition.history()).unwrap().remove(0);
    for (field, value) in
        [("id", "a"), ("due", "1000"), ("kind", "timer"), ("group", "billing"), ("attempt", "2"), ("by", "c")]
    {
        assert_eq!(one.field(field).unwrap(), value, "{field}");
    }
    assert_eq!(one.field("gen"), entry.field("gen"));
    let done: u64 = std::str::from_utf8(one.field("done").unwrap()).unwrap().parse().unwrap();
    assert!((before..=stage.wire.now_ms()).contains(&done));
    assert_eq!(one.fields.len(), 8, "no payload");
}

#[test]
fn of_the_last_so_many_and_nothing_of_what_was_lost_or_passed_over() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let names: Vec<_> = (0..300).map(|n| format!("{n:03}")).collect();
    let entries = stage.deliver("billing", "c", &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(complete(&mut stage, "billing", &entries[..100], 0), 100);
    assert_eq!(kept(&mut stage).len(), 0);
    assert_eq!(complete(&mut stage, "billing", &entries[100..250], 20), 150);
    assert_eq!(kept(&mut stage), names[230..250]);
    assert_eq!(complete(&mut stage, "billing", &entries[..250], 20), 0);
    assert_eq!(kept(&mut stage), names[230..250]);
    stage.read("mailing", "m");
    let passed = vec![CompleteItem::Passed(entries[0])];
    stage.wire.run(&Complete { by: stage.by("mailing", "c"), items: passed, history: 20 }).unwrap();
    assert_eq!(kept(&mut stage).len(), 20);
    let (by, one) = (stage.by("billing", "c"), [incr(&stage.beside("n"), 1)]);
    let call = Apply { history: 3, ..stage.to_apply(by, &[(entries[250], &one), (entries[251], &one)]) };
    stage.wire.run(&call).unwrap();
    assert_eq!(kept(&mut stage), ["249", "250", "251"]);
}

#[test]
fn a_history_that_takes_no_entry_is_a_side_error_and_all_is_done() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let (history, last) = (stage.partition.history(), EntryId { ms: u64::MAX, seq: u64::MAX }.to_bytes());
    stage.wire.call(&[b"XADD".as_slice(), &history, &last, b"f", b"v"]).unwrap();
    let call =
        Complete { by: stage.by("billing", "c"), items: vec![CompleteItem::Done(entries[0])], history: 5 };
    let reply = stage.wire.eval(&call).unwrap();
    assert!(overdue_protocol::Call::side_error(&call, &reply).is_some());
    assert_eq!((stage.entries().len(), stage.tally("done:billing")), (1, 1));
    stage.assert_balanced();
}
