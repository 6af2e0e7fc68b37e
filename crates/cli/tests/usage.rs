//! Exit codes and error texts of the program that need no server.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program, in an environment without settings of ours.
fn overdue() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overdue"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OVERDUE_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    overdue().args(args).output().expect("the program starts")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("stdout is UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("stderr is UTF-8")
}

/// Asserts exit code 2, nothing on stdout, and stderr beginning with `text`.
fn assert_refused(output: &Output, text: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert_eq!(stdout(output), "");
    assert!(stderr(output).starts_with(text), "expected {text:?}, got {:?}", stderr(output));
}

#[test]
fn help_and_version_are_no_errors() {
    for args in
        [&["--help"][..], &["-h"], &["--version"], &["consume", "--help"], &["dead", "replay", "--help"]]
    {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn unknown_commands_and_flags_are_usage_errors() {
    assert_refused(&run(&["shedule"]), "error: unrecognized subcommand 'shedule'");
    assert_refused(&run(&["list", "orders", "--lmit", "5"]), "error: unexpected argument '--lmit' found");
    assert_refused(
        &run(&["list", "Orders"]),
        "error: invalid value 'Orders' for '<QUEUE>': the queue name \"Orders\" is not valid",
    );
    assert_eq!(run(&[]).status.code(), Some(2));
}

#[test]
fn times_that_mislead_are_refused() {
    for (args, text) in [
        (
            ["--in", "15"],
            "error: invalid value '15' for '--in <DURATION>': a number without a unit: write 15s, 15m or 15h\n",
        ),
        (
            ["--in", "-5m"],
            "error: invalid value '-5m' for '--in <DURATION>': negative: write a duration from 0s up, such as 5m\n",
        ),
        (
            ["--in", "1e9d"],
            "error: invalid value '1e9d' for '--in <DURATION>': not a duration: write it like 500ms, 30s, 15m, 1h30m or 7d\n",
        ),
        (
            ["--at", "1767225600"],
            "error: invalid value '1767225600' for '--at <TIME>': looks like seconds: write unix milliseconds (1767225600000) or 2026-01-01T00:00:00Z\n",
        ),
    ] {
        assert_refused(&run(&["schedule", "orders", "a", args[0], args[1]]), text);
    }
}

#[test]
fn ids_have_1_to_512_bytes() {
    let long = "x".repeat(513);
    assert_refused(
        &run(&["cancel", "orders", ""]),
        "error: invalid value '' for '<ID>...': the timer id \"\" is not valid: 1 to 512 bytes",
    );
    assert_refused(&run(&["cancel", "orders", &long]), "error: invalid value 'xxx");
}

#[test]
fn an_unknown_variable_is_an_error() {
    let output = overdue()
        .args(["doctor"])
        .env("OVERDUE_REDIS_ULR", "redis://x/")
        .output()
        .expect("the program starts");
    assert_refused(
        &output,
        "overdue: OVERDUE_REDIS_ULR: there is no such setting; the nearest name is OVERDUE_REDIS_URL\n",
    );
}

#[test]
fn a_command_run_by_consume_may_run_overdue() {
    let mut command = overdue();
    for name in ["KEY", "QUEUE", "ID", "ID_BASE64", "GENERATION", "DUE_MS", "ATTEMPT", "SOURCE", "GROUP"] {
        command.env(format!("OVERDUE_{name}"), "x");
    }
    let output = command.args(["config", "check"]).output().expect("the program starts");
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "ok\n"), "{}", stderr(&output));
}

#[test]
fn wrong_settings_are_a_line_each() {
    let output = overdue()
        .args(["doctor", "--redis", "localhost"])
        .env("OVERDUE_CONSUME_LEASE", "30")
        .output()
        .expect("the program starts");
    assert_refused(
        &output,
        "overdue: --redis: invalid value \"localhost\": not a Redis URL: write redis://host:6379/",
    );
    let lines: Vec<&str> = stderr(&output).lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(
        lines[1],
        "overdue: OVERDUE_CONSUME_LEASE: invalid value \"30\": a number without a unit: write 30s, 30m or 30h"
    );
}

fn write(dir: &Path, text: &str) -> String {
    let path = dir.join("overdue.toml");
    std::fs::write(&path, text).expect("the file can be written");
    path.to_str().expect("the path is UTF-8").to_owned()
}

#[test]
fn config_check_names_line_and_column() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = write(dir.path(), "[redis]\nurl = \"redis://a/\"\nusrname = \"x\"\n");
    let output = run(&["config", "check", "--config", &path]);
    let expected = format!(
        "overdue: {path}:3:1: there is no setting redis.usrname; the nearest name is redis.username\n"
    );
    assert_refused(&output, &expected);
    let path = write(dir.path(), "[redis]\nusername = \"x\"\n");
    assert_eq!(stdout(&run(&["config", "check", "--config", &path])), "ok\n");
    let json = run(&["config", "check", "--json", "--config", &path]);
    assert_eq!(stdout(&json), format!("{{\"ok\":true,\"file\":\"{path}\"}}\n"));
}

