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
    assert_eq!(letters[1]["attempt"], 1);
    let table = stage.ok("dead list orders");
    assert!(table.contains("a\\n\\xff  rejected: no such\\norder\n"), "{table}");
    assert_eq!(stage.json("dead list orders --limit 1").len(), 1);
    assert_eq!(stage.json("dead list orders --group mailing").len(), 0);

    let letter = letters[1]["letter"].as_str().unwrap();
    let shown = &stage.json(&format!("dead show orders {letter}"))[0];
    assert_eq!(
        (&shown["payload_base64"], &shown["by"], &shown["due_ms"]),
        (&"/3BheQ==".into(), &"c".into(), &1.into())
    );
    assert!(shown["key"].as_str().unwrap().starts_with("orders/b/"), "{shown}");
    // The partition may be left out when it is 0.
    let text = stage.ok(&format!("dead show orders {}", &letter[2..]));
    for part in ["id       b\n", "detail   no such\\norder\n", "payload  4 bytes, raw\nbase64 /3BheQ==\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        stage.code(1, "dead show orders 0/1-1").stderr,
        "overdue: there is no dead letter 0/1-1 in orders\n"
    );
    stage.code(1, "dead show orders 7/1-1");
    stage.code(2, "dead show orders 0-1-1");
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
    let replayed = stage.code(1, &format!("dead replay orders {} 0/1-1 {} --json", names[0], names[0]));
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
    assert!(usage.stderr.contains("<LETTER>"), "{}", usage.stderr);
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
