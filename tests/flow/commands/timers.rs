//! `schedule`, `show`, `list`, `cancel`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;

use overdue_tests::program::Finished;
use overdue_tests::redis::Options;
use overdue_tests::{Launch, Mode, Proxy, Redis};

use super::stage::{Stage, objects, partition};

/// A newline, braces, a slash and no UTF-8.
const ODD: &[u8] = b"a\n{b}/\xff";

#[test]
fn a_queue_that_is_not_there_is_created_and_that_is_said() {
    let stage = Stage::new();
    let said = stage.ok("schedule ordres order-1 --in 15m");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "created queue ordres");
    assert!(
        lines[1].starts_with("armed order-1: due 20") && lines[1].contains("Z (in 15m), generation "),
        "{said}"
    );
    assert!(lines[1].contains(", key ordres/order-1/"), "{said}");
    let again = stage.ok("schedule ordres order-1 --in 15m");
    assert!(again.starts_with("replaced order-1: due ") && again.lines().count() == 1, "{again}");
    let answer = &stage.json("schedule other a --in 1h")[0];
    assert_eq!(
        (&answer["created_queue"], &answer["armed"], &answer["change"]),
        (&true.into(), &true.into(), &"armed".into())
    );
    assert_eq!(answer["key"], format!("other/a/{}", answer["generation"]));
}

#[test]
fn a_mode_that_keeps_the_timer_exits_with_1_and_says_what_stands() {
    let stage = Stage::new();
    let kept = stage.code(1, "schedule orders a --in 5m --if-present");
    assert_eq!(kept.stderr, "overdue: nothing changed: no timer a is armed in orders\n");
    stage.ok("schedule orders a --in 15m");
    for (mode, word) in [("--if-absent", "present"), ("--only-later", "kept")] {
        let kept = stage.code(1, &format!("schedule orders a --in 5m {mode} --json"));
        let answer = &objects(&kept)[0];
        assert_eq!((&answer["change"], &answer["armed"]), (&word.into(), &false.into()));
        assert!(
            kept.stderr.contains("nothing changed: a ") && kept.stderr.contains("(in 15m)"),
            "{}",
            kept.stderr
        );
    }
    stage.ok("schedule orders a --in 5m --only-earlier");
    let due = stage.code(0, "schedule orders old --at 100000000000");
    assert!(due.stdout.contains("due 1973-03-03T09:46:40.000Z"), "{}", due.stdout);
    let fired = stage.ok("schedule orders old --in 5m");
    assert!(fired.contains("was due and has fired"), "{fired}");
}

#[test]
fn a_payload_file_travels_byte_for_byte() {
    let stage = Stage::new();
    let payload: Vec<u8> = (0..=255).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("payload");
    fs::write(&file, &payload).unwrap();
    let from_file = stage.run(["schedule", "q", "f", "--in", "1h", "--payload-file", file.to_str().unwrap()]);
    let from_stdin = stage
        .launch(["schedule", "q", "s", "--in", "1h", "--payload-file", "-"])
        .stdin(payload.clone())
        .run();
    assert_eq!((from_file.code, from_stdin.code), (Some(0), Some(0)), "{from_file:?} {from_stdin:?}");
    stage.ok("schedule q t --in 1h --payload grüße");
    for id in ["f", "s"] {
        let shown = &stage.json(&format!("show q {id}"))[0];
        assert_eq!((&shown["bytes"], &shown["encoding"]), (&256.into(), &"raw".into()));
        assert!(shown["payload_base64"].as_str().unwrap().starts_with("AAECAw"), "{shown}");
    }
    let shown = &stage.json("show q t")[0];
    assert_eq!((&shown["payload"], &shown["encoding"]), (&"grüße".into(), &"text".into()));
    assert!(stage.ok("show q f").contains("\nbase64 AAECAw"));
}

