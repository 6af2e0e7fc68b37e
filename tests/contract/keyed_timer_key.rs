//! The plain key of a keyed timer follows the index, and never leads it.

use bytes::Bytes;
use overdue_protocol::Reply;
use overdue_protocol::call::{Change, ScheduleItem, When};
use overdue_tests::Stage;
use overdue_tests::stage::{at, id, past, timer};

fn keyed(name: &str) -> ScheduleItem {
    ScheduleItem { keyed: true, ..timer(name) }
}

fn value(stage: &mut Stage, name: &str) -> Option<Bytes> {
    let key = stage.partition.timer_key(&id(name));
    stage.wire.call(&[b"GET".as_slice(), &key]).unwrap().into_bytes()
}

fn set(stage: &mut Stage, command: &str, name: &str, rest: &[&str]) {
    let key = stage.partition.timer_key(&id(name));
    let args: Vec<&[u8]> =
        [command.as_bytes(), &key].into_iter().chain(rest.iter().map(|part| part.as_bytes())).collect();
    stage.wire.call(&args).unwrap();
}

#[test]
fn it_holds_the_generation_and_ends_at_the_deadline() {
    let mut stage = Stage::new();
    let armed = stage.arm(vec![timer("plain"), keyed("a"), keyed("b/}{:\n")]);
    for (name, one) in [("a", armed[1]), ("b/}{:\n", armed[2])] {
        assert_eq!(value(&mut stage, name).unwrap(), one.generation.to_string());
        let key = stage.partition.timer_key(&id(name));
        let now = stage.wire.now_ms();
        let left = stage.wire.call(&[b"PTTL".as_slice(), &key]).unwrap().as_u64().unwrap();
        assert!((now + left).abs_diff(one.due_ms) < 1000, "{left}");
    }
    assert_eq!(value(&mut stage, "plain"), None);
    let again = stage.arm_one(ScheduleItem { when: When::In(9_000_000), ..keyed("a") });
    assert_eq!(value(&mut stage, "a").unwrap(), again.generation.to_string());
    stage.assert_balanced();
}

#[test]
fn it_goes_when_the_timer_is_cancelled_or_armed_without_it() {
    let mut stage = Stage::new();
    stage.arm(vec![keyed("a"), keyed("b"), keyed("c")]);
    stage.arm(vec![timer("a"), timer("d")]);
    stage.cancel(&["b"]);
    assert_eq!((value(&mut stage, "a"), value(&mut stage, "b")), (None, None));
    assert!(value(&mut stage, "c").is_some());
    // In one call: what stands last counts.
    stage.arm(vec![timer("c"), keyed("e"), timer("e"), timer("f"), keyed("f"), keyed("a"), timer("a")]);
    assert_eq!((value(&mut stage, "c"), value(&mut stage, "e"), value(&mut stage, "a")), (None, None, None));
    assert!(value(&mut stage, "f").is_some());
    // A past due has no key: nothing could wait for its end.
    stage.arm_one(ScheduleItem { keyed: true, ..past("f") });
    assert_eq!(value(&mut stage, "f"), None);
    stage.assert_balanced();
}

#[test]
fn whatever_others_do_to_it_the_index_decides() {
    let mut stage = Stage::new();
    let due = stage.wire.now_ms() + 40;
    let names = ["deleted", "persisted", "set", "list", "shortened"];
    stage.arm(names.iter().map(|name| ScheduleItem { when: at(due), ..keyed(name) }).collect());
    set(&mut stage, "DEL", "deleted", &[]);
    set(&mut stage, "PERSIST", "persisted", &[]);
    set(&mut stage, "SET", "set", &["x"]);
    set(&mut stage, "DEL", "list", &[]);
    set(&mut stage, "RPUSH", "list", &["x"]);
    set(&mut stage, "PEXPIRE", "shortened", &["1"]);
    let early = stage.fire(&names.map(id));
    let on_time = |word: &overdue_protocol::call::FiredWord| {
        matches!(word, overdue_protocol::call::FiredWord::Early(ms) if *ms == due)
            || matches!(word, overdue_protocol::call::FiredWord::Fired(_) if early.now_ms >= due)
    };
    assert!(early.words.iter().all(on_time), "{early:?}");
    stage.pass(due);
    while stage.sweep().more {}
    assert_eq!(stage.entries().len(), names.len());
    // What is left of the keys stands in nobody's way.
    let armed = stage.arm(names.iter().map(keyed_again).collect());
    assert!(armed.iter().all(|one| one.change == Change::Armed));
    for name in names {
        assert!(value(&mut stage, name).is_some());
    }
    stage.cancel(&names);
    let left = stage.wire.call(&["KEYS", "*:key:*"]).unwrap();
    assert_eq!(left, Reply::Array(vec![]));
    stage.assert_balanced();
}

fn keyed_again(name: &&str) -> ScheduleItem {
    keyed(name)
}
