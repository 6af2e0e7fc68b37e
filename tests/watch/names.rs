//! Whatever a key is called and holds: its timeout has its very name, its database, and the payload that its rule asks for.

use std::collections::BTreeMap;

use bytes::Bytes;
use overdue_protocol::Entry;
use overdue_sandbox::Connection;

use crate::pair::{KEYEVENT, Pair, name, partition, rule};

/// Keys of these tests end so long after they are written.
const TTL: &str = "1500";
const KEYSPACE: &str = "";

/// Every timeout of a queue by database and name.
fn counts(pair: &Pair, queue: &str) -> BTreeMap<(Option<u8>, Bytes), usize> {
    let mut counts = BTreeMap::new();
    for entry in pair.entries(queue) {
        *counts.entry((entry.db, entry.id.into_bytes())).or_default() += 1;
    }
    counts
}

fn by_name(entries: Vec<Entry>) -> BTreeMap<String, Entry> {
    let all = entries.len();
    let by_name: BTreeMap<_, _> =
        entries.into_iter().map(|entry| (name(entry.id.as_bytes()), entry)).collect();
    assert_eq!(by_name.len(), all, "one timeout for each");
    by_name
}

fn call(connection: &mut Connection, words: &[&[u8]]) {
    connection.call(words).unwrap();
}

/// Names that are cut, escaped, globbed or hashed somewhere, if anywhere.
fn odd_names() -> Vec<Bytes> {
    let long = |byte| Bytes::from(vec![byte; 64 * 1024]);
    let odd: [&[u8]; 24] = [
        b"\xff\xfe\x00\x80",
        b"\x00",
        b"two\nlines",
        b"a\r\nb",
        b"\r\n",
        b"{}",
        b"{tag}:a",
        b"}{",
        b":",
        b"::a:",
        b"0:a",
        b"3:a",
        b"*",
        b"?",
        b"a*b?c",
        b"[a-z]",
        b"[a",
        b"\\",
        b"a\\*",
        b" ",
        b"a b",
        b"\"'",
        "naïve ключ 鍵".as_bytes(),
        b"__keyspace@0__:a",
    ];
    odd.iter().map(|name| Bytes::from_static(name)).chain([long(b'x'), long(0xff), long(b'*')]).collect()
}

fn any_name_in_two_databases(config: &str) {
    // Two rules, one queue.
    let rules = "[[watch]]\nname = \"zero\"\npattern = \"*\"\nqueue = \"keys\"\n\
                 [[watch]]\nname = \"three\"\npattern = \"*\"\nqueue = \"keys\"\ndb = 3\n";
    let pair = Pair::start(&format!("{config}{rules}"));
    let (mut zero, mut three, mut five) = (pair.db(0), pair.db(3), pair.db(5));
    let names = odd_names();
    for key in &names {
        for db in [&mut zero, &mut three, &mut five] {
            call(db, &[b"SET", key, b"v", b"PX", TTL.as_bytes()]);
        }
    }
    let last = pair.redis.now_ms() + 1_500;
    pair.entries_after("keys", "the last", last);
    let mut expected: BTreeMap<_, _> =
        names.iter().flat_map(|key| [0, 3].map(|db| ((Some(db), key.clone()), 1))).collect();
    expected.insert((Some(0), Bytes::from("the last")), 1);
    let found = counts(&pair, "keys");
    for (key, n) in &expected {
        let shown: String = name(&key.1).chars().take(40).collect();
        assert_eq!(found.get(key), Some(n), "{:?} {shown}", key.0);
    }
    assert_eq!(found.len(), expected.len());
    let of_rule = |db| if db == Some(3) { Bytes::from("three") } else { Bytes::from("zero") };
    assert!(pair.entries("keys").iter().all(|entry| entry.rule == Some(of_rule(entry.db))));
    pair.await_known("keys", &[]);
    pair.end();
}

#[test]
fn any_bytes_are_a_name_and_the_same_name_in_two_databases_is_two_keys() {
    any_name_in_two_databases(KEYSPACE);
}

#[test]
fn any_bytes_are_a_name_by_keyevent_channels_too() {
    any_name_in_two_databases(KEYEVENT);
}

