//! What stands in the index or beside it without our doing fires once, raw, and stops nobody.

use bytes::Bytes;
use overdue_protocol::call::{Change, ScheduleItem};
use overdue_protocol::record::pack_extras;
use overdue_protocol::{Due, Entry, Record};
use overdue_tests::Stage;
use overdue_tests::stage::{id, past, timer};

fn zadd(stage: &mut Stage, score: &str, name: &str) {
    let index = stage.partition.index();
    stage.wire.call(&[b"ZADD".as_slice(), &index, score.as_bytes(), name.as_bytes()]).unwrap();
}

fn hset(stage: &mut Stage, name: &str, record: &[u8]) {
    let timers = stage.partition.timers();
    stage.wire.call(&[b"HSET".as_slice(), &timers, name.as_bytes(), record]).unwrap();
}

#[test]
fn members_without_a_record_fire_with_a_flaw_whatever_their_score() {
    let mut stage = Stage::new();
    let scores = [
        ("-inf", "1"),
        ("-1767225600000", "1"),
        ("-0.5", "1"),
        ("0", "1"),
        ("0.5", "1"),
        ("1", "1"),
        ("1234.75", "1234"),
    ];
    for (score, _) in scores {
        zadd(&mut stage, score, score);
    }
    zadd(&mut stage, "inf", "never");
    zadd(&mut stage, "1e300", "never either");
    let swept = stage.sweep();
    assert_eq!((swept.fired, swept.flawed, swept.more), (7, 7, false));
    assert_eq!(swept.next_due_ms, Some(Due::MAX_MS));
    let mut generations = vec![];
    for (entry, (name, due)) in stage.entries().iter().zip(scores) {
        assert_eq!(entry.field("flaw").unwrap(), "no record");
        let read = Entry::decode(entry).unwrap();
        assert_eq!((read.id.as_bytes(), read.due_ms.to_string().as_str()), (&name.into(), due));
        generations.push(read.generation);
    }
    assert!(generations.windows(2).all(|two| two[0] < two[1]));
    assert_eq!(stage.tally("foreign"), 7);
    assert_eq!(stage.cancel(&["never", "never either"]).len(), 2);
    stage.assert_balanced();
}

#[test]
fn records_with_wrong_types_among_good_ones_fire_raw_and_each_fires_once() {
    let bad: &[&[u8]] = &[
        b"\x92\x07\x92\x01\x02",
        b"",
        b"\xc1",
        b"hello",
        b"\x94\xa1a\xa0\xa0\x90",
        b"\x94\x01\x92\x01\x02\xa0\x90",
        b"\x94\x01\xa0\xa0\x91\xa1a",
        b"\x94\x01\xa0\xa0\x92\xa1a\x92\x01\x02",
        b"\x94\xff\xa0\xa0\x90",
        b"\x94\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00\xa0\xa0\x90",
        b"\x94\x01\xa0",
        &[0x91; 5000],
    ];
    for record in bad {
        let mut stage = Stage::new();
        let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        stage.arm(names.iter().map(past).collect());
        hset(&mut stage, "4", record);
        let swept = stage.sweep();
        assert_eq!((swept.fired, swept.flawed), (10, 1), "{record:?}");
        assert_eq!((stage.sweep().fired, stage.entries().len()), (0, 10));
        let flawed: Vec<_> =
            stage.entries().into_iter().filter(|entry| entry.field("flaw").is_some()).collect();
        assert_eq!(flawed.len(), 1);
        assert_eq!(flawed[0].field("id").unwrap(), "4");
        assert_eq!(flawed[0].field("payload").unwrap(), record);
        assert_eq!(stage.wire.hgetall(stage.partition.timers()).unwrap().len(), 0);
        stage.assert_balanced();
    }
}

#[test]
fn of_damaged_records_script_and_library_say_the_same() {
    let mut stage = Stage::new();
    let extras = pack_extras(&[("enc", b"text"), ("trace", b"\x01")]);
    let short = ScheduleItem { payload: "p".into(), extras, ..past("short") };
    let long = |name, size| ScheduleItem { payload: vec![b'x'; size].into(), ..past(name) };
    stage.arm(vec![short, long("200", 200), long("300", 300), long("70000", 70_000)]);
    let records = stage.wire.hgetall(stage.partition.timers()).unwrap();
    let mut damaged = vec![];
    for record in records.values() {
        let ends = (0..20.min(record.len())).chain(record.len().saturating_sub(20)..record.len());
        for at in ends {
            damaged.push(record[..at].to_vec());
            for byte in [0x00, 0x7f, 0x90, 0xc0, 0xc4, 0xcf, 0xd9, 0xda, 0xdb, 0xff] {
                let mut other = record.to_vec();
                other[at] = byte;
                damaged.push(other);
            }
        }
    }
    assert!(damaged.len() > 1000);
    stage.cancel(&["short", "200", "300", "70000"]);
    for (n, record) in damaged.iter().enumerate() {
        zadd(&mut stage, "1", &n.to_string());
        hset(&mut stage, &n.to_string(), record);
    }
    while stage.sweep().more {}
    let entries = stage.entries();
    assert_eq!(entries.len(), damaged.len());
    for entry in entries {
        let n: usize = std::str::from_utf8(entry.field("id").unwrap()).unwrap().parse().unwrap();
        let raw = Bytes::from(damaged[n].clone());
        match (entry.field("flaw"), Record::decode(&raw)) {
            (None, Some(record)) => {
                assert_eq!(entry.field("payload"), Some(&record.payload));
                assert_eq!(entry.field("gen").unwrap(), &record.generation.to_string());
            }
            (Some(_), _) => assert_eq!(entry.field("payload"), Some(&raw)),
            (None, None) => panic!("the library does not read what the script read: {raw:?}"),
        }
    }
}

#[test]
fn a_record_of_a_later_format_fires_as_it_is() {
    let mut stage = Stage::new();
    stage.arm_one(past("a"));
    hset(&mut stage, "a", b"\x96\x07\xa2hi\xa0\x90\xa5later\x01");
    assert_eq!(stage.sweep().flawed, 0);
    let entry = stage.entries().remove(0);
    assert_eq!((entry.field("gen").unwrap(), entry.field("payload").unwrap()), (&"7".into(), &"hi".into()));
    assert_eq!(entry.field("flaw"), None);
}

#[test]
fn fire_schedule_and_cancel_meet_the_same_records_and_the_books_balance() {
    let mut stage = Stage::new();
    let names = ["fired", "re-armed", "cancelled", "asked"];
    stage.arm(names.map(past).to_vec());
    names.iter().for_each(|name| hset(&mut stage, name, b"\x92\x07\x92\x01\x02"));
    names.iter().for_each(|name| zadd(&mut stage, "1", &format!("{name} foreign")));
    assert_eq!(stage.fire(&[id("fired"), id("fired foreign")]).flawed, 2);
    let armed = stage.arm(vec![timer("re-armed"), timer("re-armed foreign")]);
    assert!(
        armed
            .iter()
            .all(|one| matches!(one.change, Change::FiredOld(old) if old > 0 && old < one.generation))
    );
    stage.cancel(&["cancelled", "cancelled foreign"]);
    assert_eq!(stage.sweep().fired, 2);
    assert_eq!(stage.entries().len(), 6);
    stage.assert_balanced();
    // One that is not due has no record to count as replaced.
    zadd(&mut stage, "7e12", "x");
    assert_eq!(stage.arm_one(timer("x")).change, Change::Replaced);
    stage.assert_balanced();
}
