//! `dead list | show | replay | purge`.

use overdue_protocol::entry::EntryId;
use overdue_tests::FiredKey;

use super::stage::{Stage, objects, partition};

/// Buries a timeout for each id, in order.
fn bury(stage: &Stage, group: &str, ids: &[&[u8]], payload: &[u8]) {
    ids.iter().for_each(|id| stage.arm_due("orders", id, payload));
    while stage.fire("orders") > 0 {}
    let taken = stage.take("orders", group);
    stage.bury("orders", group, &taken);
}

fn stage() -> Stage {
    let stage = Stage::new();
    stage.ok("queues create orders");
    stage.join("orders", "billing");
    stage
}

#[test]
fn letters_are_listed_with_their_reason_and_shown_whole() {
    let stage = stage();
    assert_eq!(stage.ok("dead list orders"), "no dead letters\n");
    bury(&stage, "billing", &[b"a\n\xff", b"b"], b"\xffpay");
    let letters = stage.json("dead list orders");
    assert_eq!(letters.len(), 2);
    assert_eq!((&letters[0]["id_base64"], &letters[1]["id"]), (&"YQr/".into(), &"b".into()));
    for (name, value) in [("group", "billing"), ("reason", "rejected"), ("detail", "no such\norder")] {
        assert_eq!(letters[1][name], value);
    }
    assert_eq!((&letters[1]["attempts"], &letters[1]["by"]), (&1.into(), &"c".into()));
    let table = stage.ok("dead list orders");
    assert!(table.starts_with("LETTER "), "{table}");
    assert!(table.contains("Z  billing  1         c   a\\n\\xff  rejected: no such\\norder\n"), "{table}");
    assert_eq!(stage.json("dead list orders --limit 1").len(), 1);
    assert!(stage.ok("dead list orders --limit 1").ends_with("\nstopped after 1: --limit 0 shows all\n"));

    let letter = letters[1]["letter"].as_str().unwrap();
    let shown = &stage.json(&format!("dead show orders {letter}"))[0];
    assert_eq!(
        (&shown["payload_base64"], &shown["by"], &shown["due_ms"]),
        (&"/3BheQ==".into(), &"c".into(), &1.into())
    );
    assert!(shown["key"].as_str().unwrap().starts_with("orders/b/"), "{shown}");
    // The partition may be left out when it is 0.
    let text = stage.ok(&format!("dead show orders {}", &letter[2..]));
    for part in [
        "id       b\n",
        "reason   rejected\ndetail   no such\n         order\nattempts 1\nburied   20",
        "payload  4 bytes, raw\nbase64 /3BheQ==\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        stage.code(1, "dead show orders 0-1-1").stderr,
        "overdue: there is no dead letter 0-1-1 in orders: see `overdue dead list orders`\n"
    );
    stage.code(1, "dead show orders 7-1-1");
    let wrong = stage.code(2, "dead show orders 0/1-1");
    assert!(
        wrong.stderr.contains("write it as `overdue dead list` prints it, such as 0-17"),
        "{}",
        wrong.stderr
    );
}

/// Puts a letter of a given time and reason there, as a script does; answers its name.
fn letter(stage: &Stage, entry: &str, id: &str, reason: &str, more: &[&str]) -> String {
    let buried = entry.split('-').next().unwrap();
    let fields = ["group", "billing", "reason", reason, "detail", "", "buried", buried, "by", "c", "id", id];
    let rest = ["gen", "7", "due", "1", "fired", "2", "src", "index", "kind", "timer", "payload", "p"];
    let dead = partition("orders").dead();
    let mut call = vec![b"XADD".as_slice(), &dead, entry.as_bytes()];
    call.extend(fields.iter().chain(&rest).chain(more).map(|part| part.as_bytes()));
    stage.redis.call(&call);
    format!("0-{entry}")
}