#[test]
fn values_travel_as_they_are_up_to_a_limit_and_what_does_not_is_marked() {
    let pair = Pair::start(&rule("values", "v:*", "payload = \"value\""));
    let mut redis = pair.db(0);
    let (mib, binary) = (1024 * 1024, &b"\xff\x00\r\n"[..]);
    let (fits, big, huge) = (vec![b'x'; mib], vec![b'x'; mib + 1], vec![b'x'; 5 * mib]);
    for (key, value) in [
        ("v:text", &b"text"[..]),
        ("v:binary", binary),
        ("v:empty", b""),
        ("v:just fits", &fits),
        ("v:too large", &big),
        ("v:5 MiB", &huge),
    ] {
        call(&mut redis, &[b"SET", key.as_bytes(), value]);
    }
    call(&mut redis, &[b"HSET", b"v:hash", b"user", "Zoë".as_bytes(), b"n", b"1"]);
    call(&mut redis, &[b"HSET", b"v:binary hash", b"a", binary]);
    call(&mut redis, &[b"HSET", b"v:large hash", b"a", &huge]);
    call(&mut redis, &[b"RPUSH", b"v:list", b"a", b"b"]);
    call(&mut redis, &[b"SADD", b"v:set", b"a"]);
    call(&mut redis, &[b"XADD", b"v:stream", b"*", b"a", b"b"]);
    let expected: [(&str, &str, &[u8], &str); 12] = [
        ("v:text", "raw", b"text", ""),
        ("v:binary", "raw", binary, ""),
        ("v:empty", "raw", b"", ""),
        ("v:just fits", "raw", &fits, ""),
        ("v:too large", "", b"", "value_too_large"),
        ("v:5 MiB", "", b"", "value_too_large"),
        ("v:hash", "json", "{\"user\":\"Zoë\",\"n\":\"1\"}".as_bytes(), ""),
        ("v:binary hash", "msgpack", b"\x81\xa1a\xa4\xff\x00\r\n", ""),
        ("v:large hash", "", b"", "value_too_large"),
        ("v:list", "", b"", "value_type"),
        ("v:set", "", b"", "value_type"),
        ("v:stream", "", b"", "value_type"),
    ];
    for (key, ..) in expected {
        call(&mut redis, &[b"PEXPIRE", key.as_bytes(), TTL.as_bytes()]);
    }
    let entries = by_name(pair.entries_after("values", "v:~", pair.redis.now_ms() + 1_500));
    assert_eq!(entries.len(), expected.len());
    for (key, encoding, payload, flaw) in expected {
        let entry = &entries[key];
        let found =
            (entry.encoding.as_deref().unwrap_or_default(), entry.flaw.as_deref().unwrap_or_default());
        assert_eq!(found, (encoding.as_bytes(), flaw.as_bytes()), "{key}");
        assert!(entry.payload == payload, "{key}: {} bytes", entry.payload.len());
        assert!(entry.captured_ms.is_some_and(|ms| ms <= entry.due_ms), "{key}");
    }
    assert_eq!(pair.redis.count(&[&b"HLEN"[..], &partition("values").last()]), 0);
    pair.end();
}

#[test]
fn the_value_of_another_key_is_the_payload_when_a_rule_says_so() {
    let config = [
        rule("orders", "hold:*:*", "payload = \"key\"\npayload_key = 'order:{1}'"),
        rule("in-three", "hold:*", "payload = \"key\"\npayload_key = 'order:{1}'\ndb = 3"),
    ];
    let pair = Pair::start(&config.concat());
    let (mut zero, mut three) = (pair.db(0), pair.db(3));
    call(&mut zero, &[b"SET", b"order:1", b"of db 0"]);
    call(&mut three, &[b"SET", b"order:1", b"of db 3"]);
    call(&mut zero, &[b"HSET", b"order:2", b"a", b"1"]);
    call(&mut zero, &[b"RPUSH", b"order:3", b"a"]);
    call(&mut zero, &[b"SET", b"order:5", &vec![b'x'; 5 * 1024 * 1024]]);
    call(&mut zero, &[b"SET", b"order:\xff\n", b"of an odd name"]);
    for key in [&b"hold:1:a"[..], b"hold:2:a", b"hold:3:a", b"hold:4:a", b"hold:5:a", b"hold:\xff\n:a"] {
        call(&mut zero, &[b"SET", key, b"its own", b"PX", TTL.as_bytes()]);
    }
    call(&mut three, &[b"SET", b"hold:1", b"its own", b"PX", TTL.as_bytes()]);
    let entries = by_name(pair.entries_after("orders", "hold:~:~", pair.redis.now_ms() + 1_500));
    let expected: [(&str, &str, &[u8], &str); 6] = [
        ("hold:1:a", "raw", b"of db 0", ""),
        ("hold:2:a", "json", b"{\"a\":\"1\"}", ""),
        ("hold:3:a", "", b"", "value_type"),
        ("hold:4:a", "", b"", "no_value"),
        ("hold:5:a", "", b"", "value_too_large"),
        ("hold:\\xff\\n:a", "raw", b"of an odd name", ""),
    ];
    assert_eq!(entries.len(), expected.len());
    for (key, encoding, payload, flaw) in expected {
        let entry = &entries[key];
        let found =
            (entry.encoding.as_deref().unwrap_or_default(), entry.flaw.as_deref().unwrap_or_default());
        assert_eq!((&*entry.payload, found), (payload, (encoding.as_bytes(), flaw.as_bytes())), "{key}");
    }
    let in_three = by_name(pair.entries("in-three"));
    assert_eq!((in_three.len(), &*in_three["hold:1"].payload), (1, &b"of db 3"[..]));
    pair.end();
}

