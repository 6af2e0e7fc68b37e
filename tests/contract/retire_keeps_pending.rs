//! A consumer with entries pending is never removed: they would be lost (SCENARIOS fact 10).

use overdue_protocol::call::{CompleteItem, Retire, Retired};
use overdue_tests::Stage;
use overdue_tests::stage::group;

fn retire(stage: &mut Stage, name: &str, consumer: &'static str, min_idle_ms: u64) -> Retired {
    let call = Retire {
        partition: stage.partition.clone(),
        group: group(name),
        consumer: consumer.into(),
        min_idle_ms,
    };
    stage.wire.run(&call).unwrap()
}

#[test]
fn pending_busy_retired_absent() {
    let mut stage = Stage::new();
    assert_eq!(retire(&mut stage, "billing", "c", 0), Retired::Absent);
    stage.join("billing");
    assert_eq!(retire(&mut stage, "billing", "c", 0), Retired::Absent);
    let entries = stage.deliver("billing", "c", &["a"]);
    assert_eq!(retire(&mut stage, "billing", "c", 0), Retired::Pending);
    assert_eq!(retire(&mut stage, "mailing", "c", 0), Retired::Absent);
    stage.complete("billing", vec![CompleteItem::Done(entries[0])]);
    assert_eq!(retire(&mut stage, "billing", "c", 3_600_000), Retired::Busy);
    assert_eq!(retire(&mut stage, "billing", "c", 0), Retired::Retired);
    assert_eq!(retire(&mut stage, "billing", "c", 0), Retired::Absent);
    stage.assert_balanced();
}
