//! A generation is used once: it is half of the idempotency key.

use overdue_tests::Stage;
use overdue_tests::stage::{past, timer};

#[test]
fn not_within_a_call_not_after_firing_and_not_after_flushall() {
    let mut stage = Stage::new();
    let mut all = vec![];
    for _ in 0..20 {
        all.extend(stage.arm((0..100).map(|_| past("a")).collect()).iter().map(|armed| armed.generation));
        stage.sweep();
        all.push(stage.arm_one(timer("b")).generation);
        stage.wire.call(&["FLUSHALL"]).unwrap();
    }
    assert!(all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
}

#[test]
fn not_when_the_last_one_lies_far_in_the_future() {
    let mut stage = Stage::new();
    let far: u64 = 4_102_444_800_000_000;
    let tally = stage.partition.tally();
    stage.wire.call(&[b"HSET".as_slice(), &tally, b"last", far.to_string().as_bytes()]).unwrap();
    let armed = stage.arm(vec![timer("a"), timer("b"), timer("a")]);
    assert_eq!(armed.iter().map(|one| one.generation).collect::<Vec<_>>(), [far + 1, far + 2, far + 3]);
    assert_eq!(stage.arm_one(past("c")).generation, far + 4);
    assert_eq!(stage.tally("last") as u64, far + 4);
    stage.sweep();
    assert_eq!(stage.entries()[0].field("gen").unwrap(), &(far + 4).to_string());
    // A timer without a record gets a new one too.
    let index = stage.partition.index();
    stage.wire.call(&[b"ZADD".as_slice(), &index, b"1", b"foreign"]).unwrap();
    stage.sweep();
    assert_eq!(stage.entries()[1].field("gen").unwrap(), &(far + 5).to_string());
    assert_eq!(stage.arm_one(timer("d")).generation, far + 6);
}

#[test]
fn a_last_that_is_no_generation_counts_as_none() {
    for last in ["nan", "inf", "-1", "1e300", "9007199254740993", "soon", ""] {
        let mut stage = Stage::new();
        let tally = stage.partition.tally();
        stage.wire.call(&[b"HSET".as_slice(), &tally, b"last", last.as_bytes()]).unwrap();
        let now = stage.wire.now_ms();
        let armed = stage.arm(vec![timer("a"), timer("b")]);
        assert!(armed[0].generation < armed[1].generation, "{last}: {armed:?}");
        assert!(armed[0].generation / 1000 >= now && armed[0].generation / 1000 < now + 60_000, "{last}");
        assert_eq!(stage.tally("last") as u64, armed[1].generation);
    }
}
