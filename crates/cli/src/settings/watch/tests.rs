use std::path::PathBuf;
use std::time::Duration;

use overdue_protocol::watch::{OnEvicted, OnUnproven};

use super::*;
use crate::settings::tests::{errors, file, flag, layers};
use crate::settings::{Settings, show};

const MINIMAL: &str = "[[watch]]\npattern = \"session:*\"\nqueue = \"sessions\"\n";

fn rules(config: Option<PathBuf>, flags: &str, variables: &[(&str, &str)]) -> Vec<Rule> {
    let flags = if flags.is_empty() { vec![] } else { vec![flag(&WATCH.entry, flags)] };
    Settings::resolve(layers(config, flags, variables)).unwrap().relay.watch
}

fn rule(name: &str, pattern: &'static str, queue: &str) -> Rule {
    Rule::new(QueueName::new(name).unwrap(), Glob::new(pattern), QueueName::new(queue).unwrap())
}

/// What is wrong with a file, with `-` for its path.
fn wrong(text: &str) -> Vec<String> {
    wrong_at("redis://127.0.0.1/", text)
}

fn wrong_at(url: &str, text: &str) -> Vec<String> {
    let (_dir, path) = file(text);
    let errors = errors(Some(path.clone()), vec![], &[("OVERDUE_REDIS_URL", url)]);
    errors.into_iter().map(|line| line.replace(path.to_str().unwrap(), "-")).collect()
}

#[test]
fn a_rule_needs_a_pattern_and_a_queue_and_has_defaults_for_the_rest() {
    let (_dir, path) = file(MINIMAL);
    assert_eq!(rules(Some(path), "", &[]), [rule("sessions", "session:*", "sessions")]);
    assert_eq!(
        wrong("[[watch]]\n[[watch]]\npattern = \"a\"\n"),
        [
            "-:1:1: watch.pattern is missing: write it like pattern = \"session:*\"",
            "-:1:1: watch.queue is missing: write it like queue = \"sessions\"",
            "-:2:1: watch.queue is missing: write it like queue = \"sessions\"",
        ]
    );
}

#[test]
fn a_rule_can_say_everything() {
    let (_dir, path) = file(
        "[[watch]]\nname = \"carts\"\npattern = \"cart\\n,*\"\nexclude = [\"cart\\n,x*\", \"c,d\"]\ndb = 3\nqueue = \"orders\"\n\
         payload = \"key\"\npayload_key = \"order:{1}\"\non_unproven = \"drop\"\non_evicted = \"fire\"\nproof_wait = \"50ms\"\n\
         [[watch]]\npattern = \"*\"\nqueue = \"rest\"\npayload = \"value\"\n",
    );
    let carts = Rule {
        exclude: vec![Glob::new("cart\n,x*"), Glob::new("c,d")],
        db: 3,
        payload: Payload::Key(Template::new("order:{1}").unwrap()),
        on_unproven: OnUnproven::Drop,
        on_evicted: OnEvicted::Fire,
        proof_wait: Duration::from_millis(50),
        ..rule("carts", "cart\n,*", "orders")
    };
    let rest = Rule { payload: Payload::Value, ..rule("rest", "*", "rest") };
    assert_eq!(rules(Some(path), "", &[]), [carts, rest]);
}

#[test]
fn the_database_is_that_of_the_url_unless_the_rule_names_one() {
    let (_dir, path) = file(&format!("{MINIMAL}[[watch]]\npattern = \"a\"\nqueue = \"q\"\ndb = 0\n"));
    let dbs = |flags, url| {
        let rules = rules(Some(path.clone()), flags, &[("OVERDUE_REDIS_URL", url)]);
        rules.iter().map(|rule| rule.db).collect::<Vec<_>>()
    };
    assert_eq!(dbs("", "redis://h/2"), [2, 0]);
    assert_eq!(dbs("a=q", "redis://h/2"), [2]);
    assert_eq!(dbs("", "redis-cluster://h/"), [0, 0]);
    assert_eq!(
        wrong_at("redis-cluster://h/", &format!("{MINIMAL}db = 3\n")),
        ["-:4:6: watch.db is 3, but a cluster has only database 0: leave it out"]
    );
}

#[test]
fn rules_of_a_stronger_layer_take_the_place_of_all_others() {
    let (_dir, path) = file(MINIMAL);
    let config = Some(path);
    let variables = [("OVERDUE_WATCH", "a,b c*=env\n x=env\n")];
    assert_eq!(
        rules(config.clone(), "", &variables),
        [rule("env", "a,b c*", "env"), rule("env-2", "x", "env")]
    );
    assert_eq!(rules(config.clone(), "k=v:*=flag", &variables), [rule("flag", "k=v:*", "flag")]);
    assert_eq!(rules(config, "", &[("OVERDUE_WATCH", "")]), [rule("sessions", "session:*", "sessions")]);
}