#[test]
fn a_payload_that_is_too_large_or_not_readable_is_refused_before_anything_is_sent() {
    let stage = Stage::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("payload");
    fs::write(&file, vec![0; 1024 * 1024 + 1]).unwrap();
    let path = file.to_str().unwrap();
    let large = stage.run(["schedule", "q", "a", "--in", "1h", "--payload-file", path]);
    assert_eq!(large.code, Some(2));
    assert!(large.stderr.contains("has more than 1048576 bytes (client.max_payload)"), "{}", large.stderr);
    let missing = stage.run(["schedule", "q", "a", "--in", "1h", "--payload-file", "/no/such/file"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("cannot read the payload from /no/such/file: "), "{}", missing.stderr);
    let small = stage.launch(["schedule", "q", "a", "--in", "1h", "--payload", "12345"]);
    let small = small.env("OVERDUE_CLIENT_MAX_PAYLOAD", "4").run();
    assert_eq!(small.code, Some(2), "{small:?}");
    assert!(small.stderr.contains("5 bytes"), "{}", small.stderr);
    assert_eq!(stage.redis.count(&[b"ZCARD".as_slice(), &partition("q").index()]), 0);
}

#[test]
fn an_id_of_any_bytes_is_armed_shown_listed_and_cancelled() {
    let stage = Stage::new();
    let with_id = |before: &[&str], after: &[&str]| {
        let mut args: Vec<OsString> = before.iter().map(OsString::from).collect();
        args.push(OsString::from_vec(ODD.to_vec()));
        args.extend(after.iter().map(OsString::from));
        let finished = stage.run(args);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished
    };
    let armed = with_id(&["schedule", "orders"], &["--in", "1h", "--keyed"]);
    assert!(armed.stdout.contains("armed a\\n{b}/\\xff: due "), "{}", armed.stdout);
    assert!(armed.stdout.contains("key orders/a%0A%7Bb%7D%2F%FF/"), "{}", armed.stdout);
    let base64 = "YQp7Yn0v/w==";
    assert_eq!(objects(&with_id(&["show", "orders"], &["--json"]))[0]["id_base64"], base64);
    assert_eq!(stage.json("list orders")[0]["id_base64"], base64);
    assert!(stage.ok("list orders").ends_with("  a\\n{b}/\\xff\n"));
    let cancelled = with_id(&["cancel", "orders"], &["--json"]);
    assert_eq!(
        (&objects(&cancelled)[0]["id_base64"], &objects(&cancelled)[0]["cancelled"]),
        (&base64.into(), &true.into())
    );
    assert_eq!(stage.ok("list orders"), "no timer is armed\n");
}

#[test]
fn list_merges_partitions_by_due_time_page_by_page() {
    let stage = Stage::new();
    stage.ok("queues create orders --partitions 3");
    let base = 4_000_000_000_000_u64;
    let mut wire = stage.wire();
    let orders = overdue_protocol::QueueName::new("orders").unwrap();
    for n in 0..1_200_u64 {
        let number = overdue_protocol::partition::of(format!("t{n}").as_bytes(), 3);
        let index = overdue_protocol::Keyspace::default().partition(&orders, number).index();
        let (due, id) = ((base + n).to_string(), format!("t{n}"));
        wire.call(&[b"ZADD".as_slice(), &index, due.as_bytes(), id.as_bytes()]).unwrap();
    }
    let all = stage.json("list orders --limit 0");
    let ids: Vec<_> = all.iter().map(|timer| timer["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, (0..1_200).map(|n| format!("t{n}")).collect::<Vec<_>>());
    assert_eq!(stage.json("list orders").len(), 100);
    assert_eq!(stage.json(&format!("list orders --limit 0 --due-before {}", base + 700)).len(), 700);
    let shown = stage.ok("list orders --limit 2");
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(shown.starts_with("DUE "), "{shown}");
}

#[test]
fn show_says_what_is_armed_and_when_it_fires() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h --payload hello");
    let shown = stage.ok("show orders a");
    for part in [
        "id          a\nqueue       orders, partition 0\n\narmed       fires 20",
        "(in 1h)",
        "generation  ",
        "key         orders/a/",
        "payload     5 bytes, text\nhello\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    stage.redis.call(&[b"HDEL".as_slice(), &partition("orders").timers(), b"a"]);
    assert!(stage.ok("show orders a").contains("flaw        no record: it fires all the same"));
    stage.arm_due("orders", b"late", b"");
    let late = stage.ok("show orders late");
    assert!(late.contains(" ago); due, and not fired yet: is a relay running?\n"), "{late}");
    let no_queue = stage.code(1, "show ordes a");
    let text =
        "overdue: there is no queue ordes: the nearest name is orders; all names: overdue queues list\n";
    assert_eq!(no_queue.stderr, text);
}

#[test]
fn a_trace_is_given_or_inherited_and_must_be_one() {
    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const INHERITED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    let stage = Stage::new();
    let schedule = |id: &str, variable: Option<&str>, flag: &[&str]| {
        let launch = stage.launch(["schedule", "orders", id, "--in", "1h"]).args(flag);
        let launch = if let Some(text) = variable { launch.env("TRACEPARENT", text) } else { launch };
        let finished = launch.run();
        (finished.code, finished.stderr)
    };
    let trace = |id: &str| stage.json(&format!("show orders {id}"))[0].get("trace").cloned();
    assert_eq!(schedule("a", Some(INHERITED), &["--traceparent", GIVEN]).0, Some(0));
    assert_eq!(trace("a"), Some(GIVEN.into()));
    assert_eq!(schedule("b", Some(INHERITED), &[]).0, Some(0));
    assert_eq!(trace("b"), Some(INHERITED.into()));
    for none in [Some(""), Some("junk")] {
        assert_eq!(schedule("c", none, &[]), (Some(0), String::new()));
        assert_eq!(trace("c"), None, "{none:?}");
    }
    let (code, said) = schedule("d", None, &["--traceparent", &GIVEN[1..]]);
    assert_eq!(code, Some(2));
    assert!(said.contains("the traceparent \"0-4bf9") && said.contains("W3C writes it like 00-"), "{said}");
    assert!(stage.ok("show orders a").contains(&format!("\ntrace       {GIVEN}\n")));

    // It travels: into the entry, the retry, and the dead letter.
    stage.join("orders", "billing");
    stage.ok(&format!("schedule orders e --at 100000000000 --traceparent {GIVEN}"));
    assert_eq!(stage.fire("orders"), 1);
    let taken = stage.take("orders", "billing");
    assert_eq!(trace("e"), Some(GIVEN.into()));
    assert_eq!(stage.json("tail orders --from oldest --limit 1")[0]["trace"], GIVEN);
    stage.retry("orders", "billing", &taken);
    assert_eq!(
        (trace("e"), &stage.json("show orders e")[0]["place"]),
        (Some(GIVEN.into()), &"waiting".into())
    );
}

#[test]
fn cancel_says_one_line_for_each_id_and_exits_with_1_when_one_was_not_armed() {
    let stage = Stage::new();
    assert!(stage.code(1, "cancel orders a").stderr.contains("there is no queue orders"));
    stage.ok("schedule orders a --in 1h");
    stage.ok("schedule orders b --in 1h");
    let cancelled = stage.code(1, "cancel orders a nope b");
    let lines: Vec<_> = cancelled.stdout.lines().collect();
    assert!(lines[0].starts_with("cancelled a, which was due 20"), "{lines:?}");
    assert_eq!(lines[1], "nope was not armed");
    assert!(lines[2].starts_with("cancelled b, "), "{lines:?}");
    assert!(cancelled.stderr.contains("1 of 3 timers were not armed"), "{}", cancelled.stderr);
    let absent = stage.code(1, "cancel orders a --json");
    assert_eq!(objects(&absent), [serde_json::json!({"id": "a", "cancelled": false})]);
}

#[test]
fn redis_at_its_memory_limit_or_not_there_is_exit_code_3() {
    let redis = Redis::with(Options { maxmemory: Some("1mb".into()), ..Options::default() });
    let stage = Stage { redis };
    let refused = stage.code(3, "schedule orders a --in 1h");
    assert!(refused.stderr.contains("OOM") && refused.stderr.contains("maxmemory"), "{}", refused.stderr);
    stage.redis.kill9();
    for line in ["schedule orders a --in 1h", "list orders", "audit", "doctor"] {
        let gone = stage.code(3, line);
        assert!(
            gone.stderr.contains("cannot connect") && gone.stderr.lines().count() == 1,
            "{line}: {}",
            gone.stderr
        );
    }
}

/// `overdue schedule` through a proxy that does something to the connection that carries its payload.
fn schedule_through(proxy: &Proxy) -> Finished {
    proxy.only("mark-me");
    Launch::new(["--redis", &proxy.url(), "schedule", "orders", "b", "--in", "1h", "--payload", "mark-me"])
        .run()
}

#[test]
fn a_lost_answer_is_asked_for() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h");
    let proxy = Proxy::start(stage.redis.addr());
    proxy.down(Mode::Cut);
    let asked = schedule_through(&proxy);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(
        asked.stdout.contains("armed b: due ") && asked.stdout.contains("Redis confirmed it"),
        "{}",
        asked.stdout
    );
    assert_eq!(stage.json("list orders").len(), 2);
}

#[test]
fn a_lost_answer_that_redis_can_not_confirm_is_exit_code_3() {
    let stage = Stage::new();
    stage.ok("schedule orders a --in 1h");
    // It never arrives, but nobody here can know.
    let proxy = Proxy::start(stage.redis.addr());
    proxy.up(Mode::Cut);
    let unknown = schedule_through(&proxy);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(3), ""), "{unknown:?}");
    let text = "overdue: cannot arm timer \"b\" in queue orders: ";
    assert!(
        unknown.stderr.starts_with(text) && unknown.stderr.contains("Redis holds nothing of this call"),
        "{}",
        unknown.stderr
    );
}
