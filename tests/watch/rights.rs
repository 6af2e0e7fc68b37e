//! Relays whose user has just the rights that docs/OPERATIONS.md lists, or fewer; and keys of which no rule says anything
//! any more.

use overdue_protocol::Entry;
use overdue_protocol::entry::{Proof, Source};
use overdue_sandbox::Value;
use overdue_tests::redis::Options;
use overdue_tests::{Program, Redis, eventually_blocking};

use crate::pair::{KEYEVENT, Pair, counts, partition, relay, rule};

const OPERATIONS: &str = include_str!("../../docs/OPERATIONS.md");
/// How many keys of each kind.
const EACH: usize = 20;

/// A server that says what `notify` says, with the user for relays of docs/OPERATIONS.md, but for rights that begin with `but`. Also
/// its URL for him.
fn server(notify: &str, but: &str) -> (Redis, String) {
    let redis = Redis::with(Options { notify: notify.into(), ..Options::default() });
    let knows_reading = !redis.info("server")["redis_version"].starts_with("6.");
    // 6.2 gives all channels to everybody.
    redis.call(&["ACL", "SETUSER", "overdue-relay", "resetchannels"]);
    let lines: Vec<_> =
        OPERATIONS.lines().filter_map(|line| line.strip_prefix("ACL SETUSER overdue-relay ")).collect();
    assert_eq!(lines.len(), 2, "rights for all, and those for watch rules");
    for right in lines
        .iter()
        .flat_map(|line| line.split(' '))
        .filter(|right| but.is_empty() || !right.starts_with(but))
    {
        let right = if knows_reading { right.to_owned() } else { right.replace("%R~", "~") };
        redis.call(&["ACL", "SETUSER", "overdue-relay", &right]);
    }
    let url = redis.url().replace("//", "//overdue-relay:SECRET@");
    (redis, url)
}

/// What was refused to the user.
fn refused(redis: &Redis) -> Vec<String> {
    let words = |entry: &Value| entry.items().iter().map(Value::text).collect::<Vec<_>>().join(" ");
    redis.call(&["ACL", "LOG"]).items().iter().map(words).collect()
}

fn set(redis: &Redis, kind: &str, end_ms: u64) {
    for n in 0..EACH {
        redis.call(&["SET", &format!("user:{kind}:{n}"), "another's"]);
        redis.call(&["SET", &format!("session:{kind}:{n}"), "its own", "PXAT", &end_ms.to_string()]);
    }
}

/// Fails unless each key of these kinds has fired once, with this payload, and nothing else has.
fn assert_fired(entries: &[Entry], kinds: &[&str], payload: &str) {
    let keys = kinds.iter().flat_map(|kind| (0..EACH).map(move |n| (format!("session:{kind}:{n}"), 1)));
    assert_eq!(counts(entries), keys.collect());
    assert!(entries.iter().all(|entry| entry.payload == payload && entry.flaw.is_none()), "{entries:?}");
}

/// Keys that are there before, and others that are dealt with.
fn works(config: &str, but: &str, payload: &str, more: &str) -> Pair {
    let (redis, url) = server("KEgxe", but);
    if config == KEYEVENT {
        for event in
            OPERATIONS.split("with NAME = ").nth(1).unwrap().split('.').next().unwrap().split_whitespace()
        {
            redis.call(&["ACL", "SETUSER", "overdue-relay", &format!("&__keyevent@0__:{event}")]);
        }
    }
    let end = redis.now_ms() + 3_000;
    set(&redis, "before", end);
    let pair = Pair::through(redis, &url, &format!("{config}{}", rule("sessions", "session:*", more)));
    let redis = &pair.redis;
    set(redis, "ends", end);
    set(redis, "shortened", end + 600_000);
    set(redis, "deleted", end);
    for n in 0..EACH {
        redis.call(&["PEXPIREAT", &format!("session:shortened:{n}"), &(end - 500).to_string()]);
        redis.call(&["DEL", &format!("session:deleted:{n}")]);
    }
    let entries = pair.entries_after("sessions", "session:~", end);
    assert_fired(&entries, &["before", "ends", "shortened"], payload);
    pair.await_both("the canary is heard", "overdue_canary_rounds_total", &[("result", "heard")]);
    for relay in &pair.relays {
        let ready = relay.readyz();
        assert_eq!(ready.status, 200, "{}", ready.body);
    }
    pair
}

#[test]
fn the_rights_that_are_listed_are_enough() {
    let (value, key) = ("payload = \"value\"", "payload = \"key\"\npayload_key = 'user:{1}'");
    for (config, but, payload, more) in
        [("", "", "its own", value), ("", "", "another's", key), (KEYEVENT, "&__keyspace@", "its own", value)]
    {
        let pair = works(config, but, payload, more);
        assert_eq!(refused(&pair.redis), Vec::<String>::new());
        pair.end();
    }
}