#[test]
fn short_rules_are_named_after_their_queue_and_numbered() {
    let names = |flags: &str| {
        rules(None, flags, &[]).iter().map(|rule| rule.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("a=q\nb=q-2\nc=q\nd=q"), ["q", "q-2", "q-3", "q-4"]);
    let long = "x".repeat(64);
    assert_eq!(names(&format!("a={long}\nb={long}")), [long.clone(), format!("{}-2", &long[..62])]);
}

#[test]
fn short_rules_that_are_wrong_say_what_to_write() {
    for (text, problem) in [
        (
            "session:*",
            "--watch: invalid value \"session:*\": write PATTERN=QUEUE, such as session:*=sessions",
        ),
        ("", "--watch: there is no rule in \"\": write PATTERN=QUEUE, such as session:*=sessions"),
        ("=q", "--watch: invalid value \"=q\": empty: write a Redis glob such as session:*"),
        (
            "a@b:*=Q",
            "--watch: invalid value \"a@b:*=Q\": the queue name \"Q\" is not valid: 1 to 64 of a-z 0-9 . _ -, \
             beginning with a letter or digit",
        ),
    ] {
        assert_eq!(errors(None, vec![flag(&WATCH.entry, text)], &[]), [problem]);
    }
    assert_eq!(
        errors(None, vec![], &[("OVERDUE_WATCH", "a=b\nc")]),
        [
            "OVERDUE_WATCH: invalid value \"a=b\\nc\": in \"c\": write PATTERN=QUEUE, such as session:*=sessions"
        ]
    );
    let many: Vec<_> = (0..=MOST).map(|n| format!("{n}:*=q")).collect();
    assert_eq!(
        errors(None, vec![flag(&WATCH.entry, &many.join("\n"))], &[]),
        ["--watch: more than 256 watch rules: let patterns cover more keys"]
    );
}

#[test]
fn what_is_wrong_in_the_file_has_its_place() {
    assert_eq!(
        wrong(
            "[[watch]]\npatern = \"a\"\npattern = \"\"\nexclude = \"b\"\ndb = 256\nqueue = \"Q\"\nname = \"A b\"\n\
             payload = \"all\"\npayload_key = \"{1}\"\non_unproven = \"keep\"\non_evicted = \"drop\"\nproof_wait = \"2s\"\n"
        ),
        [
            "-:2:1: there is no setting watch.patern; the nearest name is watch.pattern",
            "-:4:11: watch.exclude: write a list of strings, such as [\"session:tmp:*\"]",
            "-:3:11: watch.pattern: invalid value \"\": empty: write a Redis glob such as session:*",
            "-:6:9: watch.queue: invalid value \"Q\": the queue name \"Q\" is not valid: 1 to 64 of a-z 0-9 . _ -, \
             beginning with a letter or digit",
            "-:7:8: watch.name: invalid value \"A b\": not a rule name: 1 to 64 of a-z 0-9 . _ -, beginning with a \
             letter or digit",
            "-:5:6: watch.db: invalid value \"256\": not a whole number from 0 to 255",
            "-:8:11: watch.payload: invalid value \"all\": not one of none, value, key",
            "-:10:15: watch.on_unproven: invalid value \"keep\": not one of fire, drop",
            "-:11:14: watch.on_evicted: invalid value \"drop\": not one of fire, ignore",
            "-:12:14: watch.proof_wait: invalid value \"2s\": too long: at most 1s",
        ]
    );
    let long = "x".repeat(1025);
    let text = format!("[[watch]]\npattern = \"a\"\nqueue = \"q\"\nexclude = [\"b\", \"{long}\"]\n");
    assert!(wrong(&text)[0].ends_with(": longer than 1024 bytes: let a * stand for a part of it"));
}

#[test]
fn rules_are_tables_of_their_own() {
    let form = "watch is a list: write [[watch]] on a line of its own for each";
    assert_eq!(wrong("[watch]\npattern = \"a\"\n"), [format!("-:1:2: {form}")]);
    assert_eq!(wrong("watch = [\"a=b\"]\n"), [format!("-:1:10: {form}")]);
    assert_eq!(wrong("watch = \"a=b\"\n"), [format!("-:1:9: watch: {form}")]);
    assert_eq!(wrong("[wacth]\n"), ["-:1:2: there is no section [wacth]; the nearest name is [[watch]]"]);
    assert_eq!(wrong("[[wacth]]\n"), ["-:1:3: there is no section [wacth]; the nearest name is [[watch]]"]);
}

#[test]
fn a_payload_key_fits_its_rule() {
    let with = |pattern: &str, more: &str| {
        wrong(&format!("[[watch]]\npattern = {pattern:?}\nqueue = \"q\"\n{more}\n"))
    };
    assert_eq!(
        with("a*", "payload = \"key\""),
        [
            "-:4:11: watch.payload is \"key\", but watch.payload_key is missing: write which key, such as payload_key = \"order:{1}\""
        ]
    );
    assert_eq!(
        with("a*", "payload_key = \"b:{1}\""),
        ["-:4:15: watch.payload_key is set, but nothing reads it: write payload = \"key\" beside it"]
    );
    assert_eq!(
        with("a\\*?", "payload = \"key\"\npayload_key = \"b:{1}\""),
        [
            "-:5:15: watch.payload_key: {1} is what the first * of the pattern matches, and the pattern has no *: write a * \
          or a key without {1}"
        ]
    );
    assert_eq!(
        with("a*", "payload = \"key\"\npayload_key = \"b\""),
        [
            "-:5:15: watch.payload_key: without {1} every key of the rule carries the value of one and the same key: write \
          {1} for what the first * of the pattern matches"
        ]
    );
    let bad = with("a*", "payload = \"key\"\npayload_key = \"b:{2}\"");
    assert!(
        bad.len() == 1 && bad[0].starts_with("-:5:15: watch.payload_key: invalid value \"b:{2}\": "),
        "{bad:?}"
    );
    let (_dir, path) =
        file("[[watch]]\npattern = \"a\"\nqueue = \"q\"\npayload = \"key\"\npayload_key = \"b\"\n");
    assert_eq!(rules(Some(path), "", &[])[0].payload, Payload::Key(Template::new("b").unwrap()));
}

#[test]
fn two_rules_never_share_a_name() {
    assert_eq!(
        wrong(
            "[[watch]]\npattern = \"a\"\nqueue = \"q\"\n[[watch]]\npattern = \"b\"\nqueue = \"q\"\n\
             [[watch]]\nname = \"q\"\npattern = \"c\"\nqueue = \"r\"\n"
        ),
        [
            "-:4:1: watch.name: the rule at -:1:1 is called q already: write name = \"q-2\" or the like",
            "-:8:8: watch.name: the rule at -:1:1 is called q already: write name = \"q-2\" or the like",
        ]
    );
}

#[test]
fn a_rule_that_never_gets_a_key_is_refused() {
    let problem = "--watch: rule b never gets a key: rule a, which comes first, takes them all. A key goes to one queue: \
                   let groups of queue a share it";
    assert_eq!(errors(None, vec![flag(&WATCH.entry, "s:*=a\ns:*=b")], &[]), [problem]);
    assert_eq!(errors(None, vec![flag(&WATCH.entry, "**=a\ns:*=b")], &[]), [problem]);
    let (_dir, path) = file(&format!(
        "{MINIMAL}exclude = [\"session:x*\"]\n[[watch]]\nqueue = \"b\"\npattern = \"session:*\"\n\
         [[watch]]\nqueue = \"c\"\npattern = \"session:*\"\ndb = 1\n"
    ));
    assert_eq!(rules(Some(path), "", &[]).len(), 3);
}

#[test]
fn a_pattern_for_everything_is_warned_of() {
    assert_eq!(warnings(&rules(None, "a*=q\noverdue:*=r", &[])), Vec::<String>::new());
    let said = warnings(&rules(None, "*=all", &[]));
    assert!(said.len() == 1 && said[0].starts_with("rule all: the pattern * watches every key"), "{said:?}");
}

#[test]
fn rules_are_shown_with_what_they_say_and_where() {
    let shown = |given: Layers| {
        let rules = Settings::resolve(given.clone()).unwrap().relay.watch;
        let rows = show::effective(&given, &rules).into_iter().filter(|row| row.name.starts_with("watch"));
        rows.map(|row| format!("{} {} {}", row.name, row.value, row.from)).collect::<Vec<_>>()
    };
    assert_eq!(shown(Layers::default()), ["watch  default"]);
    let given = layers(None, vec![flag(&WATCH.entry, "u@h:*=q")], &[("OVERDUE_REDIS_URL", "redis://h/7")]);
    let expected = [
        "watch.q.name q default",
        "watch.q.pattern u@h:* --watch",
        "watch.q.exclude [] default",
        "watch.q.db 7 default",
        "watch.q.queue q --watch",
        "watch.q.payload none default",
        "watch.q.payload_key  default",
        "watch.q.on_unproven fire default",
        "watch.q.on_evicted ignore default",
        "watch.q.proof_wait 1s default",
    ];
    assert_eq!(shown(given), expected);
    let (_dir, path) = file(&format!("{MINIMAL}exclude = [\"a\\n\", \"b\"]\n"));
    let rows = shown(layers(Some(path.clone()), vec![], &[]));
    assert_eq!(rows[2], format!("watch.sessions.exclude [\"a\\n\",\"b\"] {}:4:11", path.display()));
}
