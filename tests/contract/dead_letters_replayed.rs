//! A replayed dead letter is the same timeout for the same group, at its first attempt.

use overdue_protocol::Entry;
use overdue_protocol::call::{CompleteItem, Replay, Replayed};
use overdue_protocol::entry::{EntryId, Source};
use overdue_tests::Stage;

fn replay(stage: &mut Stage, letters: &[EntryId]) -> Vec<Replayed> {
    stage.wire.run(&Replay { partition: stage.partition.clone(), letters: letters.to_vec() }).unwrap()
}

#[test]
fn same_generation_attempt_one_once_and_only_for_its_group() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.join("mailing");
    let entries = stage.deliver("billing", "c", &["a", "b"]);
    let first = stage.entries().remove(0);
    let by = stage.by("billing", "c");
    stage.retry(by.clone(), &entries, 0);
    stage.sweep_retries();
    let second: Vec<_> = stage.read("billing", "c").iter().map(|entry| entry.id).collect();
    stage.bury(by.clone(), &second);
    stage.assert_balanced();

    let letters: Vec<_> = stage.dead().iter().map(|letter| letter.id).collect();
    let words = replay(&mut stage, &[letters[0], letters[0], EntryId { ms: 1, seq: 1 }]);
    assert_eq!(words, [Replayed::Ok, Replayed::Absent, Replayed::Absent]);
    assert_eq!(replay(&mut stage, &letters[..1]), [Replayed::Absent]);
    stage.assert_balanced();
    let back = stage.read("billing", "c").remove(0);
    let (read, original) = (Entry::decode(&back).unwrap(), Entry::decode(&first).unwrap());
    assert_eq!((read.attempt, read.source), (1, Source::Replay));
    assert_eq!(
        (read.id, read.generation, read.due_ms, read.payload),
        (original.id, original.generation, 1000, original.payload)
    );
    assert_eq!(read.group, Some(overdue_tests::stage::group("billing")));
    let mut fields: Vec<_> = back.fields.iter().map(|(name, _)| name.clone()).collect();
    fields.sort();
    let count = fields.len();
    fields.dedup();
    assert_eq!((fields.len(), count, back.field("reason")), (count, 9, None), "{fields:?}");

    // And round again: buried, replayed, done.
    stage.bury(by, &[back.id]);
    let letter = stage.dead().pop().unwrap().id;
    assert_eq!(replay(&mut stage, &[letter]), [Replayed::Ok]);
    let back = stage.read("billing", "c").remove(0).id;
    assert_eq!(stage.complete("billing", vec![CompleteItem::DoneOurs(back)]).done, 1);
    assert_eq!(
        (stage.dead().len(), stage.tally("replayed:billing"), stage.tally("buried:billing")),
        (1, 2, 3)
    );
    stage.assert_balanced();
}

#[test]
fn a_letter_without_id_or_group_stays() {
    let mut stage = Stage::new();
    stage.join("billing");
    let dead = stage.partition.dead();
    let letters: [&[&str]; 4] = [
        &["group", "billing", "gen", "1", "due", "1", "payload", "p"],
        &["group", "billing", "id", "a", "due", "1", "payload", "p"],
        &["group", "gone", "id", "a", "gen", "1", "due", "1", "payload", "p"],
        &["id", "a", "gen", "1", "due", "1", "payload", "p"],
    ];
    for fields in letters {
        let head: [&[u8]; 3] = [b"XADD", &dead, b"*"];
        let args: Vec<&[u8]> = head.into_iter().chain(fields.iter().map(|part| part.as_bytes())).collect();
        stage.wire.call(&args).unwrap();
    }
    let before = stage.snapshot();
    let ids: Vec<_> = stage.dead().iter().map(|letter| letter.id).collect();
    let words = replay(&mut stage, &ids);
    assert_eq!(words, [Replayed::Bad, Replayed::Bad, Replayed::NoGroup, Replayed::NoGroup]);
    assert_eq!(stage.snapshot(), before);
}
