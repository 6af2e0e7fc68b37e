//! Every cell of the table of `schedule` (PROTOCOL.md section 4).

use overdue_protocol::call::{Change, Mode, ScheduleItem};
use overdue_tests::Stage;
use overdue_tests::stage::{at, past, timer};

const MODES: [Mode; 5] = [Mode::Upsert, Mode::IfAbsent, Mode::IfPresent, Mode::OnlyLater, Mode::OnlyEarlier];

/// An hour, and a bit less and more.
const SOON: u64 = 1_800_000;
const LATE: u64 = 7_200_000;

fn with(mode: Mode, when: u64) -> ScheduleItem {
    ScheduleItem { mode, when: at(when), ..timer("a") }
}

#[test]
fn absent() {
    for mode in MODES {
        let mut stage = Stage::new();
        let due = stage.wire.now_ms() + SOON;
        let armed = stage.arm_one(with(mode, due));
        if mode == Mode::IfPresent {
            assert_eq!((armed.change, armed.generation, armed.due_ms), (Change::Absent, 0, 0));
            assert!(stage.snapshot().is_empty());
        } else {
            assert_eq!((armed.change, armed.due_ms), (Change::Armed, due));
            assert_eq!(stage.index(), [("a".into(), due)]);
        }
        stage.assert_balanced();
    }
}

#[test]
fn armed_and_the_new_deadline_is_later_equal_or_earlier() {
    use Change::{Kept, Present, Replaced};
    let table = [
        (Mode::Upsert, [Replaced, Replaced, Replaced]),
        (Mode::IfAbsent, [Present, Present, Present]),
        (Mode::IfPresent, [Replaced, Replaced, Replaced]),
        (Mode::OnlyLater, [Replaced, Kept, Kept]),
        (Mode::OnlyEarlier, [Kept, Kept, Replaced]),
    ];
    for (mode, changes) in table {
        for (change, shift) in changes.into_iter().zip([1, 0, -1]) {
            let mut stage = Stage::new();
            let due = stage.wire.now_ms() + LATE;
            let first = stage.arm_one(with(Mode::Upsert, due));
            let new_due = due.checked_add_signed(shift * 1000).unwrap();
            let second = stage.arm_one(with(mode, new_due));
            assert_eq!(second.change, change, "{mode:?} {shift}");
            if change == Replaced {
                assert!(second.generation > first.generation);
                assert_eq!(second.due_ms, new_due);
            } else {
                assert_eq!((second.generation, second.due_ms), (first.generation, due));
            }
            assert_eq!(stage.index(), [("a".into(), second.due_ms)]);
            assert!(stage.entries().is_empty());
            stage.assert_balanced();
        }
    }
}

#[test]
fn due_and_not_swept_fires_the_old_one_or_changes_nothing() {
    for mode in MODES {
        let mut stage = Stage::new();
        let first = stage.arm_one(past("a"));
        assert_eq!((first.change, first.due_ms), (Change::Armed, 1000));
        let before = stage.snapshot();
        let due = stage.wire.now_ms() + SOON;
        let second = stage.arm_one(with(mode, due));
        if matches!(mode, Mode::Upsert | Mode::IfAbsent) {
            assert_eq!(second.change, Change::FiredOld(first.generation), "{mode:?}");
            assert_eq!(second.due_ms, due);
            assert!(second.generation > first.generation);
            let entries = stage.entries();
            assert_eq!(entries.len(), 1);
            assert_eq!(entries[0].field("gen").unwrap(), &first.generation.to_string());
            assert_eq!(entries[0].field("due").unwrap(), "1000");
            assert_eq!(stage.tally("fired_timers"), 1);
        } else {
            assert_eq!((second.change, second.due_ms), (Change::Due, 1000), "{mode:?}");
            assert_eq!(second.generation, first.generation);
            assert_eq!(stage.snapshot(), before);
        }
        stage.assert_balanced();
    }
}

#[test]
fn a_past_due_is_armed_like_any_other_and_fired_by_the_sweep() {
    let mut stage = Stage::new();
    let armed = stage.arm_one(past("a"));
    assert_eq!(armed.change, Change::Armed);
    assert!(stage.entries().is_empty());
    assert_eq!(stage.sweep().fired, 1);
    assert_eq!(stage.entries()[0].field("gen").unwrap(), &armed.generation.to_string());
    stage.assert_balanced();
}

#[test]
fn the_same_id_twice_in_one_call_goes_in_order_each_with_its_own_generation() {
    let mut stage = Stage::new();
    let now = stage.wire.now_ms();
    let armed = stage.arm(vec![
        with(Mode::Upsert, now + LATE),
        with(Mode::OnlyEarlier, now + SOON),
        with(Mode::IfAbsent, now + 1),
        timer("b"),
        past("a"),
        with(Mode::IfPresent, now + LATE),
        with(Mode::IfAbsent, now + LATE),
    ]);
    let changes: Vec<_> = armed.iter().map(|one| one.change).collect();
    let fired = armed[4].generation;
    assert_eq!(
        changes,
        [
            Change::Armed,
            Change::Replaced,
            Change::Present,
            Change::Armed,
            Change::Replaced,
            Change::Due,
            Change::FiredOld(fired)
        ]
    );
    assert_eq!(armed[2].generation, armed[1].generation);
    assert!(armed.windows(2).all(|two| two[0].generation <= two[1].generation));
    assert_eq!(stage.index().len(), 2);
    assert_eq!(stage.fired_ids(), ["a"]);
    assert_eq!(stage.tally("scheduled"), 5);
    assert_eq!(stage.tally("replaced"), 2);
    stage.assert_balanced();
}

#[test]
fn in_counts_from_the_servers_clock_and_extras_travel() {
    let mut stage = Stage::new();
    let before = stage.wire.now_ms();
    let extras = overdue_protocol::record::pack_extras(&[("enc", b"text"), ("trace", b"\xff\x00")]);
    let item = ScheduleItem { when: overdue_protocol::call::When::In(0), extras, ..timer("a") };
    let armed = stage.arm_one(item);
    assert!((before..=stage.wire.now_ms()).contains(&armed.due_ms));
    assert_eq!(stage.sweep().fired, 1);
    let entry = stage.entries().remove(0);
    let fields: Vec<_> = entry.fields.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(fields, ["id", "gen", "due", "fired", "src", "kind", "payload", "enc", "trace"]);
    assert_eq!(entry.field("trace").unwrap(), &b"\xff\x00"[..]);
    let read = overdue_protocol::Entry::decode(&entry).unwrap();
    assert_eq!((read.generation, read.due_ms, read.attempt), (armed.generation, armed.due_ms, 1));
    stage.assert_balanced();
}