#[test]
fn a_watch_rule_that_is_wrong_says_what_to_write() {
    for (rule, text) in [
        ("session:*", "invalid value \"session:*\": write PATTERN=QUEUE, such as session:*=sessions\n"),
        ("", "there is no rule in \"\": write PATTERN=QUEUE, such as session:*=sessions\n"),
        ("=sessions", "invalid value \"=sessions\": empty: write a Redis glob such as session:*\n"),
        (
            "session:*=Sessions",
            "invalid value \"session:*=Sessions\": the queue name \"Sessions\" is not valid: 1 to 64 of a-z 0-9",
        ),
    ] {
        assert_refused(&run(&["relay", "--watch", rule]), &format!("overdue: --watch: {text}"));
    }
    assert_refused(
        &run(&["relay", "--watch", "a=b=q", "--watch", "a=b=r"]),
        "overdue: --watch: rule r never gets a key: rule q, which comes first, takes them all.",
    );
    let output = overdue()
        .args(["config", "check"])
        .env("OVERDUE_WATCH", "session:*=sessions\norder:*\n")
        .output()
        .expect("the program starts");
    assert_refused(
        &output,
        "overdue: OVERDUE_WATCH: invalid value \"session:*=sessions\\norder:*\\n\": in \"order:*\": write PATTERN=QUEUE",
    );
}

#[test]
fn a_watch_rule_of_the_file_that_is_wrong_has_its_place() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = |url: &str, pattern: &str, line: &str, text: &str| {
        let rule = format!("[[watch]]\npattern = \"{pattern}\"\nqueue = \"orders\"\n{line}\n");
        let path = write(dir.path(), &rule);
        let output = run(&["config", "check", "--config", &path, "--redis", url]);
        assert_refused(&output, &format!("overdue: {path}:{text}"));
    };
    let local = "redis://127.0.0.1/";
    refused(
        local,
        "a*",
        "qeue = \"q\"",
        "4:1: there is no setting watch.qeue; the nearest name is watch.queue\n",
    );
    refused(
        local,
        "",
        "",
        "2:11: watch.pattern: invalid value \"\": empty: write a Redis glob such as session:*\n",
    );
    refused(
        local,
        "a*",
        "db = 256",
        "4:6: watch.db: invalid value \"256\": not a whole number from 0 to 255\n",
    );
    let cluster = "redis-cluster://127.0.0.1/";
    refused(cluster, "a*", "db = 1", "4:6: watch.db is 1, but a cluster has only database 0: leave it out\n");
    refused(
        local,
        "a*",
        "payload = \"key\"",
        "4:11: watch.payload is \"key\", but watch.payload_key is missing: write which key, such as",
    );
    refused(
        local,
        "a*",
        "payload_key = \"b:{1}\"",
        "4:15: watch.payload_key is set, but nothing reads it: write payload = \"key\" beside it\n",
    );
    let other = "payload = \"key\"\npayload_key = ";
    refused(
        local,
        "a?",
        &format!("{other}\"b:{{1}}\""),
        "5:15: watch.payload_key: {1} is what the first * of the",
    );
    refused(
        local,
        "a*",
        &format!("{other}\"b\""),
        "5:15: watch.payload_key: without {1} every key of the rule",
    );
    let again = "[[watch]]\npattern = \"b\"\nqueue = \"orders\"";
    refused(local, "a*", again, "4:1: watch.name: the rule at ");
}

#[test]
fn config_check_warns_of_a_rule_for_everything() {
    let check = |args: &[&str]| {
        let output = overdue().args(args).env("OVERDUE_WATCH", "*=all").output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    let said = check(&["config", "check"]);
    assert!(
        said.starts_with("warning: rule all: the pattern * watches every key with a TTL in database 0"),
        "{said}"
    );
    assert!(said.ends_with("\nok\n"), "{said}");
    let said = check(&["config", "check", "--json"]);
    assert!(said.starts_with("{\"ok\":true,\"file\":null,\"warnings\":[\"rule all: "), "{said}");
}

#[test]
fn config_sample_is_a_valid_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let sample = run(&["config", "sample"]);
    assert_eq!(sample.status.code(), Some(0));
    let path = write(dir.path(), stdout(&sample));
    assert_eq!(stdout(&run(&["config", "check", "--config", &path])), "ok\n");
}

#[test]
fn config_show_says_where_each_value_comes_from_and_hides_passwords() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = write(dir.path(), "namespace = \"team\"\n");
    let output = overdue()
        .args(["config", "show", "--config", &path, "--redis", "redis://u:geheim@h/2"])
        .env("OVERDUE_CONSUME_ATTEMPTS", "5")
        .env("OVERDUE_REDIS_PASSWORD", "geheim")
        .output()
        .expect("the program starts");
    let text = stdout(&output);
    assert!(!text.contains("geheim"), "{text}");
    let lists = text.lines().rev().take(3).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let none = ["consumer", "group", "watch"].map(|list| vec![list, "-", "default"]);
    assert_eq!(lists.collect::<Vec<_>>(), none);
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("namespace"), ["namespace", "team", &format!("{path}:1:13")]);
    assert_eq!(line("redis.url"), ["redis.url", "redis://u:***@h/2", "--redis"]);
    assert_eq!(line("redis.password "), ["redis.password", "***", "OVERDUE_REDIS_PASSWORD"]);
    assert_eq!(line("consume.attempts"), ["consume.attempts", "5", "OVERDUE_CONSUME_ATTEMPTS"]);
    assert_eq!(line("consume.lease"), ["consume.lease", "30s", "default"]);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = overdue()
        .args(["config", "sample"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}
