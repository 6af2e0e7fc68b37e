//! What `schedule` refuses, it refuses before it writes anything.

use bytes::Bytes;
use overdue_protocol::call::{Ask, Schedule, Scheduled, When};
use overdue_protocol::{Call, Due, Reply};
use overdue_tests::Stage;
use overdue_tests::stage::{at, past, timer};

#[test]
fn a_caller_with_another_number_of_partitions_splits_no_queue() {
    let mut stage = Stage::new();
    stage.arm_one(timer("a"));
    let before = stage.snapshot();
    let other = Schedule { partitions: 4, ..stage.to_arm(vec![timer("b"), past("a")]) };
    assert_eq!(stage.wire.run(&other).unwrap(), Scheduled::Partitions(1));
    assert_eq!(stage.wire.run(&Ask(other)).unwrap(), [None, None]);
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn a_due_behind_the_last_millisecond_refuses_the_whole_call() {
    let mut stage = Stage::new();
    let fits = |stage: &mut Stage, ms| {
        let call = stage.to_arm(vec![
            timer("a"),
            overdue_protocol::call::ScheduleItem { when: When::In(ms), ..timer("b") },
        ]);
        stage.wire.run(&call).unwrap()
    };
    assert_eq!(fits(&mut stage, Due::MAX_MS), Scheduled::OutOfRange(1));
    assert!(stage.snapshot().is_empty());
    let room = Due::MAX_MS - stage.wire.now_ms() - 60_000;
    assert!(matches!(fits(&mut stage, room), Scheduled::Items(_)));
    let last = stage.arm_one(overdue_protocol::call::ScheduleItem { when: at(Due::MAX_MS), ..timer("c") });
    assert_eq!(last.due_ms, Due::MAX_MS);
}

/// The arguments of a call, with some replaced: what a client in another language may send.
fn raw(stage: &mut Stage, base: &str, due: &str, mode: &str) -> Result<Reply, String> {
    let call = stage.to_arm(vec![timer("first"), timer("a")]);
    let mut args = call.args();
    let second = 3 + 8;
    args[second + 1] = Bytes::copy_from_slice(base.as_bytes());
    args[second + 2] = Bytes::copy_from_slice(due.as_bytes());
    args[second + 3] = Bytes::copy_from_slice(mode.as_bytes());
    let keys = call.keys();
    let head = [Bytes::from("EVAL"), Bytes::from(call.script().text), Bytes::from(keys.len().to_string())];
    stage.wire.call(&head.into_iter().chain(keys).chain(args).collect::<Vec<_>>())
}

#[test]
fn a_due_that_is_not_plain_digits_in_bounds_is_refused() {
    let mut stage = Stage::new();
    let refused = Reply::Array(vec!["RANGE".into(), Reply::Array(vec![Reply::Int(1)])]);
    let beyond = (Due::MAX_MS + 1).to_string();
    let bad = [
        "",
        "nan",
        "inf",
        "0x10",
        "1e400",
        "1e3",
        "-5",
        "+5",
        " 5",
        "5 ",
        "5.0",
        "5\n",
        "0",
        "9007199254740992",
    ];
    for due in bad.into_iter().chain([beyond.as_str(), "99999999999999999999999999"]) {
        assert_eq!(raw(&mut stage, "at", due, "upsert").unwrap(), refused, "at {due:?}");
        if due != "0" {
            assert_eq!(raw(&mut stage, "in", due, "upsert").unwrap(), refused, "in {due:?}");
        }
    }
    let mode = Reply::Array(vec!["MODE".into(), Reply::Array(vec![Reply::Int(1)])]);
    assert_eq!(raw(&mut stage, "at", "5", "sideways").unwrap(), mode);
    assert!(stage.snapshot().is_empty());
    assert!(raw(&mut stage, "at", "1", "upsert").is_ok());
    assert_eq!(stage.index().len(), 2);
}
