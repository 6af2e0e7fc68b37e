//! A sweep is one bounded page, never early, and says what comes next.

use bytes::Bytes;
use overdue_protocol::call::{CompleteItem, FiredWord, ScheduleItem, Sweep};
use overdue_tests::Stage;
use overdue_tests::stage::{at, id, past, timer};

#[test]
fn a_page_ends_at_its_limit_and_says_that_there_is_more() {
    let mut stage = Stage::new();
    stage.arm((0..600).map(|n| past(n.to_string())).collect());
    let pages: Vec<_> = (0..4).map(|_| stage.sweep()).map(|swept| (swept.fired, swept.more)).collect();
    assert_eq!(pages, [(256, true), (256, true), (88, false), (0, false)]);
    let mut ids = stage.fired_ids();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 600);
    stage.assert_balanced();
}

#[test]
fn a_page_ends_at_one_mebibyte_and_holds_always_one() {
    let mut stage = Stage::new();
    let item = |n: u32, size: usize| ScheduleItem {
        payload: vec![b'x'; size].into(),
        when: at(1000 + u64::from(n)),
        ..timer(n.to_string())
    };
    stage.arm_one(item(0, 3 * 1024 * 1024));
    for n in 1..5 {
        stage.arm_one(item(n, 400 * 1024));
    }
    let pages: Vec<_> = (0..4).map(|_| stage.sweep()).map(|swept| (swept.fired, swept.more)).collect();
    assert_eq!(pages, [(1, true), (2, true), (2, false), (0, false)]);
    assert_eq!(stage.fired_ids(), ["0", "1", "2", "3", "4"]);
    stage.assert_balanced();
}

#[test]
fn in_a_page_of_many_deadlines_each_entry_has_its_own() {
    let mut stage = Stage::new();
    let dues: Vec<_> = (0..200_u64).map(|n| 1000 + n / 70 * 5 + n / 190 * (n % 190)).collect();
    let item = |(n, due): (usize, &u64)| ScheduleItem { when: at(*due), ..timer(format!("{n:03}")) };
    stage.arm(dues.iter().enumerate().map(item).collect());
    assert_eq!(stage.sweep().dues_ms, dues);
    let fired: Vec<u64> = stage
        .entries()
        .iter()
        .map(|entry| std::str::from_utf8(entry.field("due").unwrap()).unwrap().parse().unwrap())
        .collect();
    assert_eq!(fired, dues);
    stage.assert_balanced();
}

#[test]
fn large_ones_behind_small_ones_end_the_page_where_it_is_full() {
    let mut stage = Stage::new();
    let item = |n: u64, size: usize| ScheduleItem {
        payload: vec![b'x'; size].into(),
        when: at(1000 + n),
        ..timer(n.to_string())
    };
    stage.arm((0..20).map(|n| item(n, 10)).collect());
    for n in 20..23 {
        stage.arm_one(item(n, 600 * 1024));
    }
    stage.arm((23..30).map(|n| item(n, 10)).collect());
    let pages: Vec<_> = (0..4).map(|_| stage.sweep()).map(|swept| (swept.fired, swept.more)).collect();
    assert_eq!(pages, [(21, true), (1, true), (8, false), (0, false)]);
    let all: Vec<_> = (0..30).map(|n| n.to_string()).collect();
    assert_eq!(stage.fired_ids(), all);
    stage.assert_balanced();
}

#[test]
fn large_payloads_by_the_dozen_never_hold_the_server() {
    let large: Bytes = vec![b'x'; 1024 * 1024].into();
    let names: Vec<_> = (0..96).map(|n| n.to_string()).collect();
    let ids: Vec<_> = names.iter().map(id).collect();
    let is_fired = |word: &&FiredWord| matches!(word, FiredWord::Fired(_));
    let mut stage = Stage::new();
    stage.assert_nothing_slow(|stage| {
        stage.join("billing");
        for name in &names {
            stage.arm_one(ScheduleItem { payload: large.clone(), ..past(name) });
        }
        let (mut by_sweep, mut by_name) = (0, 0);
        while by_sweep + by_name < 96 {
            by_sweep += stage.sweep().fired as usize;
            by_name += stage.fire(&ids).words.iter().filter(is_fired).count();
        }
        assert_eq!((by_sweep, by_name), (48, 48));
        let by = stage.by("billing", "c");
        for _ in 0..24 {
            let [entry] = stage.read_some("billing", "c", 1).try_into().unwrap();
            stage.retry(by.clone(), &[entry.id], 0);
            stage.sweep_retries();
            let [entry] = stage.read_some("billing", "d", 1).try_into().unwrap();
            stage.complete("billing", vec![CompleteItem::Done(entry.id)]);
            stage.trim();
        }
    });
    stage.assert_balanced();
}

#[test]
fn nothing_fires_early_and_the_next_deadline_is_told() {
    let mut stage = Stage::new();
    let due = stage.wire.now_ms() + 60;
    stage.arm(vec![ScheduleItem { when: at(due), ..timer("a") }, timer("later"), past("past")]);
    let mut fired = stage.sweep();
    assert_eq!((fired.fired, fired.dues_ms.as_slice(), fired.next_due_ms), (1, &[1000][..], Some(due)));
    while fired.dues_ms != [due] {
        assert!(fired.now_ms <= due, "{fired:?}");
        fired = stage.sweep();
        assert!(fired.next_due_ms.is_some());
    }
    assert!(fired.now_ms >= due && fired.next_due_ms.unwrap() > due);
    let entry = stage.entries().pop().unwrap();
    assert_eq!(entry.field("fired").unwrap(), &fired.now_ms.to_string());
    stage.cancel(&["later"]);
    let last = stage.sweep();
    assert_eq!((last.fired, last.more, last.next_due_ms), (0, false, None));
    stage.assert_balanced();
}

#[test]
fn grace_leaves_the_newly_due_to_the_notification() {
    let mut stage = Stage::new();
    let due = stage.wire.now_ms();
    stage.arm(vec![ScheduleItem { when: at(due), ..timer("new") }, past("old")]);
    let patient = Sweep { grace_ms: 600_000, ..stage.to_sweep() };
    let swept = stage.wire.run(&patient).unwrap();
    assert_eq!((swept.fired, swept.more, swept.next_due_ms), (1, false, Some(due)));
    assert_eq!(stage.sweep().fired, 1);
    stage.assert_balanced();
}

#[test]
fn another_process_that_fired_here_lately_is_told_and_only_another() {
    let mut stage = Stage::new();
    let sweep = |stage: &mut Stage, name: &'static str| {
        let sweep = Sweep { sweeper: Bytes::from_static(name.as_bytes()), ..stage.to_sweep() };
        stage.wire.run(&sweep).unwrap()
    };
    stage.arm_one(past("a"));
    assert!(!sweep(&mut stage, "relay:7:a").another);
    let at = stage.wire.now_ms();
    assert!(!sweep(&mut stage, "relay:7:a").another);
    let other = sweep(&mut stage, "relay:8:b");
    assert!(other.another || other.now_ms > at + 90);
    stage.pass(at + 101);
    assert!(!sweep(&mut stage, "relay:8:b").another, "it fired nothing for 100 ms");
}
