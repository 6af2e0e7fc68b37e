//! What is done to a key, and how many timeouts come of it: the table of the protocol, row by row. A key that must not
//! fire is proven not to by one that ends long after it and does.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use overdue_protocol::entry::{EVICTED, Proof};
use overdue_tests::{Redis, eventually_blocking};

use crate::pair::{Pair, bytes, counts, name, rule};
use crate::stage::redis;
use crate::truth::told;

/// The end of a key that is written anew, unless a row says otherwise.
const SOON_MS: u64 = 1_000;
/// Longer than any test.
const LONG_MS: u64 = 3_600_000;

/// Runs `SET <key> v PX <ttl>` and the commands of a row, `KEY` standing for the key.
fn run(pair: &Pair, key: &str, ttl_ms: u64, commands: &[&str]) {
    pair.set(key, "v", ttl_ms);
    for command in commands {
        let words: Vec<_> = command.split(' ').map(|word| word.replace("KEY", key)).collect();
        pair.redis.call(&words);
    }
}

fn one_each<'a>(keys: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, usize> {
    keys.into_iter().map(|key| (key.to_owned(), 1)).collect()
}

#[test]
fn an_end_that_moves_is_one_timeout_at_the_new_time() {
    let pair = Pair::start(&rule("keys", "k:*", ""));
    let rows: [(&str, u64, &str, u64); 8] = [
        ("k:longer", SOON_MS, "PEXPIRE KEY 2500", 2_500),
        ("k:longer, seconds", SOON_MS, "EXPIRE KEY 2", 2_000),
        ("k:shorter", LONG_MS, "PEXPIRE KEY 700", 700),
        ("k:shorter, seconds", LONG_MS, "EXPIRE KEY 1", 1_000),
        ("k:getex longer", SOON_MS, "GETEX KEY EX 2", 2_000),
        ("k:getex shorter", LONG_MS, "GETEX KEY PX 800", 800),
        ("k:set again", LONG_MS, "SET KEY w PX 900", 900),
        ("k:setex", SOON_MS, "PSETEX KEY 2200 w", 2_200),
    ];
    let mut ends: BTreeMap<String, RangeInclusive<u64>> = BTreeMap::new();
    for (key, ttl_ms, command, new_ms) in rows {
        pair.set(key, "v", ttl_ms);
        let before = pair.redis.now_ms();
        let words: Vec<_> = command.split(' ').map(|word| if word == "KEY" { key } else { word }).collect();
        pair.redis.call(&words);
        // 6.2 tells how long a key has left, not when it ends.
        ends.insert(key.to_owned(), before + new_ms - 20..=pair.redis.now_ms() + new_ms);
    }
    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + 2_500);
    assert_eq!(counts(&entries), one_each(ends.keys().map(String::as_str)));
    for entry in entries {
        let (key, due) = (name(entry.id.as_bytes()), entry.due_ms);
        assert!(ends[&key].contains(&due), "{key}: due {due} is not within {:?}", ends[&key]);
        assert!((due..due + 1_000).contains(&entry.fired_ms), "{entry:?}");
        assert!(matches!(entry.proof, Some(Proof::Event | Proof::Nudge)), "{entry:?}");
    }
    pair.end();
}

#[test]
fn a_key_that_lives_on_without_an_end_is_no_timeout() {
    let pair = Pair::start(&rule("keys", "k:*", ""));
    let rows: [(&str, &[&str]); 7] = [
        ("k:persist", &["PERSIST KEY"]),
        ("k:set", &["SET KEY w"]),
        ("k:getset", &["GETSET KEY w"]),
        ("k:getex", &["GETEX KEY PERSIST"]),
        ("k:deleted and written", &["DEL KEY", "SET KEY w"]),
        ("k:renamed over", &["SET other w", "RENAME other KEY"]),
        ("k:copied over", &["SET other w", "COPY other KEY REPLACE"]),
    ];
    for (key, commands) in rows {
        run(&pair, key, SOON_MS, commands);
    }
    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + SOON_MS);
    assert_eq!(counts(&entries), BTreeMap::new());
    for (key, _) in rows {
        assert_eq!(pair.redis.call(&["PTTL", key]).int(), Some(-1), "{key}");
    }
    pair.await_known("keys", &[]);
    pair.end();
}

