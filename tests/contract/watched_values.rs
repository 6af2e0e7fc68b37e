//! The values of watched keys, and of keys that are payloads of others: strings and hashes, within bounds (section 5).

use std::collections::BTreeMap;

use bytes::Bytes;
use overdue_protocol::watch::{Capture, Found, Seen, found_values, values_args};
use overdue_tests::Stage;

use crate::watched::{Watched, run};

/// Strings and hashes of every size and some other type, all ending in a minute.
fn fill(w: &mut Watched) {
    let big = vec![b'x'; 5 << 20];
    let commands: [&[&[u8]]; 7] = [
        &[b"SET", b"string", b"\xff\0\r\n"],
        &[b"SET", b"empty", b""],
        &[b"SET", b"big", &big],
        &[b"HSET", b"hash", b"f", b"v", b"\xff", b""],
        &[b"HSET", b"big hash", b"f", &big],
        &[b"RPUSH", b"list", b"a"],
        &[b"XADD", b"stream", b"*", b"a", b"b"],
    ];
    for command in commands {
        w.stage.wire.call(command).unwrap();
        w.stage.wire.call(&[b"PEXPIRE".as_slice(), command[1], b"60000"]).unwrap();
    }
    let fill = "for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], i, '') end redis.call('PEXPIRE', KEYS[1], 60000)";
    for (name, fields) in [("thousand", "1000"), ("many", "50000")] {
        w.stage.wire.call(&["EVAL", fill, "1", name, fields]).unwrap();
    }
}

const NAMES: [&[u8]; 9] =
    [b"string", b"empty", b"big", b"hash", b"big hash", b"list", b"stream", b"many", b"none"];

fn expected() -> Vec<Found> {
    let pair = |f: &'static [u8], v: &'static [u8]| (Bytes::from_static(f), Bytes::from_static(v));
    vec![
        Found::String(Bytes::from_static(b"\xff\0\r\n")),
        Found::String(Bytes::new()),
        Found::Large(5 << 20),
        Found::Hash(vec![pair(b"f", b"v"), pair(b"\xff", b"")]),
        Found::Large((5 << 20) + 1),
        Found::OtherType,
        Found::OtherType,
        Found::Large(0),
        Found::Missing,
    ]
}

#[test]
fn values_of_keys_that_end_soon_are_read_within_bounds() {
    let mut w = Watched::new();
    fill(&mut w);
    w.stage.wire.call(&["SET", "forever", "v"]).unwrap();
    w.stage.wire.call(&["SET", "in an hour", "v", "EX", "3600"]).unwrap();
    let keys = [&NAMES[..], &[b"forever", b"in an hour"]].concat();
    let near = Capture { limit: 1 << 20, within_ms: 60_000 };
    let touched = w.touch(&keys, near);
    let known: BTreeMap<usize, Found> = expected().into_iter().enumerate().take(8).collect();
    assert_eq!((touched.captured, touched.more), (known, vec![]));
    assert!(matches!(touched.seen[2], Seen::Due(_)));
    for capture in [Capture::NONE, Capture { limit: 1 << 20, within_ms: 500 }] {
        assert!(w.touch(&keys, capture).captured.is_empty());
    }
    let tight = w.touch(&keys, Capture { limit: 3, ..near });
    assert_eq!(tight.captured[&0], Found::Large(4));
    let touched = w.touch(&[b"thousand"], near);
    assert!(matches!(&touched.captured[&0], Found::Hash(fields) if fields.len() == 1_000));
    // A value of 5 MiB, when the limit says so: alone in its page.
    let touched = w.touch(&[b"big", b"string"], Capture { limit: 9 << 20, ..near });
    assert!(matches!(&touched.captured[&0], Found::String(value) if value.len() == 5 << 20));
    assert_eq!(touched.more, [1]);
}

#[test]
fn a_page_of_values_is_1_mib_and_the_rest_is_asked_for_again() {
    let mut w = Watched::new();
    let names: Vec<_> = (0..7).map(|n| Bytes::from(n.to_string())).collect();
    for name in &names {
        w.stage.wire.call(&[b"SET".as_slice(), name, &vec![b'x'; 300_000], b"PX", b"60000"]).unwrap();
    }
    let keys: Vec<&[u8]> = names.iter().map(AsRef::as_ref).collect();
    let touched = w.touch(&keys, Capture { limit: 1 << 20, within_ms: 60_000 });
    assert_eq!((touched.captured.len(), touched.more), (3, vec![3, 4, 5, 6]));
    let mut left = names;
    let mut pages = vec![];
    while !left.is_empty() {
        let reply =
            run(&mut w.stage.wire, &overdue_protocol::script::VALUES, values_args(1 << 20, &left)).unwrap();
        let found = found_values(reply, left.len()).unwrap();
        pages.push(found.iter().flatten().count());
        left =
            left.into_iter().zip(found).filter_map(|(key, found)| found.is_none().then_some(key)).collect();
    }
    assert_eq!(pages, [3, 3, 1]);
}

#[test]
fn the_values_of_any_keys_are_read_as_a_touch_reads_them() {
    let mut w = Watched::new();
    fill(&mut w);
    let keys: Vec<_> = NAMES.map(Bytes::from_static).to_vec();
    let reply =
        run(&mut w.stage.wire, &overdue_protocol::script::VALUES, values_args(1 << 20, &keys)).unwrap();
    let found: Vec<_> = found_values(reply, keys.len()).unwrap().into_iter().flatten().collect();
    assert_eq!(found, expected());
}

#[test]
fn hashes_of_many_fields_hold_nobody_up() {
    let mut stage = Stage::new();
    let fields: Vec<_> = (0..1_000).flat_map(|field| [field.to_string(), "some value".to_owned()]).collect();
    stage.assert_nothing_slow(|stage| {
        for k in 0..30 {
            let head = ["HSET".to_owned(), format!("h{k}")].into_iter();
            stage.wire.call(&head.chain(fields.iter().cloned()).collect::<Vec<_>>()).unwrap();
        }
        let mut left: Vec<_> = (0..30).map(|k| Bytes::from(format!("h{k}"))).collect();
        while !left.is_empty() {
            let args = values_args(1 << 20, &left);
            let reply = run(&mut stage.wire, &overdue_protocol::script::VALUES, args).unwrap();
            let found = found_values(reply, left.len()).unwrap();
            assert!(found.iter().flatten().count() < 20);
            left = left
                .into_iter()
                .zip(found)
                .filter_map(|(key, found)| found.is_none().then_some(key))
                .collect();
        }
    });
}
