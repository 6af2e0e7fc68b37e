//! The timeout of a watched key stays one, with all that is known of it, wherever it goes; and its name may be long.

use overdue_protocol::call::{
    Claim, CompleteItem, Discard, DiscardItem, Discarded, Drop, Holder, Joined, Replay, Replayed, Words,
};
use overdue_protocol::entry::{EntryId, Kind, Proof, Source};
use overdue_protocol::retry::RetryMember;
use overdue_protocol::{Entry, RawEntry, TimerId};
use overdue_tests::stage::group;
use overdue_tests::{FiredKey, Stage};

const GENERATION: u64 = 1_767_225_600_000_017;

/// Names that are hard to carry.
fn names() -> Vec<Vec<u8>> {
    let every_byte: Vec<u8> = (0..=255).cycle().take(65_536).collect();
    vec![
        b"session:42".to_vec(),
        b"/7/\n//8".to_vec(),
        b"{a}\xff\x00:*[".to_vec(),
        every_byte,
        vec![b'/'; 65_536],
    ]
}

fn fire(stage: &mut Stage, key: &FiredKey) {
    let partition = stage.partition.clone();
    key.fire(&mut stage.wire, &partition);
}

#[track_caller]
fn assert_whole(key: &FiredKey, entry: &RawEntry) {
    for (name, value) in key.kept() {
        assert!(
            entry.field(name) == Some(value),
            "{name} is {:?}",
            entry.field(name).map(|value| value.len())
        );
        assert_eq!(entry.fields.iter().filter(|(field, _)| field == name).count(), 1, "{name} is there once");
    }
    let read = Entry::decode(entry).unwrap();
    assert_eq!((read.kind, read.proof, read.db), (Kind::Key, Some(Proof::Unproven), Some(3)));
}

#[test]
fn everything_that_is_known_of_it_survives_retry_release_burial_and_replay() {
    for name in names() {
        let mut stage = Stage::new();
        stage.join("billing");
        stage.join("mailing");
        let key = FiredKey::new(name.clone(), GENERATION)
            .with("proof", "none")
            .with("flaw", "value_too_large")
            .with("cause", "evicted")
            .with("colour", "of a later version");
        fire(&mut stage, &key);
        let by = stage.by("billing", "c");
        let mut entry = stage.read("billing", "c").remove(0);
        for (attempt, releases) in [(2, false), (2, true), (3, false)] {
            let words = match releases {
                true => stage.release(by.clone(), &[entry.id]),
                false => stage.retry(by.clone(), &[entry.id], 0),
            };
            assert_eq!(words, [Words::Ok]);
            let id = TimerId::of_key(name.clone()).unwrap();
            let member = RetryMember { group: group("billing"), id, generation: GENERATION };
            assert_eq!(RetryMember::decode(&stage.retries()[0].0), Some(member));
            stage.assert_balanced();
            let swept = stage.sweep_retries();
            assert_eq!((swept.fired, swept.flawed), (1, 0));
            entry = stage.read("billing", "c").remove(0);
            assert_whole(&key, &entry);
            assert_eq!(Entry::decode(&entry).unwrap().attempt, attempt);
            stage.assert_balanced();
        }
        stage.bury(by, &[entry.id]);
        let letter = stage.dead().remove(0);
        assert_whole(&key, &letter);
        stage.assert_balanced();
        let call = Replay { partition: stage.partition.clone(), letters: vec![letter.id] };
        assert_eq!(stage.wire.run(&call).unwrap(), [Replayed::Ok]);
        let back = stage.read("billing", "c").remove(0);
        assert_whole(&key, &back);
        let read = Entry::decode(&back).unwrap();
        assert_eq!((read.source, read.attempt, read.generation), (Source::Replay, 1, GENERATION));
        assert_eq!(stage.complete("billing", vec![CompleteItem::DoneOurs(back.id)]).done, 1);
        let first = stage.read("mailing", "m").remove(0);
        assert_whole(&key, &first);
        assert_eq!(stage.complete("mailing", vec![CompleteItem::Done(first.id)]).done, 1);
        stage.assert_balanced();
    }
}

