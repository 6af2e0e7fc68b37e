//! A notification names a timer; it may be late, double, forged or early.

use overdue_protocol::call::{FiredWord, ScheduleItem};
use overdue_tests::Stage;
use overdue_tests::stage::{at, id, past, timer};

#[test]
fn what_is_due_fires_once_whoever_names_it_and_how_often() {
    let mut stage = Stage::new();
    let armed = stage.arm(vec![past("a"), past("b/\n\u{0}"), timer("early"), past("swept")]);
    let names = [id("a"), id("a"), id("never"), id("early"), id("b/\n\u{0}")];
    let fired = stage.fire(&names);
    let early = FiredWord::Early(armed[2].due_ms);
    let expected = [FiredWord::Fired(1000), FiredWord::Gone, FiredWord::Gone, early, FiredWord::Fired(1000)];
    assert_eq!((fired.words.as_slice(), fired.flawed), (&expected[..], 0));
    let again = stage.fire(&names).words;
    assert_eq!(again, [FiredWord::Gone, FiredWord::Gone, FiredWord::Gone, early, FiredWord::Gone]);
    assert_eq!(stage.sweep().fired, 1);
    let sources: Vec<_> = stage.entries().iter().map(|entry| entry.field("src").unwrap().clone()).collect();
    assert_eq!(sources, ["notification", "notification", "index"]);
    assert_eq!(stage.entries()[0].field("gen").unwrap(), &armed[0].generation.to_string());
    stage.assert_balanced();
}

#[test]
fn a_notification_of_an_earlier_life_does_not_fire_the_later_one() {
    let mut stage = Stage::new();
    stage.arm_one(past("a"));
    stage.arm_one(timer("a"));
    assert!(matches!(stage.fire(&[id("a")]).words[0], FiredWord::Early(_)));
    assert_eq!(stage.entries().len(), 1);
    stage.assert_balanced();
}

#[test]
fn a_thousand_names_fit_and_a_full_page_asks_to_be_called_again() {
    let mut stage = Stage::new();
    let names: Vec<_> = (0..1000).map(|n| id(n.to_string())).collect();
    stage.arm((0..1000).map(|n: u32| past(n.to_string())).collect());
    assert!(stage.fire(&names).words.iter().all(|word| *word == FiredWord::Fired(1000)));
    let large = |name: &str| ScheduleItem { payload: vec![0; 700_000].into(), when: at(5), ..timer(name) };
    stage.arm_one(large("a"));
    stage.arm_one(large("b"));
    stage.arm_one(past("c"));
    let words = stage.fire(&[id("never"), id("a"), id("b"), id("c")]).words;
    assert_eq!(words, [FiredWord::Gone, FiredWord::Fired(5), FiredWord::More, FiredWord::More]);
    assert_eq!(stage.fire(&[id("b"), id("c")]).words, [FiredWord::Fired(5), FiredWord::Fired(1000)]);
    stage.assert_balanced();
}