fn first_rule_wins(config: &str) {
    let rules = [
        rule("fine", "s:1:*", "exclude = ['s:1:not*', '*[0-9]']"),
        rule("finer", "s:1:not*", "exclude = ['*x']"),
        rule("coarse", "s:*", "exclude = ['s:none']"),
        rule("in-three", "s:*", "db = 3"),
    ];
    let pair = Pair::start(&format!("{config}{}", rules.concat()));
    let (mut zero, mut three) = (pair.db(0), pair.db(3));
    for key in ["s:1:a", "s:1:not", "s:1:nothing", "s:1:not x", "s:1:9", "s:2", "s:none", "S:1:a", "t:1"] {
        call(&mut zero, &[b"SET", key.as_bytes(), b"v", b"PX", TTL.as_bytes()]);
    }
    call(&mut three, &[b"SET", b"s:1:a", b"v", b"PX", TTL.as_bytes()]);
    pair.entries_after("coarse", "s:~", pair.redis.now_ms() + 1_500);
    let expected: [(&str, &[&str]); 4] = [
        ("fine", &["s:1:a"]),
        ("finer", &["s:1:not", "s:1:nothing"]),
        ("coarse", &["s:1:9", "s:1:not x", "s:2", "s:~"]),
        ("in-three", &["s:1:a"]),
    ];
    for (queue, keys) in expected {
        let expected: BTreeMap<_, _> = keys.iter().map(|key| ((*key).to_owned(), 1)).collect();
        assert_eq!(pair.fired(queue), expected, "{queue}");
        assert!(pair.entries(queue).iter().all(|entry| entry.rule.as_deref() == Some(queue.as_bytes())));
        pair.await_known(queue, &[]);
    }
    pair.end();
}

#[test]
fn the_first_rule_that_matches_and_does_not_exclude_a_key_has_it() {
    first_rule_wins(KEYSPACE);
}

#[test]
fn the_first_rule_has_it_by_keyevent_channels_too() {
    first_rule_wins(KEYEVENT);
}

/// What the table says, as far as it differs by what is heard.
#[test]
fn by_keyevent_channels_what_is_done_to_a_key_is_heard_alike() {
    let pair = Pair::start(&format!("{KEYEVENT}{}", rule("keys", "k:*", "payload = \"value\"")));
    let keys =
        ["k:kept", "k:longer", "k:deleted", "k:persisted", "k:renamed", "k:copied", "k:appended", "other"];
    keys.iter().for_each(|key| pair.set(key, "v", 1_500));
    for command in [
        "PEXPIRE k:longer 2500",
        "DEL k:deleted",
        "PERSIST k:persisted",
        "RENAME k:renamed k:named",
        "COPY k:copied k:copy",
        "APPEND k:appended w",
    ] {
        pair.redis.call(&command.split(' ').collect::<Vec<_>>());
    }
    let entries = by_name(pair.entries_after("keys", "k:~", pair.redis.now_ms() + 2_500));
    let values: BTreeMap<_, _> = entries.iter().map(|(key, entry)| (&key[..], &entry.payload[..])).collect();
    let mut expected =
        BTreeMap::from(["k:kept", "k:longer", "k:named", "k:copied", "k:copy"].map(|key| (key, &b"v"[..])));
    expected.insert("k:appended", b"vw");
    assert_eq!(values, expected);
    pair.await_known("keys", &[]);
    pair.end();
}