#[test]
fn a_retry_of_a_group_that_was_dropped_is_a_dead_letter_that_says_what_key_it_was() {
    let mut stage = Stage::new();
    stage.join("billing");
    let key = FiredKey::new("session:42", GENERATION).with("proof", "none");
    fire(&mut stage, &key);
    let entries = stage.read("billing", "c");
    let by = stage.by("billing", "c");
    stage.retry(by, &[entries[0].id], 0);
    let (member, record) = (stage.retries()[0].0.clone(), stage.partition.retry_timers());
    let kept = stage.wire.hgetall(&record).unwrap().remove(&member).unwrap();
    stage
        .wire
        .run(&Drop { partition: stage.partition.clone(), group: group("billing"), cursor: None })
        .unwrap();
    let index = stage.partition.retry_index();
    stage.wire.call(&[b"ZADD".as_slice(), &index, b"1", &member]).unwrap();
    stage.wire.call(&[b"HSET".as_slice(), &record, &member, &kept]).unwrap();
    assert_eq!(stage.sweep_retries().group_gone, 1);
    assert_whole(&key, &stage.dead()[0]);
}

#[test]
fn a_long_name_whose_record_was_lost_is_still_a_timeout() {
    let mut stage = Stage::new();
    stage.join("billing");
    for name in [vec![b'x'; 600], b"short".to_vec()] {
        fire(&mut stage, &FiredKey::new(name, GENERATION));
    }
    let entries: Vec<_> = stage.read("billing", "c").iter().map(|entry| entry.id).collect();
    let (by, records) = (stage.by("billing", "c"), stage.partition.retry_timers());
    stage.retry(by, &entries, 0);
    stage.wire.call(&[b"DEL".as_slice(), &records]).unwrap();
    assert_eq!(stage.sweep_retries().flawed, 2);
    let kinds: Vec<_> =
        stage.read("billing", "c").iter().map(|raw| Entry::decode(raw).unwrap().kind).collect();
    assert!(kinds.contains(&Kind::Key), "{kinds:?}");
    stage.assert_balanced();
}

#[test]
fn long_names_come_in_pages_of_1_mib_like_payloads() {
    const KEYS: usize = 100;
    let mut stage = Stage::new();
    stage.join("billing");
    for n in 0..KEYS {
        let name = [vec![b'x'; 65_536], n.to_string().into_bytes()].concat();
        fire(&mut stage, &FiredKey::new(name, GENERATION));
    }
    let entries: Vec<_> = stage.read("billing", "c").iter().map(|entry| entry.id).collect();
    let (by, other) = (stage.by("billing", "c"), stage.by("billing", "d"));
    let claim = Claim {
        by: other.clone(),
        holder: Holder::Others { lease_ms: 0, alone: false },
        after: EntryId::ZERO,
        limit: 256,
    };
    let claimed = stage.wire.run(&claim).unwrap();
    assert!((10..=17).contains(&claimed.entries.len()), "{}", claimed.entries.len());
    let held: Vec<_> = claimed.entries.iter().map(|claimed| claimed.entry.id).collect();
    for (by, entries) in [(other, &held[..]), (by, &entries[held.len()..])] {
        for page in entries.chunks(10) {
            assert!(stage.release(by.clone(), page).iter().all(|word| *word == Words::Ok));
        }
    }
    let mut pages = vec![];
    while pages.iter().sum::<u32>() < KEYS as u32 {
        pages.push(stage.sweep_retries().fired);
    }
    assert!(pages.iter().all(|fired| (1..=17).contains(fired)), "{pages:?}");
    stage.assert_balanced();
}

#[test]
fn who_joins_late_finds_them_in_the_books() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.deliver_none(&["timer"]);
    for n in 0..4 {
        fire(&mut stage, &FiredKey::new(format!("key:{n}"), GENERATION));
    }
    stage.assert_balanced();
    let held = stage.read("billing", "c");
    stage.complete("billing", vec![CompleteItem::Done(held[0].id), CompleteItem::Done(held[1].id)]);
    let by = stage.by("billing", "c");
    stage.bury(by.clone(), &[held[2].id]);
    stage.retry(by, &[held[3].id], 3_600_000);
    stage.assert_balanced();
    // One group finds what is left, one begins with what comes.
    assert_eq!(stage.join("mailing"), Joined::Created);
    assert_eq!(stage.join_from("audit", overdue_protocol::call::From::New), Joined::Created);
    stage.assert_balanced();
    fire(&mut stage, &FiredKey::new("key:4", GENERATION));
    for name in ["mailing", "audit"] {
        let read = stage.read(name, "c");
        let done = read.iter().map(|entry| CompleteItem::Done(entry.id)).collect();
        assert_eq!(stage.complete(name, done).done, read.len() as u64);
    }
    let retry = DiscardItem::Retry(stage.retries()[0].0.clone());
    let call = Discard { partition: stage.partition.clone(), items: vec![retry] };
    assert_eq!(stage.wire.run(&call).unwrap(), [Discarded::Ok]);
    stage.trim();
    stage.assert_balanced();
    assert_eq!((stage.tally("watched_fired"), stage.tally("fired_timers")), (5, 1));
}
