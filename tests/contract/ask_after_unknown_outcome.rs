//! A lost answer of `schedule` is asked for, never sent again.

use bytes::Bytes;
use overdue_protocol::call::{Ask, Change, ScheduleItem};
use overdue_tests::Stage;
use overdue_tests::stage::{past, timer};

#[test]
fn our_eight_bytes_are_the_answer_and_nothing_is_written() {
    let mut stage = Stage::new();
    let call = stage.to_arm(vec![timer("a"), timer("b"), timer("never")]);
    let armed = stage.arm(vec![timer("a"), timer("b")]);
    let other = Bytes::from_static(b"another.");
    stage.arm_one(ScheduleItem { call: other, ..timer("b") });
    let before = stage.snapshot();
    let told = stage.wire.run(&Ask(call)).unwrap();
    assert_eq!(told, [Some((armed[0].generation, armed[0].due_ms)), None, None]);
    assert_eq!(stage.snapshot(), before);
}

#[test]
fn a_timer_that_fired_meanwhile_cannot_be_told() {
    let mut stage = Stage::new();
    let call = stage.to_arm(vec![past("a")]);
    stage.wire.run(&call).unwrap();
    stage.sweep();
    assert_eq!(stage.wire.run(&Ask(call)).unwrap(), [None]);
}

#[test]
fn a_whole_call_of_many_payloads_can_be_asked_for_and_holds_the_server_shortly() {
    let mut stage = Stage::new();
    let item = |n: u32, size| ScheduleItem { payload: vec![b'x'; size].into(), ..timer(n.to_string()) };
    let call = stage.to_arm((0..1000).map(|n| item(n, 1024)).collect());
    stage.wire.run(&call).unwrap();
    assert!(stage.wire.run(&Ask(call)).unwrap().iter().all(Option::is_some));
    stage.assert_nothing_slow(|stage| {
        let many: Vec<_> = (0..40).map(|n| item(n, 1024 * 1024)).collect();
        many.iter().for_each(|one| assert_eq!(stage.arm_one(one.clone()).change, Change::Armed));
        let bare = many.into_iter().map(|item| ScheduleItem { payload: Bytes::new(), ..item }).collect();
        let told = stage.wire.run(&Ask(stage.to_arm(bare))).unwrap();
        assert!(told[0].is_some() && told[39].is_none());
    });
}
