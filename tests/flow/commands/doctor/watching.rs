//! `doctor` and watched keys.

use overdue_protocol::tally;
use overdue_tests::program::Finished;
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Launch, Redis, eventually_blocking, patience};

use super::super::stage::{Stage, objects, partition};
use super::{findings, member_with, read};

const RULE: &str = "session:*=sessions";
const FLAGS: &str = "notify-keyspace-events";

/// `doctor` with a rule in its settings.
fn meant(stage: &Stage) -> Finished {
    stage.launch(["doctor", "--json"]).env("OVERDUE_WATCH", RULE).run()
}

fn assert_one(found: &Finished, check: &str, level: &str, part: &str) {
    match &read(found, check)[..] {
        [(l, text)] if l == level && text.contains(part) => {}
        other => panic!("{check} {level} {part:?}: {other:#?}"),
    }
}

/// Writes a relay with watch rules down as alive.
fn watching_relay(stage: &Stage, name: &str, rules: &str) {
    member_with(stage, name, "relay", &[], stage.redis.now_ms(), rules);
}

fn stage_with(options: Options) -> Stage {
    Stage { redis: Redis::with(Options { notify: "KEgxe".to_owned(), ..options }) }
}

/// On a server with notifications, where nothing has to be waited for.
fn telling() -> Stage {
    stage_with(Options::default())
}

/// As this user, on the server of a stage.
fn as_user(stage: &Stage, user: &str) -> Finished {
    let url = stage.redis.url().replace("//", &format!("//{user}:secret@"));
    Launch::new(["--redis", &url, "doctor", "--json"]).env("OVERDUE_WATCH", RULE).run()
}

#[test]
fn with_a_relay_that_watches_nothing_must_be_done_and_nothing_is_left_behind() {
    let stage = Stage { redis: Redis::with_aof() };
    assert_eq!(findings(&stage, "expiry"), [], "nobody watches keys");
    let url = stage.redis.url();
    let relay = Launch::relay(&url).args(["--watch", RULE]).start();
    let consumer = Launch::consume(&url, "sessions", "mail").args(["--print"]).start();
    stage.redis.call(&["SET", "session:1", "v", "PX", "9000000"]);
    eventually_blocking("doctor is content", || {
        let found = meant(&stage);
        let content = found.code == Some(0) && objects(&found).iter().all(|finding| finding["level"] == "ok");
        if content && read(&found, "watched keys").len() == 1 { Ok(()) } else { Err(found) }
    });
    let found = meant(&stage);
    assert_one(&found, "expiry", "ok", " of 20 keys within 2s of their end, p50 ");
    assert_one(&found, "watch rights", "ok", "may subscribe to 3 patterns and touch the keys of 1 rules");
    assert_one(&found, "watch rules", "ok", "all relays have the same, those of this call: ");
    assert_one(&found, "output buffer", "ok", "pubsub is 33554432 8388608 60");
    assert_one(
        &found,
        "watched keys",
        "ok",
        "1 keys have their end in the index; 0 fired, 0 of them without",
    );
    assert_one(&found, "notifications", "ok", "has all that is needed");
    assert_eq!(stage.redis.call(&["KEYS", "*doctor*"]).items().len(), 0);
    let program = stage.launch(["doctor"]).run();
    assert!(
        program.code == Some(0) && program.stdout.contains("ok    expiry         the server's"),
        "{program:?}"
    );
    for program in [consumer, relay] {
        program.sigterm();
        assert!(program.wait_exit(patience()).success());
    }
}

#[test]
fn flags_that_watching_lacks_are_bad_once_a_relay_needs_them() {
    let stage = Stage::new();
    stage.redis.call(&["CONFIG", "SET", FLAGS, "Ex"]);
    assert_eq!(findings(&stage, "notifications")[0].0, "ok");
    assert_one(&meant(&stage), "notifications", "warn", "lacks Kge: watched keys are not heard of");
    watching_relay(&stage, "r", "0123456789abcdef");
    assert_one(&meant(&stage), "notifications", "bad", "lacks Kge");
    stage.redis.call(&["CONFIG", "SET", FLAGS, "KEx"]);
    assert_one(&meant(&stage), "notifications", "bad", "only their end is heard");
    let keyevent = stage.redis.folder().join("keyevent.toml");
    std::fs::write(&keyevent, "[relay]\nnotifications = \"keyevent\"\n").unwrap();
    stage.redis.call(&["CONFIG", "SET", FLAGS, "AE"]);
    let found = stage.launch(["doctor", "--json", "--config"]).args([&keyevent]).run();
    assert_one(&found, "notifications", "ok", "has all that is needed");
}