#[test]
fn where_config_is_refused_and_flags_suffice_all_works_and_it_is_said_once() {
    let pair = works("", "+config", "its own", "payload = \"value\"");
    // It is looked at every 5 s.
    eventually_blocking("it was refused several times", || {
        let refused: usize = pair.relays.iter().map(|relay| said(relay, "does not tell")).sum();
        let tries: i64 =
            pair.redis.call(&["ACL", "LOG"]).items().iter().filter_map(|e| e.items()[1].int()).sum();
        assert_eq!(refused, 2, "once each");
        if tries >= 4 { Ok(()) } else { Err(tries) }
    });
    assert!(refused(&pair.redis).iter().all(|line| line.contains("config")), "{:?}", refused(&pair.redis));
    pair.end();
}

#[test]
fn where_config_is_refused_and_nothing_is_told_index_and_scan_work_alone_and_say_so_once() {
    let (redis, url) = server("", "+config");
    let end = redis.now_ms() + 4_000;
    set(&redis, "before", end);
    let config = rule("sessions", "session:*", "payload = \"value\"");
    let pair = Pair::through(redis, &url, &config);
    for relay in &pair.relays {
        eventually_blocking("the relay knows that it is blind", || {
            relay.metrics().get("overdue_canary_state", &[]) == Some(0.0)
        });
        let ready = relay.readyz();
        assert!(ready.status == 503 && ready.body.contains("BROKEN    canary"), "{}", ready.body);
    }
    let last = pair.redis.now_ms() + 4_000;
    set(&pair.redis, "blind", last);
    set(&pair.redis, "extended", last - 1_000);
    set(&pair.redis, "persisted", last);
    eventually_blocking("SCAN has found them", || pair.known("sessions").len() >= 3 * EACH);
    for n in 0..EACH {
        pair.redis.call(&["PEXPIREAT", &format!("session:extended:{n}"), &last.to_string()]);
        pair.redis.call(&["PERSIST", &format!("session:persisted:{n}")]);
    }
    // Of the last one nobody tells either: SCAN has a second to find it.
    let entries = pair.entries_after("sessions", "session:~", last);
    assert_fired(&entries, &["before", "blind", "extended"], "its own");
    for entry in &entries {
        // The server itself may have been quicker than a nudge; then nobody tells.
        assert!(entry.source == Source::Index && entry.proof != Some(Proof::Event), "{entry:?}");
        assert!(entry.fired_ms < entry.due_ms + 1_000, "{entry:?}");
    }
    assert!(entries.iter().any(|entry| entry.proof == Some(Proof::Nudge)), "{entries:?}");
    for relay in &pair.relays {
        assert_eq!(said(relay, "does not tell"), 1, "{}", relay.stderr());
        assert_eq!(said(relay, "no notifications come"), 1, "{}", relay.stderr());
    }
    assert!(refused(&pair.redis).iter().all(|line| line.contains("config")), "{:?}", refused(&pair.redis));
    pair.end();
}

fn said(relay: &Program, part: &str) -> usize {
    relay.stderr().lines().filter(|line| line.contains(part)).count()
}

#[test]
fn keys_of_a_rule_that_was_taken_away_never_fire_and_are_removed_when_they_are_long_gone() {
    let both = format!(
        "{}[[watch]]\nname = \"old\"\npattern = \"old:*\"\nqueue = \"keys\"\n",
        rule("keys", "k:*", "")
    );
    let mut pair = Pair::start(&both);
    for key in ["old:alive", "old:deleted", "old:ended", "old:young", "k:a"] {
        pair.set(key, "v", 3_600_000);
    }
    pair.await_known("keys", &["k:a", "old:alive", "old:deleted", "old:ended", "old:young"]);
    pair.end();
    for key in ["old:deleted", "old:young"] {
        pair.redis.call(&["DEL", key]);
    }
    pair.set("old:ended", "v", 1);
    // As if so much time had passed.
    let watched = partition("keys").watched();
    let overdue_for = |key: &str, ms: u64| {
        let due = (pair.redis.now_ms() - ms).to_string();
        pair.redis.call(&[b"ZADD", &watched[..], b"XX", due.as_bytes(), format!("0:{key}").as_bytes()]);
    };
    overdue_for("old:young", 20_000);
    ["old:alive", "old:deleted", "old:ended"].into_iter().for_each(|key| overdue_for(key, 61_000));
    let url = pair.redis.url();
    pair.relays = std::array::from_fn(|_| relay(&pair.redis, &url, &rule("keys", "k:*", "")));
    pair.await_known("keys", &["k:a", "old:alive", "old:young"]);
    assert_eq!(pair.count("overdue_strays_removed_total", &[("queue", "keys")]), 2.0);
    let told = pair.relays.iter().map(|relay| said(relay, "that no rule here matches")).sum::<usize>();
    assert!((1..=2).contains(&told), "{told}");
    // Ours go on.
    pair.set("k:a", "v", 500);
    let entries = pair.entries_after("keys", "k:~", pair.redis.now_ms() + 500);
    assert_eq!(counts(&entries).into_iter().collect::<Vec<_>>(), [("k:a".to_owned(), 1)]);
    assert_eq!(pair.tally("keys", "watched_dropped"), 0);
    pair.end();
}
