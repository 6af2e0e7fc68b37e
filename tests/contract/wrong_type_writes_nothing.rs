//! A key of the wrong type: an error that says so, before anything is written (SCENARIOS S40).

use bytes::Bytes;
use overdue_protocol::call::{
    Apply, ApplyItem, Ask, Bury, BuryItem, Cancel, CancelItem, Claim, Complete, CompleteItem, Discard,
    DiscardItem, Drop, DuePage, Fire, Forget, Holder, Join, PAGE, Reclaim, Release, Renew, Replay, Retire,
    Retry, RetryItem, ScheduleItem, Settle, SettleItem, SettleOp, SettlePayload, Sight, SweepRetries, Trim,
};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Call, Reply};
use overdue_tests::stage::{group, id, past, timer};
use overdue_tests::{Stage, Wire};

use crate::watched::{key, value};

/// A call that would change something, whatever it is.
type Run = Box<dyn Fn(&mut Wire) -> Result<Reply, String>>;

struct Case {
    name: &'static str,
    keys: Vec<Bytes>,
    run: Run,
}

fn case<C: Call + 'static>(call: C) -> Case {
    let keys = call.keys();
    Case { name: call.script().name, keys, run: Box::new(move |wire| wire.eval(&call)) }
}

/// Timers due and armed, entries pending and unread, a dead letter, a retry that is due.
fn seed(stage: &mut Stage) -> Vec<EntryId> {
    stage.join("billing");
    let mut entries = stage.deliver("billing", "c", &["a", "b", "c", "d", "e"]);
    let by = stage.by("billing", "c");
    stage.bury(by.clone(), &entries[..1]);
    stage.release(by, &entries[1..2]);
    entries.drain(..2);
    stage.arm(vec![past("due"), past("unread")]);
    stage.fire(&[id("unread")]);
    stage.arm(vec![ScheduleItem { keyed: true, ..timer("armed") }, past("due too")]);
    let look = |name, due| {
        settled(
            name,
            1,
            SettleOp::Look { found: Sight::Due(due), removal: false, captured: Some(value("v")) },
        )
    };
    let event = settled("fired", 2, SettleOp::Event(SettlePayload::None));
    let items = vec![look("watched", 1_000), look("fired", 1_000), event, look("alive", 7_000_000_000_000)];
    stage.wire.run(&Settle { partition: stage.partition.clone(), items }).unwrap();
    entries
}

fn settled(name: &str, position: u64, op: SettleOp) -> SettleItem {
    SettleItem { key: key(name), rule: overdue_protocol::QueueName::new("sessions").unwrap(), position, op }
}

