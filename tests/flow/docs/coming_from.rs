//! docs/COMING_FROM.md: its rules and its commands, from the keys that the old writers write to the payload.

use std::collections::{BTreeMap, BTreeSet};

use overdue_tests::{Redis, eventually_blocking};
use serde_json::Value;

use super::blocks::{blocks, commands, text};
use super::terminal::{Running, Terminal};

/// Tells its name and arguments, and what it was given: id, encoding, payload.
const TELL: &str = r#"echo "$(basename "$0") $* got $OVERDUE_ID, $OVERDUE_ENCODING: $(cat)""#;

/// The values of `name = "..."` in all rules.
fn values(rules: &str, name: &str) -> BTreeSet<String> {
    let prefix = format!("{name} = \"");
    let values = rules.lines().filter_map(|line| line.strip_prefix(&prefix)?.strip_suffix('"'));
    values.map(str::to_owned).collect()
}

/// The keys as each of the writers writes them. Those of `:phantom` and of a logout end nothing.
fn write(redis: &Redis) {
    let call = |line: &str| drop(redis.call(&line.split(' ').collect::<Vec<_>>()));
    call("SET session:42 alice PX 200");
    for key in ["people:1", "people:1:phantom"] {
        call(&format!("HSET {key} _class com.example.Person id 1 name Ann"));
    }
    call("SADD people 1");
    call("SADD people:name:Ann 1");
    call("PEXPIRE people:1 200");
    call("PEXPIRE people:1:phantom 300");
    let session = b"spring:session:sessions:33fdd1b6";
    let java = b"\xac\xed\x00\x05t\x00\x03Ann";
    redis.call(&[b"HSET".as_slice(), session, b"creationTime", b"1", b"sessionAttr:user", java]);
    call("PEXPIRE spring:session:sessions:33fdd1b6 300200");
    for (id, ttl) in [("33fdd1b6", "200"), ("logged-out", "1000")] {
        let key = format!("spring:session:sessions:expires:{id}");
        redis.call(&["APPEND", &key, ""]);
        redis.call(&["PEXPIRE", &key, ttl]);
    }
    call("DEL spring:session:sessions:expires:logged-out");
    call("HSET lock:7 0aac6d5e:83 1");
    call("PEXPIRE lock:7 200");
    call("SET order:7 {\"seat\":\"12A\"}");
    call("SET cart:7 x PX 200");
    call("SET laravel_database_reservation:17 1 PX 200");
}

#[test]
fn each_example_turns_its_keys_into_timeouts() {
    let document = text("docs/COMING_FROM.md");
    let rules = blocks(&document, "toml").join("\n");
    let redis = Redis::start();
    let terminal = Terminal::at(&redis);
    for program in ["java", "python3", "php"] {
        terminal.program(program, TELL);
    }
    terminal.file("overdue.toml", &rules);
    let mut running = vec![terminal.run("overdue relay --config overdue.toml")];
    let mut consumers: BTreeMap<String, Running> = BTreeMap::new();
    for line in commands(&document) {
        let queue = line.split("--queue ").nth(1).and_then(|rest| rest.split(' ').next());
        consumers.insert(queue.unwrap().to_owned(), terminal.run(&line));
    }
    assert_eq!(consumers.len(), 3);
    for queue in values(&rules, "queue") {
        let print = format!("overdue consume --queue {queue} --group test --print --json");
        consumers.entry(queue).or_insert_with(|| terminal.run(&print));
    }
    eventually_blocking("the relay hears", || {
        let log = running[0].output();
        if log.contains("relay starts") { Ok(()) } else { Err(log) }
    });
    write(&redis);
    let told = [
        ("sessions", "java -jar goodbye.jar got session:42, : \n"),
        ("carts", "python3 release.py got cart:7, raw: {\"seat\":\"12A\"}\n"),
        ("reservations", "php artisan reservation:expired got laravel_database_reservation:17, : \n"),
    ];
    for (queue, told) in told {
        eventually_blocking(told, || {
            let output = consumers[queue].output();
            if output.contains(told) { Ok(()) } else { Err(output) }
        });
    }
    let printed = |queue: &str| {
        eventually_blocking(queue, || {
            let output = consumers[queue].output();
            let line = output.lines().find(|line| line.starts_with('{')).map(str::to_owned);
            line.ok_or((output, running[0].output()))
        })
    };
    let object = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let (person, lock, session) =
        ["people", "abandoned-locks", "http-sessions"].map(|q| object(&printed(q))).into();
    assert_eq!((&person["id"], &person["encoding"]), (&"people:1".into(), &"json".into()), "{person}");
    let fields = object(person["payload"].as_str().unwrap());
    assert_eq!(fields, serde_json::json!({"_class": "com.example.Person", "id": "1", "name": "Ann"}));
    assert_eq!(
        (&lock["id"], &lock["payload"]),
        (&"lock:7".into(), &r#"{"0aac6d5e:83":"1"}"#.into()),
        "{lock}"
    );
    let (id, encoding) = (&session["id"], &session["encoding"]);
    assert_eq!(
        (id, encoding),
        (&"spring:session:sessions:expires:33fdd1b6".into(), &"msgpack".into()),
        "{session}"
    );
    assert!(session["payload_base64"].is_string(), "{session}");
    running.extend(consumers.into_values());
    for command in &mut running {
        command.assert_runs();
    }
    // One for each rule: the phantom, the hash of the session and the logout end none.
    let queues = values(&rules, "queue");
    let key = |queue: &String, name: &str| format!("overdue:{{{queue}:0}}:{name}");
    eventually_blocking("no key is expected to end any more", || {
        let left: u64 = queues.iter().map(|queue| redis.count(&["ZCARD", &key(queue, "watched")])).sum();
        if left == 0 { Ok(()) } else { Err(left) }
    });
    let fired = |queue| redis.call(&["HGET", &key(queue, "tally"), "watched_fired"]).text();
    assert!(queues.len() == 6 && queues.iter().all(|queue| fired(queue) == "1"));
}
