//! `cancel` disarms what is armed, and nothing else.

use overdue_protocol::call::{Cancelled, ScheduleItem};
use overdue_tests::Stage;
use overdue_tests::stage::{id, past, timer};

#[test]
fn any_generation_the_given_one_another_none_and_the_same_id_twice() {
    let mut stage = Stage::new();
    let armed = stage.arm(["a", "b", "c"].map(timer).to_vec());
    let disarmed =
        |n: usize| Cancelled::Disarmed { generation: armed[n].generation, due_ms: armed[n].due_ms };
    let words = stage.cancel_if(vec![
        (id("a"), None),
        (id("a"), None),
        (id("b"), Some(armed[1].generation)),
        (id("c"), Some(armed[1].generation)),
        (id("never"), None),
        (id("never"), Some(1)),
    ]);
    let other = Cancelled::Other(armed[2].generation);
    assert_eq!(
        words,
        [disarmed(0), Cancelled::Absent, disarmed(1), other, Cancelled::Absent, Cancelled::Absent]
    );
    assert_eq!(stage.index().len(), 1);
    assert_eq!(stage.tally("cancelled"), 2);
    stage.assert_balanced();
}

#[test]
fn what_is_due_and_not_swept_can_still_be_cancelled_what_fired_cannot() {
    let mut stage = Stage::new();
    stage.arm(vec![past("a"), past("b")]);
    assert!(matches!(stage.cancel(&["a"])[0], Cancelled::Disarmed { due_ms: 1000, .. }));
    stage.sweep();
    assert_eq!(stage.fired_ids(), ["b"]);
    let before = stage.snapshot();
    assert_eq!(stage.cancel(&["a", "b"]), [Cancelled::Absent, Cancelled::Absent]);
    assert_eq!(stage.snapshot(), before);
    stage.assert_balanced();
}

#[test]
fn a_member_without_a_record_goes_too_and_is_in_no_book() {
    let mut stage = Stage::new();
    let index = stage.partition.index();
    for (score, name) in [("1", "past"), ("inf", "never"), ("-7.5", "odd")] {
        stage.wire.call(&[b"ZADD".as_slice(), &index, score.as_bytes(), name.as_bytes()]).unwrap();
    }
    let words = stage.cancel(&["past", "never", "odd"]);
    let due = [1, overdue_protocol::Due::MAX_MS, 1];
    assert_eq!(words, due.map(|due_ms| Cancelled::Disarmed { generation: 0, due_ms }));
    stage.assert_balanced();
}

#[test]
fn large_payloads_are_cancelled_in_steps_that_end() {
    let names: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let mut stage = Stage::new();
    stage.assert_nothing_slow(|stage| {
        for name in &names {
            stage.arm_one(ScheduleItem { payload: vec![b'x'; 1024 * 1024].into(), ..timer(name) });
        }
        let mut left: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut calls = 0;
        while !left.is_empty() {
            let words = stage.cancel(&left);
            let (before, mut words) = (left.len(), words.iter());
            left.retain(|_| words.next() == Some(&Cancelled::More));
            assert!(left.len() < before);
            calls += 1;
        }
        assert!(calls > 10, "{calls}");
        assert_eq!(stage.tally("cancelled"), 40);
    });
    stage.assert_balanced();
}