#[test]
fn a_new_value_is_delivered_at_the_old_time() {
    let pair = Pair::start(&rule("keys", "k:*", "payload = \"value\""));
    let rows: [(&str, &[&str], &str); 6] = [
        ("k:keepttl", &["SET KEY new KEEPTTL"], "new"),
        ("k:append", &["APPEND KEY alue"], "value"),
        ("k:setrange", &["SETRANGE KEY 1 oid"], "void"),
        ("k:incr", &["SET KEY 41 KEEPTTL", "INCR KEY"], "42"),
        ("k:nothing", &[], "v"),
        (
            "k:hash",
            &["DEL KEY", "HSET KEY a 1", "PEXPIRE KEY 1500", "HSET KEY b 2"],
            "{\"a\":\"1\",\"b\":\"2\"}",
        ),
    ];
    for (key, commands, _) in rows {
        run(&pair, key, SOON_MS, commands);
    }
    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + SOON_MS);
    let found: BTreeMap<_, _> = entries
        .iter()
        .map(|e| (name(e.id.as_bytes()), String::from_utf8_lossy(&e.payload).into_owned()))
        .collect();
    let expected = rows.iter().map(|(key, _, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    assert_eq!((entries.len(), found), (rows.len(), expected));
    for entry in &entries {
        let captured_ms = entry.captured_ms.unwrap();
        assert!(
            (entry.due_ms - 101..entry.due_ms).contains(&captured_ms) && entry.flaw.is_none(),
            "{entry:?}"
        );
    }
    pair.end();
}

#[test]
fn a_key_that_is_removed_is_no_timeout() {
    let pair = Pair::start(&rule("keys", "k:*", ""));
    let rows: [(&str, &[&str]); 8] = [
        ("k:del", &["DEL KEY"]),
        ("k:unlink", &["UNLINK KEY"]),
        ("k:getdel", &["GETDEL KEY"]),
        ("k:lpop", &["DEL KEY", "RPUSH KEY a", "PEXPIRE KEY 1000", "LPOP KEY"]),
        ("k:hdel", &["DEL KEY", "HSET KEY a 1", "PEXPIRE KEY 1000", "HDEL KEY a"]),
        ("k:sinterstore", &["SINTERSTORE KEY none"]),
        ("k:renamed", &["RENAME KEY other"]),
        ("k:moved", &["MOVE KEY 5"]),
    ];
    for (key, commands) in rows {
        run(&pair, key, SOON_MS, commands);
    }
    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + SOON_MS);
    assert_eq!(counts(&entries), BTreeMap::new());
    pair.await_known("keys", &[]);
    assert_eq!(pair.tally("keys", "watched_unproven") + pair.tally("keys", "watched_dropped"), 0);
    pair.end();
}

#[test]
fn a_new_name_ends_by_the_rule_that_matches_it() {
    let config = [
        rule("keys", "k:*", ""),
        rule("other", "o:*", ""),
        rule("third", "k:*", "db = 3"),
        rule("all", "a:*", "db = 3"),
    ];
    let pair = Pair::start(&config.concat());
    for key in [
        "k:renamed",
        "k:renamed away",
        "k:renamed to another rule",
        "k:copied",
        "k:copied to another database",
    ] {
        pair.set(key, "v", SOON_MS);
    }
    for key in ["x:renamed", "k:dumped", "k:moved", "k:moved away", "x:moved"] {
        pair.set(key, "v", SOON_MS);
    }
    for command in [
        "RENAME|k:renamed|k:new name",
        "RENAME|k:renamed away|x:nobody's",
        "RENAMENX|k:renamed to another rule|o:new name",
        "RENAME|x:renamed|k:was nobody's",
        "COPY|k:copied|k:copy",
        "COPY|k:copied to another database|a:copy|DB|3",
        "MOVE|k:moved|3",
        "MOVE|k:moved away|5",
        "MOVE|x:moved|3",
    ] {
        let done = pair.redis.call(&command.split('|').collect::<Vec<_>>());
        assert!(done.int() != Some(0), "{command}");
    }
    let dump = bytes(pair.redis.call(&["DUMP", "k:dumped"]));
    pair.redis.call(&[&b"RESTORE"[..], b"k:restored", b"1000", &dump]);
    pair.redis.call(&[&b"RESTORE"[..], b"k:restored for ever", b"0", &dump]);
    let at = (pair.redis.now_ms() + SOON_MS).to_string();
    pair.redis.call(&[&b"RESTORE"[..], b"o:restored", at.as_bytes(), &dump, b"ABSTTL"]);

    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + SOON_MS);
    let here = [
        "k:new name",
        "k:was nobody's",
        "k:copied",
        "k:copy",
        "k:copied to another database",
        "k:dumped",
        "k:restored",
    ];
    // As they are shown.
    let here = here.map(|key| name(key.as_bytes()));
    assert_eq!(counts(&entries), one_each(here.iter().map(String::as_str)));
    assert_eq!(pair.fired("other"), one_each(["o:new name", "o:restored"]));
    assert_eq!(pair.fired("third"), one_each(["k:moved"]));
    assert_eq!(pair.fired("all"), one_each(["a:copy"]));
    for (queue, db) in [("keys", 0), ("other", 0), ("third", 3), ("all", 3)] {
        assert!(pair.entries(queue).iter().all(|entry| entry.db == Some(db)));
        pair.await_known(queue, &[]);
    }
    pair.end();
}