fn cases(stage: &mut Stage, entries: &[EntryId]) -> Vec<Case> {
    let (p, by, entry) = (stage.partition.clone(), stage.by("billing", "c"), entries[0]);
    let other = stage.by("billing", "d");
    let letter = stage.dead()[0].id;
    let member = stage.retries()[0].0.clone();
    let to_arm = stage.to_arm(vec![
        ScheduleItem { keyed: true, ..timer("new") },
        timer("due"),
        timer("armed"),
        ScheduleItem { mode: overdue_protocol::call::Mode::IfAbsent, ..timer("armed") },
    ]);
    let settle = |items| Settle { partition: p.clone(), items };
    vec![
        case(to_arm.clone()),
        case(Ask(to_arm)),
        case(Cancel {
            partition: p.clone(),
            items: ["armed", "due"].map(|name| CancelItem { id: id(name), generation: None }).to_vec(),
        }),
        case(stage.to_sweep()),
        case(SweepRetries { partition: p.clone(), limit: PAGE }),
        case(Fire { partition: p.clone(), ids: vec![id("due")] }),
        case(Join {
            partition: p.clone(),
            group: group("mailing"),
            from: overdue_protocol::call::From::Oldest,
        }),
        case(Complete { by: by.clone(), items: vec![CompleteItem::Done(entry)], history: 5 }),
        case(Apply { by: by.clone(), items: vec![ApplyItem { entry, effects: [].into() }], history: 5 }),
        case(Reclaim {
            partition: p.clone(),
            group: group("billing"),
            lease_ms: 0,
            attempts: 3,
            first_ms: 5,
            most_ms: 9,
            chance: 1.0,
            limit: PAGE,
            bytes: 1,
        }),
        case(Retry { by: by.clone(), items: vec![RetryItem { entry, delay_ms: 5 }] }),
        case(Release { by: by.clone(), items: vec![RetryItem { entry, delay_ms: 0 }] }),
        case(Bury {
            by: by.clone(),
            items: vec![BuryItem { entry, reason: "rejected", detail: Bytes::new() }],
        }),
        case(Renew { by: by.clone(), entries: vec![entry] }),
        case(Claim {
            by: other,
            holder: Holder::Others { lease_ms: 0, alone: false },
            after: EntryId::ZERO,
            limit: PAGE,
        }),
        case(Retire {
            partition: p.clone(),
            group: group("billing"),
            consumer: "none".into(),
            min_idle_ms: 0,
        }),
        case(Trim { partition: p.clone(), dead_max: 0, dead_max_age_ms: 0 }),
        case(Replay { partition: p.clone(), letters: vec![letter] }),
        case(Discard {
            partition: p.clone(),
            items: vec![DiscardItem::Retry(member), DiscardItem::Entry(entry, group("billing"))],
        }),
        case(settle(vec![settled(
            "alive",
            3,
            SettleOp::Look { found: Sight::Forever, removal: false, captured: None },
        )])),
        case(settle(vec![settled("watched", 3, SettleOp::Event(SettlePayload::Last))])),
        case(settle(vec![settled("watched", 3, SettleOp::Unproven(SettlePayload::None))])),
        case(settle(vec![settled("watched", 3, SettleOp::Drop)])),
        case(DuePage { partition: p.clone(), limit: 9, offset: 0, ahead_ms: 0 }),
        case(Forget { partition: p.clone(), upto: 9, limit: 9 }),
        case(Drop { partition: p, group: group("billing"), cursor: None }),
    ]
}

#[test]
fn at_each_key_of_each_script() {
    let mut stage = Stage::new();
    let entries = seed(&mut stage);
    let all = cases(&mut stage, &entries);
    let scripts: std::collections::BTreeSet<_> = all.iter().map(|case| case.name).collect();
    let keyless = 1; // touch declares none
    let known = overdue_protocol::script::ALL.len() - keyless;
    assert_eq!(scripts.len(), known, "every script has its case: {scripts:?}");
    let mut checked = 0;
    for (n, case) in all.iter().enumerate() {
        let positions = case.keys.iter().filter(|key| !is_timer_key(key)).count();
        for position in 0..positions {
            stage.wire.call(&["FLUSHALL"]).unwrap();
            let entries = seed(&mut stage);
            let case = cases(&mut stage, &entries).remove(n);
            let key = &case.keys[position];
            stage.wire.call(&[b"DEL".as_slice(), key]).unwrap();
            stage.wire.call(&[b"SET".as_slice(), key, b"somebody's"]).unwrap();
            let before = stage.snapshot();
            let answer = (case.run)(&mut stage.wire);
            let at = format!("{} with a wrong type at KEYS[{}]", case.name, position + 1);
            assert!(answer.as_ref().is_err_and(|error| error.contains("WRONGTYPE")), "{at}: {answer:?}");
            assert_eq!(stage.snapshot(), before, "{at} wrote");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn every_case_changes_something_when_the_types_are_right() {
    let mut stage = Stage::new();
    let entries = seed(&mut stage);
    let names: Vec<_> = cases(&mut stage, &entries).iter().map(|case| case.name).collect();
    for (n, name) in names.iter().enumerate() {
        stage.wire.call(&["FLUSHALL"]).unwrap();
        let entries = seed(&mut stage);
        let case = cases(&mut stage, &entries).remove(n);
        let before = stage.snapshot();
        (case.run)(&mut stage.wire).unwrap();
        if n == 1 || *name == "due" {
            assert_eq!(stage.snapshot(), before, "asking writes nothing");
        } else if !["retire", "renew"].contains(name) {
            assert_ne!(stage.snapshot(), before, "{name}"); // (a lease may be renewed within the same millisecond)
        }
    }
}

fn is_timer_key(key: &[u8]) -> bool {
    key.windows(5).any(|part| part == b":key:")
}