#[test]
fn filters_let_through_what_all_of_them_match() {
    let stage = stage();
    let now = stage.redis.now_ms();
    let entry = |hours: u64| format!("{}-0", now - hours * 3_600_000);
    let old = letter(&stage, &entry(72), "order-1", "attempts", &[]);
    let star = letter(&stage, &entry(3), "order-*", "rejected", &[]);
    let new = letter(&stage, &entry(1), "other", "attempts", &[]);
    let found = |filter: &str| {
        let letters = stage.json(&format!("dead list orders {filter}"));
        letters.iter().map(|one| one["letter"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("--reason attempts"), [old.as_str(), &new]);
    assert_eq!(found("--id order-?"), [old.as_str(), &star]);
    assert_eq!(found(r"--id order-\*"), [star.as_str()]);
    assert_eq!(found("--before 2h"), [old.as_str(), &star]);
    assert_eq!(found("--after 2h"), [new.as_str()]);
    assert_eq!(
        found(&format!("--before {} --after {}", now - 3_600_000, now - 3 * 3_600_000)),
        [star.as_str()]
    );
    assert_eq!(found("--reason attempts --before 1day"), [old.as_str()]);
    assert_eq!(found("--group mailing"), [""; 0]);
    let nothing = stage.ok("dead list orders --reason deaths");
    assert_eq!(nothing, "no dead letter is let through by these filters; 3 others are there\n");
    let wrong = stage.code(2, "dead list orders --reason atempts");
    assert!(wrong.stderr.contains("a similar value exists: 'attempts'"), "{}", wrong.stderr);
    stage.code(2, &format!("dead purge orders {old} --reason attempts"));

    assert_eq!(stage.ok("dead purge orders --before 30d"), "purged 0 dead letters of orders\n");
    assert_eq!(stage.ok("dead purge orders --before 1day"), "purged 1 dead letters of orders\n");
    assert_eq!(stage.ok("dead replay orders --id other"), "replayed 1 dead letters of orders\n");
    assert_eq!(found("--limit 0"), [star.as_str()]);
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let stage = stage();
    let whole = letter(&stage, "5-0", "a", "attempts", &[]);
    stage.redis.call(&[b"XADD".as_slice(), &partition("orders").dead(), b"6-0", b"group", b"billing"]);
    letter(&stage, "7-0", "c", "attempts", &[]);
    stage.redis.call(&[
        b"XADD".as_slice(),
        &partition("orders").dead(),
        b"8-0",
        b"group",
        b"gone",
        b"id",
        b"d",
        b"gen",
        b"1",
        b"due",
        b"1",
        b"payload",
        b"",
    ]);
    let would = stage.code(1, "dead replay orders --all --dry-run");
    let (table, rest) = would.stdout.split_at(would.stdout.find("would").unwrap());
    assert_eq!(table.lines().count(), 5, "{}", would.stdout);
    let rest: Vec<_> = rest.lines().collect();
    assert_eq!(rest[0], "would replay 2 dead letters of orders; nothing was done");
    assert!(rest[1].starts_with("would leave 1: it lacks id"), "{rest:?}");
    assert!(rest[2].starts_with("would leave 1: its group is gone"), "{rest:?}");
    assert_eq!(would.stderr, "overdue: 2 of 4 dead letters would not be replayed\n");
    let objects = objects(&stage.code(1, &format!("dead replay orders {whole} 0-9-9 --dry-run --json")));
    assert_eq!((&objects[0]["id"], &objects[0]["result"]), (&"a".into(), &"would_replay".into()));
    assert_eq!(objects[1], serde_json::json!({"letter": "0-9-9", "result": "absent"}));
    let purge = stage.ok("dead purge orders --group gone --dry-run");
    assert!(purge.ends_with("would purge 1 dead letters of orders; nothing was done\n"), "{purge}");
    assert_eq!(stage.redis.count(&[b"XLEN".as_slice(), &partition("orders").dead()]), 4);
    assert_eq!(stage.redis.count(&[b"XLEN".as_slice(), &partition("orders").stream()]), 0);
}

#[test]
fn effects_that_were_written_in_part_are_not_written_again_by_the_way() {
    let stage = stage();
    let partly = letter(&stage, "5-0", "a", "effects_incomplete", &[]);
    letter(&stage, "6-0", "b", "rejected", &[]);
    let left = stage.code(1, "dead replay orders --group billing");
    let expected = format!("{partly}: some of its effects were written and would be written again: ");
    assert!(left.stdout.starts_with(&expected), "{}", left.stdout);
    assert!(left.stdout.ends_with("replayed 1 dead letters of orders\n"), "{}", left.stdout);
    assert_eq!(
        stage.ok("dead replay orders --reason effects_incomplete"),
        "replayed 1 dead letters of orders\n"
    );
    let named = letter(&stage, "7-0", "c", "effects_incomplete", &[]);
    assert_eq!(stage.ok(&format!("dead replay orders {named}")), "replayed 1 dead letters of orders\n");
    letter(&stage, "8-0", "d", "effects_incomplete", &[]);
    assert_eq!(stage.ok("dead purge orders --all"), "purged 1 dead letters of orders\n");
}

#[test]
fn a_letter_shows_every_field_that_it_has() {
    let stage = stage();
    let name = letter(
        &stage,
        "5-0",
        "a",
        "deaths",
        &["entry", "3-1", "trace", "00-aa", "attempt", "4", "colour", "re\nd"],
    );
    let shown = stage.ok(&format!("dead show orders {name}"));
    for part in [
        "attempts 4\n",
        "entry    3-1\n",
        "trace    00-aa\n",
        "colour   re\n         d\n",
        "by       c\n",
        "(",
        " ago)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = &stage.json(&format!("dead show orders {name}"))[0];
    assert_eq!(
        (&shown["other"]["colour"], &shown["buried_ms"], &shown["bytes"]),
        (&"re\nd".into(), &5.into(), &1.into())
    );
}

#[test]
fn the_letter_of_a_watched_key_says_which_and_a_replay_keeps_it() {
    let stage = stage();
    let key = FiredKey::new("session:42", 7).with("proof", "none").with("flaw", "no_value");
    key.fire(&mut stage.wire(), &partition("orders"));
    FiredKey::new(vec![b'x'; 65_536], 8).fire(&mut stage.wire(), &partition("orders"));
    let taken = stage.take("orders", "billing");
    stage.bury("orders", "billing", &taken);
    let letters = stage.json("dead list orders");
    let table = stage.ok("dead list orders");
    assert!(table.contains("... (65536 bytes)  rejected") && table.len() < 2_000, "{table}");
    let name = letters[0]["letter"].as_str().unwrap();
    let shown = &stage.json(&format!("dead show orders {name}"))[0];
    let fields = ["kind", "rule", "db", "proof", "captured_ms", "flaw"].map(|name| shown[name].clone());
    let expected = serde_json::json!(["key", "sessions", 3, "none", 950, "no_value"]);
    assert_eq!(serde_json::json!(fields), expected);
    let text = stage.ok(&format!("dead show orders {name}"));
    for part in [
        "id       session:42\n",
        "kind     key\nrule     sessions\ndb       3\nproof    none\ncaptured 1970-",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let long = letters[1]["letter"].as_str().unwrap();
    let shown = &stage.json(&format!("dead show orders {long}"))[0];
    assert!(shown["key"].as_str().is_some_and(|key| key.len() > 65_536));
    assert_eq!(stage.ok("dead replay orders --all"), "replayed 2 dead letters of orders\n");
    let objects = stage.json("tail orders --from oldest --limit 2");
    let fields = ["kind", "rule", "db", "proof", "source"].map(|name| objects[0][name].clone());
    assert_eq!(serde_json::json!(fields), serde_json::json!(["key", "sessions", 3, "none", "replay"]));
    assert!(stage.ok("audit orders").starts_with("queue orders: balanced\n"));
}

#[test]
fn replay_puts_named_letters_back_and_says_which_were_left() {
    let stage = stage();
    bury(&stage, "billing", &[b"a", b"b"], b"x");
    let names: Vec<_> =
        stage.json("dead list orders").iter().map(|l| l["letter"].as_str().unwrap().to_owned()).collect();
    let replayed = stage.code(1, &format!("dead replay orders {} 0-1-1 {} --json", names[0], names[0]));
    let mut results: Vec<_> =
        objects(&replayed).iter().map(|one| one["result"].as_str().unwrap().to_owned()).collect();
    results.sort();
    assert_eq!(results, ["absent", "replayed"]);
    assert_eq!(replayed.stderr, "overdue: 1 of 2 dead letters were not replayed\n");
    let back = stage.wire().xrange(partition("orders").stream()).unwrap();
    assert_eq!((back.len(), back[0].field("group").unwrap().as_ref()), (1, b"billing".as_slice()));

    stage.redis.call(&[b"XGROUP".as_slice(), b"DESTROY", &partition("orders").stream(), b"billing"]);
    let no_group = stage.code(1, &format!("dead replay orders {}", names[1]));
    assert!(no_group.stdout.contains("its group is gone: start a consumer"), "{}", no_group.stdout);
    stage.redis.call(&[b"XADD".as_slice(), &partition("orders").dead(), b"*", b"no", b"timeout"]);
    let bad = stage.code(1, "dead replay orders --all --json");
    let mut results: Vec<_> =
        objects(&bad).iter().map(|one| one["result"].as_str().unwrap().to_owned()).collect();
    results.sort();
    assert_eq!(results, ["malformed", "no_group"]);
    let usage = stage.code(2, "dead replay orders");
    assert!(usage.stderr.starts_with("overdue: which dead letters? Name them as"), "{}", usage.stderr);
}

#[test]
fn all_is_replayed_in_calls_that_do_not_hold_redis_up() {
    let stage = stage();
    let ids: Vec<Vec<u8>> = (0..600).map(|n| format!("t{n}").into_bytes()).collect();
    bury(&stage, "billing", &ids.iter().map(Vec::as_slice).collect::<Vec<_>>()[..250], b"small");
    bury(&stage, "billing", &ids.iter().map(Vec::as_slice).collect::<Vec<_>>()[250..500], b"small");
    bury(&stage, "billing", &[b"large-1", b"large-2", b"large-3"], &vec![b'x'; 900_000]);
    stage.redis.watch_for_slow(50);
    assert_eq!(stage.ok("dead replay orders --all"), "replayed 503 dead letters of orders\n");
    stage.redis.assert_nothing_slow();
    assert_eq!(stage.redis.count(&[b"XLEN".as_slice(), &partition("orders").dead()]), 0);
    assert_eq!(stage.take("orders", "billing").len(), 503);
    assert_eq!(stage.ok("dead replay orders --all"), "replayed 0 dead letters of orders\n");
    assert!(stage.ok("audit orders").starts_with("queue orders: balanced\n"));
}

#[test]
fn purge_deletes_by_name_or_all_of_a_group() {
    let stage = stage();
    stage.join("orders", "mailing");
    bury(&stage, "billing", &[b"a", b"b"], b"x");
    let taken: Vec<EntryId> = stage.take("orders", "mailing");
    stage.bury("orders", "mailing", &taken);
    let letters = stage.json("dead list orders --group billing");
    let purged = stage.json(&format!("dead purge orders {}", letters[0]["letter"].as_str().unwrap()));
    assert_eq!(purged, [serde_json::json!({"letter": letters[0]["letter"], "result": "purged"})]);
    assert_eq!(stage.ok("dead purge orders --all --group mailing"), "purged 2 dead letters of orders\n");
    assert_eq!(stage.json("dead list orders").len(), 1);
    let gone = stage.code(1, &format!("dead purge orders {}", letters[0]["letter"].as_str().unwrap()));
    assert!(gone.stdout.contains(": it is not there\n"), "{}", gone.stdout);
    stage.code(1, "dead list ordes");
}