#[test]
fn an_evicted_key_fires_once_or_not_at_all_as_its_rule_says() {
    let config =
        [rule("fire", "f:*", "on_evicted = \"fire\""), rule("ignore", "i:*", "on_evicted = \"ignore\"")];
    let pair = Pair::start(&config.concat());
    let keys = || (0..20).flat_map(|n| [format!("f:{n}"), format!("i:{n}")]);
    keys().for_each(|key| pair.set(key, "v", LONG_MS));
    eventually_blocking("all are known", || pair.known("fire").len() + pair.known("ignore").len() == 40);
    pair.redis.call(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    pair.redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    eventually_blocking("all are evicted", || {
        // Any command that may need memory evicts first; it is refused when that is not enough.
        let _ = pair.redis.command(&["SET", "other", "v"]);
        keys().all(|key| pair.redis.count(&["EXISTS", &key]) == 0)
    });
    pair.redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    let entries = pair.entries_after("fire", "f:~", pair.redis.now_ms());
    let expected: Vec<_> = (0..20).map(|n| format!("f:{n}")).collect();
    assert_eq!(counts(&entries), one_each(expected.iter().map(String::as_str)));
    assert!(entries.iter().all(|entry| entry.cause.as_deref() == Some(EVICTED.as_bytes())));
    assert_eq!(pair.entries_after("ignore", "i:~", pair.redis.now_ms()), []);
    pair.await_known("fire", &[]);
    pair.await_known("ignore", &[]);
    pair.end();
}

#[test]
fn the_end_of_a_field_is_no_timeout() {
    let redis = redis();
    let knows = redis
        .call(&["COMMAND", "INFO", "HPEXPIRE"])
        .items()
        .iter()
        .any(|command| !command.items().is_empty());
    if !knows {
        println!("skipped: this server's hashes have no fields with a TTL");
        return;
    }
    let pair = Pair::at(redis, &rule("keys", "k:*", ""));
    for key in ["k:field", "k:all fields", "k:key and field"] {
        pair.redis.call(&["HSET", key, "a", "1", "b", "2"]);
        pair.redis.call(&["HPEXPIRE", key, "300", "FIELDS", "1", "a"]);
    }
    pair.redis.call(&["HPEXPIRE", "k:all fields", "300", "FIELDS", "1", "b"]);
    pair.redis.call(&["PEXPIRE", "k:key and field", "1000"]);
    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + SOON_MS);
    assert_eq!(counts(&entries), one_each(["k:key and field"]));
    pair.await_known("keys", &[]);
    pair.end();
}

/// A past end removes the key at once. Redis says `del` when a living key is given one, and Valkey `expired`; of a new key
/// that is written with one Redis says `expired`, and Valkey nothing.
#[test]
fn a_past_end_is_one_timeout_where_the_server_says_expired() {
    let (redis, truth) = told();
    let pair = Pair::at(redis, &rule("keys", "k:*", ""));
    let rows: [(&str, &[&str]); 7] = [
        ("k:expire 0", &["EXPIRE KEY 0"]),
        ("k:expire negative", &["EXPIRE KEY -1"]),
        ("k:pexpire negative", &["PEXPIRE KEY -1"]),
        ("k:expireat", &["EXPIREAT KEY 1000000000"]),
        ("k:pexpireat", &["PEXPIREAT KEY 1000000000000"]),
        ("k:getex", &["GETEX KEY PXAT 1000000000000"]),
        ("k:set again", &["SET KEY w PXAT 1000000000000"]),
    ];
    for (key, commands) in rows {
        run(&pair, key, SOON_MS, commands);
    }
    pair.redis.call(&["SET", "k:new", "v", "PXAT", "1000000000000"]);
    pair.redis.call(&["SET", "k:new, seconds", "v", "EXAT", "1000000000"]);
    // That they are asked for ends them, if anything has to.
    let left: Vec<_> = ["k:new", "k:new, seconds"].into_iter().chain(rows.map(|(key, _)| key)).collect();
    assert_eq!(pair.redis.count(&[&["EXISTS"], &left[..]].concat()), 0);
    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + SOON_MS);
    let told =
        truth.counts().into_iter().map(|(key, n)| (name(&key), n as usize)).filter(|(key, _)| key != "k:~");
    let told: BTreeMap<_, _> = told.collect();
    assert_eq!(counts(&entries), told);
    if !is_valkey(&pair.redis) {
        assert_eq!(told, one_each(["k:new", "k:new, seconds", "k:set again"]));
    }
    pair.await_known("keys", &[]);
    pair.end();
}

fn is_valkey(redis: &Redis) -> bool {
    redis.info("server").contains_key("valkey_version")
}
