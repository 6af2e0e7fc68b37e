//! The header of each file in `lua/` is held to the code: a header that lies is worse than none.
#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use overdue_protocol::call::{
    Apply, ApplyItem, Ask, Bury, Cancel, CancelItem, Claim, Complete, Discard, Drop, DuePage, Fire, Forget,
    From, Holder, Join, Mode, Reclaim, Release, Renew, Replay, Retire, Retry, Schedule, ScheduleItem, Settle,
    SettledWord, Standing, Sweep, SweepRetries, Trim, When,
};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Call, Effect, GroupName, Keyspace, QueueName, TimerId, script};

/// The files of a folder below `lua/`: name and text.
fn files(folder: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lua").join(folder);
    let lua = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    lua.filter(|path| path.extension().is_some_and(|extension| extension == "lua"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The lines of the comment a file begins with, without their dashes.
fn header(text: &str) -> Vec<&str> {
    text.lines()
        .map_while(|line| line.strip_prefix("--"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect()
}

/// What stands in the header under a heading, its continuation lines too.
fn section(text: &str, heading: &str) -> Option<String> {
    let lines = header(text);
    let begin = lines.iter().position(|line| line.starts_with(heading))?;
    let more = lines[begin + 1..].iter().take_while(|line| line.starts_with("        "));
    let first = lines[begin][heading.len()..].trim();
    Some(more.fold(first.to_owned(), |all, line| format!("{all}  {}", line.trim())))
}

fn check_contract(name: &str, text: &str) {
    let first = header(text).first().copied().unwrap_or_default();
    let rest =
        first.strip_prefix(&format!("{name} v")).unwrap_or_else(|| panic!("{name}: begins with {first:?}"));
    let (version, purpose) = rest.split_once(": ").unwrap_or_else(|| panic!("{name}: no purpose"));
    assert!(version.parse::<u32>().is_ok_and(|version| version > 0), "{name}: version {version}");
    assert!(purpose.len() > 10 && purpose.contains('.'), "{name}: {purpose:?} says no purpose");
    for heading in ["KEYS", "ARGV", "ANSWER"] {
        assert!(section(text, heading).is_some_and(|text| !text.is_empty()), "{name}: no {heading}");
    }
}

#[test]
fn every_script_states_purpose_version_keys_arguments_and_answer() {
    let scripts = files("");
    for (name, text) in &scripts {
        check_contract(name, text);
        assert!(text.lines().count() <= 65, "{name} is longer than a screen");
    }
    for folder in ["store", "client"] {
        for (name, text) in files(folder) {
            check_contract(&format!("{folder}/{name}"), &text);
        }
    }
    let names: BTreeSet<_> = scripts.iter().map(|(name, _)| name.as_str()).collect();
    let known: BTreeSet<_> = script::ALL.iter().map(|script| script.name).collect();
    assert_eq!(names, known, "each file is a script of the table in script.rs");
}

#[test]
fn every_part_says_what_it_is_and_is_used() {
    for (name, text) in files("lib") {
        assert!(text.starts_with(&format!("-- lib/{name}: ")), "{name}");
        assert!(text.ends_with("\n"), "{name}: what follows would stand on its last line");
        let users = script::ALL.iter().filter(|script| script.text.contains(&text)).count();
        assert!(users > 0, "nobody uses lib/{name}");
    }
}

#[test]
fn a_deadline_from_outside_and_an_unread_field_make_no_global() {
    for script in script::ALL {
        for line in script.text.lines().filter(|line| !line.trim_start().starts_with("--")) {
            assert!(!line.starts_with("function "), "{}: {line:?} is global", script.name);
        }
    }
}

/// The keys that a header declares: position and name, and whether it stands for all that follow.
fn declared(text: &str) -> Vec<(usize, String, bool)> {
    let keys = section(text, "KEYS").unwrap();
    let words: Vec<_> = keys.split_whitespace().collect();
    let number = |word: &str| word.trim_end_matches("..").parse::<usize>().ok();
    words
        .windows(2)
        .filter_map(|two| {
            let name = two[1].trim_end_matches(',').to_owned();
            Some((number(two[0])?, name, two[0].ends_with("..")))
        })
        .collect()
}

fn check_keys(call: &impl Call) {
    let script = call.script();
    let text = files("").into_iter().find(|(name, _)| name == script.name).unwrap().1;
    let declared = declared(&text);
    let keys: Vec<_> = call.keys().iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
    let words: Vec<_> = keys.iter().map(|key| key.split_once("}:").unwrap().1).collect();
    for (n, (position, name, rest)) in declared.iter().enumerate() {
        assert_eq!(*position, n + 1, "{}: {declared:?}", script.name);
        if *rest {
            let stem = name.split('<').next().unwrap();
            assert!(words[n..].iter().all(|word| word.starts_with(stem)), "{}: {words:?}", script.name);
        } else {
            assert_eq!(words[n], name, "{}", script.name);
        }
    }
    let open = declared.last().is_some_and(|(_, _, rest)| *rest);
    assert!(open || declared.len() == keys.len(), "{}: {keys:?}", script.name);
    let slots: BTreeSet<_> = keys.iter().map(|key| key.split_once("}:").unwrap().0).collect();
    assert_eq!(slots.len(), 1, "all keys in one slot: {keys:?}");
}

#[test]
fn the_calls_send_the_keys_that_the_headers_declare() {
    let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 3);
    let group = GroupName::new("billing").unwrap();
    let by = Standing { partition: partition.clone(), group: group.clone(), consumer: Bytes::from("c") };
    let id = TimerId::try_from("a").unwrap();
    let item = ScheduleItem {
        id: id.clone(),
        when: When::In(1),
        mode: Mode::Upsert,
        payload: Bytes::new(),
        call: Bytes::new(),
        extras: Bytes::new(),
        keyed: true,
    };
    let items = vec![item.clone(), ScheduleItem { keyed: false, ..item.clone() }, item];
    let schedule = Schedule { partition: partition.clone(), partitions: 4, items };
    assert_eq!(schedule.keys().len(), 4 + 2);
    let cancel = CancelItem { id: id.clone(), generation: None };
    let p = || partition.clone();
    check_keys(&schedule);
    check_keys(&Ask(schedule));
    check_keys(&Cancel { partition: p(), items: vec![cancel.clone(), cancel] });
    check_keys(&Sweep { partition: p(), limit: 1, grace_ms: 0, sweeper: Bytes::new() });
    check_keys(&SweepRetries { partition: p(), limit: 1 });
    check_keys(&Fire { partition: p(), ids: vec![id] });
    check_keys(&Join { partition: p(), group: group.clone(), from: From::Oldest });
    for history in [0, 5] {
        check_keys(&Complete { by: by.clone(), items: vec![], history });
    }
    check_keys(&Retry { by: by.clone(), items: vec![] });
    check_keys(&Release { by: by.clone(), items: vec![] });
    check_keys(&Apply { by: by.clone(), items: vec![], history: 0 });
    check_keys(&Reclaim {
        partition: p(),
        group: group.clone(),
        lease_ms: 1,
        attempts: 1,
        first_ms: 1,
        most_ms: 1,
        chance: 1.0,
        limit: 1,
        bytes: 1,
    });
    check_keys(&Bury { by: by.clone(), items: vec![] });
    check_keys(&Renew { by: by.clone(), entries: vec![] });
    let holder = Holder::Others { lease_ms: 1, alone: false };
    check_keys(&Claim { by, holder, after: EntryId::ZERO, limit: 1 });
    check_keys(&Retire { partition: p(), group: group.clone(), consumer: Bytes::new(), min_idle_ms: 0 });
    check_keys(&Trim { partition: p(), dead_max: 0, dead_max_age_ms: 0 });
    check_keys(&Replay { partition: p(), letters: vec![] });
    check_keys(&Discard { partition: p(), items: vec![] });
    check_keys(&Drop { partition: p(), group, cursor: None });
    check_keys(&Settle { partition: p(), items: vec![] });
    check_keys(&DuePage { partition: p(), limit: 1, offset: 0, ahead_ms: 0 });
    check_keys(&Forget { partition: p(), upto: 1, limit: 1 });
}

#[test]
fn apply_sends_the_keys_of_its_effects_in_their_order_and_history_last() {
    let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 3);
    let group = GroupName::new("billing").unwrap();
    let by = Standing { partition: partition.clone(), group, consumer: Bytes::from("c") };
    let key = |name: &str| partition.neighbour(name.as_bytes());
    let effects = [
        Effect::IncrBy { key: key("n"), by: 1 },
        Effect::Publish { channel: "told".into(), message: "x".into() },
        Effect::XAdd { key: key("log"), fields: vec![("a".into(), "b".into())] },
        Effect::IncrBy { key: key("n"), by: 1 },
    ];
    let item = ApplyItem { entry: EntryId { ms: 1, seq: 2 }, effects: effects.into() };
    let call = Apply { by, items: vec![item.clone(), item], history: 9 };
    let keys: Vec<_> = call.keys().iter().map(|key| String::from_utf8(key.to_vec()).unwrap()).collect();
    let (ours, rest) = keys.split_at(3);
    assert_eq!(ours, ["stream", "dead", "tally"].map(|name| format!("overdue:{{orders:3}}:{name}")));
    let of_one = ["n", "log", "n"].map(|name| format!("{{orders:3}}{name}"));
    assert_eq!(rest, [&of_one[..], &of_one[..], &["overdue:{orders:3}:history".to_owned()]].concat());
    let args: Vec<_> = call.args().iter().map(|arg| String::from_utf8(arg.to_vec()).unwrap()).collect();
    let first = "billing c 9 1-2 4 INCRBY 1 1 PUBLISH 2 told x XADD 2 a b INCRBY 1 1";
    assert_eq!(args[..19].join(" "), first);
}

#[test]
fn a_script_for_keys_of_any_slots_differs_in_its_first_line_only() {
    for (plain, anywhere) in
        [(&script::TOUCH, &script::TOUCH_ANYWHERE), (&script::VALUES, &script::VALUES_ANYWHERE)]
    {
        assert_eq!(anywhere.text.strip_prefix(script::CROSS_SLOT), Some(plain.text));
        assert_eq!((anywhere.name, script::CROSS_SLOT.matches('\n').count()), (plain.name, 1));
        assert!(plain.text.contains("-- KEYS    none"));
    }
}

#[test]
fn every_word_of_settle_stands_in_its_header() {
    let (_, text) = files("").into_iter().find(|(name, _)| name == "settle").unwrap();
    let answer = section(&text, "ANSWER").unwrap();
    for word in SettledWord::ALL {
        assert!(answer.split(|c: char| !c.is_alphanumeric() && c != '_').any(|one| one == word.as_str()));
        assert!(script::SETTLE.text.contains(&format!("'{}'", word.as_str())), "{}", word.as_str());
    }
}