#[test]
fn where_config_is_refused_what_is_heard_counts_and_the_provider_is_named() {
    let users = vec!["relay on >secret ~* &* +@all -config".to_owned()];
    let stage = stage_with(Options { users, ..Options::default() });
    watching_relay(&stage, "r", "0123456789abcdef");
    let found = as_user(&stage, "relay");
    assert_one(&found, "notifications", "ok", "CONFIG is refused), but what expires is told of");
    assert_one(&found, "output buffer", "ok", "does not tell");
    stage.redis.call(&["CONFIG", "SET", FLAGS, ""]);
    let found = as_user(&stage, "relay");
    assert_one(&found, "notifications", "bad", "CONFIG is refused), and what expires is not told of");
    assert!(found.stdout.contains("on ElastiCache and MemoryDB it is in the parameter group"), "{found:?}");
    assert_one(&found, "expiry", "ok", "can't be measured: no notification comes");
}

#[test]
fn channels_and_keys_that_are_refused_are_found() {
    let users = vec![
        "deaf on >secret ~* resetchannels &__keyevent@0__:overdue-mark &__keyevent@0__:expired +@all"
            .to_owned(),
        "handless on >secret ~overdue:* &* +@all".to_owned(),
        "markless on >secret ~* resetchannels &__keyevent@0__:expired +@all".to_owned(),
    ];
    let stage = stage_with(Options { users, ..Options::default() });
    assert_one(&as_user(&stage, "deaf"), "watch rights", "bad", "its channel rule &__keyspace@0__:");
    let found = as_user(&stage, "handless");
    assert_one(&found, "watch rights", "bad", "this user cannot touch 1 keys of server/0: ");
    assert!(found.stdout.contains("docs/OPERATIONS.md lists, section Rights"), "{found:?}");
    let found = as_user(&stage, "markless");
    assert!(read(&found, "watch rights").len() == 2, "channel and marker: {found:?}");
}

/// As docs/OPERATIONS.md lists them, but for `%R~`, which 6.2 does not know.
#[test]
fn a_user_with_just_the_rights_of_a_relay_is_enough() {
    let rights = "~overdue:* ~session:* resetchannels &overdue:*:wake &__keyevent@0__:expired \
                  &__keyevent@0__:overdue-mark &__keyspace@0__:session:* &__keyspace@0__:overdue:{*}:canary:* \
                  +@all -@admin -@dangerous +info +role +config|get +config|set";
    let users = vec![format!("relay on >secret {rights}")];
    let stage = stage_with(Options { users, ..Options::default() });
    let found = as_user(&stage, "relay");
    assert_one(&found, "watch rights", "ok", "may subscribe to 3 patterns");
    assert_one(&found, "expiry", "ok", "of 20 keys within 2s");
    assert_one(&found, "notifications", "ok", "has all that is needed");
}

