//! `maxmemory` reached with `noeviction`: arming is refused and writes nothing, all that takes out goes on (SCENARIOS S41).

use overdue_protocol::call::{CompleteItem, Joined, Replayed, Words};
use overdue_tests::Stage;
use overdue_tests::stage::{id, past, timer};

fn full(stage: &mut Stage, yes: bool) {
    stage.wire.call(&["CONFIG", "SET", "maxmemory", if yes { "1" } else { "0" }]).unwrap();
}

#[test]
fn schedule_says_so_and_writes_nothing_and_firing_and_handling_go_on() {
    let mut stage = Stage::new();
    assert_eq!(stage.join("billing"), Joined::Created);
    stage.arm((0..40).map(|n| past(n.to_string())).collect());
    stage.arm_one(timer("cancelled"));
    let by = stage.by("billing", "c");
    full(&mut stage, true);

    let before = stage.snapshot();
    let refused = stage.wire.run(&stage.to_arm(vec![timer("new"), past("0")])).unwrap_err();
    assert!(refused.contains("OOM") || refused.contains("maxmemory"), "{refused}");
    assert_eq!(stage.snapshot(), before);

    let named: Vec<_> = (0..10).map(|n| id(n.to_string())).collect();
    stage.fire(&named);
    assert_eq!(stage.sweep().fired, 30);
    let entries: Vec<_> = stage.read("billing", "c").iter().map(|entry| entry.id).collect();
    assert_eq!(entries.len(), 40);
    assert_eq!(stage.retry(by.clone(), &entries[..10], 0), [Words::Ok; 10]);
    assert_eq!(stage.release(by.clone(), &entries[10..20]), [Words::Ok; 10]);
    assert_eq!(stage.bury(by, &entries[20..30]), [Words::Ok; 10]);
    let done = entries[30..].iter().copied().map(CompleteItem::Done).collect();
    let completed = stage.complete("billing", done);
    assert_eq!(completed.done, 10);
    assert_eq!(stage.sweep_retries().fired, 20);
    let letters: Vec<_> = stage.dead().iter().map(|letter| letter.id).collect();
    let replay = overdue_protocol::call::Replay { partition: stage.partition.clone(), letters };
    assert_eq!(stage.wire.run(&replay).unwrap(), [Replayed::Ok; 10]);
    stage.cancel(&["cancelled"]);
    assert_eq!(stage.trim().length, 30);

    full(&mut stage, false);
    stage.assert_balanced();
    stage.arm_one(timer("new"));
    assert_eq!(stage.tally("done:billing"), 10);
    stage.assert_balanced();
}