#[test]
fn an_output_buffer_without_bound_and_a_low_one_are_worth_a_word() {
    let stage = telling();
    for (limit, level, part) in [
        ("pubsub 0 0 0", "warn", "fills its memory"),
        ("pubsub 1048576 0 0", "warn", "ends a relay's subscription"),
        ("pubsub 67108864 33554432 60", "ok", "pubsub is 67108864 33554432 60"),
    ] {
        stage.redis.call(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
        assert_one(&meant(&stage), "output buffer", level, part);
    }
}

#[test]
fn relays_with_different_rules_are_named() {
    let stage = telling();
    assert_eq!(read(&meant(&stage), "watch rules"), [], "no relay is said already");
    watching_relay(&stage, "host-a:1", "");
    assert_one(
        &meant(&stage),
        "watch rules",
        "bad",
        "no relay watches keys, and the settings of this call have 1",
    );
    watching_relay(&stage, "host-b:2", "0123456789abcdef");
    watching_relay(&stage, "host-c:3", "0123456789abcdef");
    let text = "different watch rules: none: host-a:1; 01234567: host-b:2, host-c:3";
    assert_one(&meant(&stage), "watch rules", "warn", text);
    assert_eq!(findings(&stage, "watch rules"), read(&meant(&stage), "watch rules"));
    watching_relay(&stage, "host-a:1", "0123456789abcdef");
    assert_one(&meant(&stage), "watch rules", "warn", "the settings of this call have others");
}

#[test]
fn watched_keys_that_nobody_settles_and_those_without_proof_are_told() {
    let stage = telling();
    stage.ok("queues create sessions --partitions 2");
    let (watched, books) = (partition("sessions").watched(), partition("sessions").tally());
    let now = stage.redis.now_ms();
    let add = |score: u64, member: &[u8]| {
        stage.redis.call(&[b"ZADD".as_slice(), &watched, score.to_string().as_bytes(), member]);
    };
    add(now - 30_000, b"0:session:young");
    add(now - 61_000, b"0:session:old");
    add(now - 60_500, b"3:cart:\xff");
    for (name, count) in
        [(tally::WATCHED_FIRED, "7"), (tally::WATCHED_UNPROVEN, "2"), (tally::WATCHED_DROPPED, "1")]
    {
        stage.redis.call(&[b"HSET".as_slice(), &books, name.as_bytes(), count.as_bytes()]);
    }
    let told = |found: &Finished, level: &str, part: &str| {
        let all = read(found, "watched keys");
        assert!(all.iter().any(|(l, text)| l == level && text.contains(part)), "{level} {part:?}: {all:#?}");
    };
    let found = stage.run(["doctor", "--json"]);
    told(
        &found,
        "bad",
        "queue sessions: watched keys overdue for more than 60 s: 2, such as 0:session:old (db:key)",
    );
    assert!(found.stdout.contains("no relay watches keys: start one"), "{found:?}");
    told(
        &found,
        "ok",
        "3 keys have their end in the index; 7 fired, 2 of them without proof; 1 dropped without proof",
    );
    told(&meant(&stage), "bad", "such as 3:cart:\\xff (db:key), which no rule of this call matches");
}

#[test]
fn a_server_that_expires_late_is_no_fault_and_its_keys_are_removed() {
    let stage = telling();
    let fill = "for i = ARGV[1], ARGV[1] + 9999 do redis.call('SET', 'bg:' .. i, 'v', 'PX', 9000000) end";
    for from in (0..200_000).step_by(10_000) {
        stage.redis.call(&["EVAL", fill, "0", &from.to_string()]);
    }
    let found = meant(&stage);
    assert_one(&found, "expiry", "ok", "p50 over 2s. Relays do not wait for it");
    assert_eq!(stage.redis.count(&["DBSIZE"]), 200_000);
}

#[test]
fn each_node_of_a_cluster_is_tried() {
    let cluster = Cluster::with(&Options { notify: "KEgxe".to_owned(), ..Options::default() });
    cluster.nodes()[1].call(&["CONFIG", "SET", FLAGS, "Ex"]);
    cluster.nodes()[2].call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"]);
    let found = Launch::new(["--redis", &cluster.url(), "doctor", "--json"]).env("OVERDUE_WATCH", RULE).run();
    let expiry = read(&found, "expiry");
    let [a, b, c] = [0, 1, 2].map(|n| format!("{}/: ", cluster.nodes()[n].addr()));
    for (node, (at, needs)) in [(&a, "ok"), (&b, "warn"), (&c, "ok")].into_iter().enumerate() {
        let here =
            |all: &[(String, String)]| all.iter().filter(|(_, text)| text.contains(at.as_str())).count();
        assert_eq!(here(&expiry), 1, "{node}: {expiry:#?}");
        let flags = read(&found, "notifications");
        assert!(flags.iter().any(|(level, text)| level == needs && text.contains(at.as_str())), "{flags:#?}");
    }
    let buffers = read(&found, "output buffer");
    assert!(buffers.iter().any(|(level, text)| level == "warn" && text.contains(c.as_str())), "{buffers:#?}");
}
