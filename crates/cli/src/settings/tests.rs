use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use super::layers::{Given, Origin};
use super::*;

pub(super) fn flag(key: &'static key::Entry, text: &str) -> Given {
    Given { entry: key, text: text.to_owned(), origin: Origin::Flag(key.flag.unwrap().long) }
}

/// A settings file in a folder of its own; both live as long as the result.
pub(super) fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("overdue.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

pub(super) fn layers(config: Option<PathBuf>, flags: Vec<Given>, variables: &[(&str, &str)]) -> Layers {
    let variables: Vec<_> = variables.iter().map(|(n, v)| (OsString::from(n), OsString::from(v))).collect();
    Layers::collect(config, flags, variables.into_iter())
}

pub(super) fn errors(config: Option<PathBuf>, flags: Vec<Given>, variables: &[(&str, &str)]) -> Vec<String> {
    Settings::resolve(layers(config, flags, variables)).unwrap_err()
}

/// What is wrong with a file, with `-` for its path.
pub(super) fn wrong(text: &str) -> Vec<String> {
    let (_dir, path) = file(text);
    let errors = errors(Some(path.clone()), vec![], &[]);
    errors.into_iter().map(|line| line.replace(path.to_str().unwrap(), "-")).collect()
}

#[test]
fn the_defaults_are_valid_and_as_documented() {
    let settings = Settings::resolve(Layers::default()).unwrap();
    assert_eq!(settings.redis.url, "redis://127.0.0.1:6379/");
    assert_eq!(settings.redis.keyspace, Keyspace::default());
    assert_eq!(settings.consume.lease, Duration::from_secs(30));
    assert_eq!(settings.consume.attempts, 20);
    assert_eq!(settings.client.max_payload, 1024 * 1024);
    assert_eq!(settings.relay.watch, []);
    assert_eq!(settings.relay.notifications, Notifications::Keyspace);
    assert_eq!((settings.relay.scan_keys_per_s, settings.relay.value_max), (50_000, 1024 * 1024));
    assert_eq!(settings.relay.scan_every, Duration::from_secs(600));
    assert_eq!(settings.relay.listen, Listen::At(([127, 0, 0, 1], 9633).into()));
    assert_eq!(settings.consume.listen, Listen::At(([127, 0, 0, 1], 9634).into()));
}

#[test]
fn flags_stand_above_the_environment_above_the_file() {
    let (_dir, path) = file("[consume]\nlease = \"2s\"\nattempts = 2\nconcurrency = 2\n");
    let variables = [("OVERDUE_CONSUME_LEASE", "3s"), ("OVERDUE_CONSUME_ATTEMPTS", "3")];
    let given = layers(Some(path.clone()), vec![flag(&table::CONSUME_LEASE.entry, "4s")], &variables);
    let shown = show::effective(&given, &[]);
    let find =
        |name| shown.iter().find(|setting| setting.name == name).map(|s| (s.value.as_str(), s.from.as_str()));
    assert_eq!(find("consume.lease"), Some(("4s", "--lease")));
    assert_eq!(find("consume.attempts"), Some(("3", "OVERDUE_CONSUME_ATTEMPTS")));
    assert_eq!(find("consume.concurrency"), Some(("2", format!("{}:4:15", path.display()).as_str())));
    assert_eq!(find("consume.grace"), Some(("25s", "default")));
    let settings = Settings::resolve(given).unwrap();
    assert_eq!(settings.consume.lease, Duration::from_secs(4));
    assert_eq!((settings.consume.attempts, settings.consume.concurrency), (3, 2));
}

#[test]
fn the_environment_can_name_the_file_and_the_flag_wins() {
    let (_a, first) = file("namespace = \"a\"\n");
    let (_b, second) = file("namespace = \"b\"\n");
    let variables = [("OVERDUE_CONFIG", first.to_str().unwrap())];
    let namespace = |config| Settings::resolve(layers(config, vec![], &variables)).unwrap().redis.keyspace;
    assert_eq!(namespace(None).namespace().as_str(), "a");
    assert_eq!(namespace(Some(second)).namespace().as_str(), "b");
}

#[test]
fn all_that_is_wrong_is_said_at_once_with_its_place() {
    let (_dir, path) = file("[relay]\ngrace = 15\npgae = 1\n");
    let at = path.display();
    assert_eq!(
        errors(
            Some(path.clone()),
            vec![flag(&table::CONSUME_ATTEMPTS.entry, "0")],
            &[("OVERDUE_CONSUME_LEASE", "-5m"), ("OVERDUE_CONFG", "")],
        ),
        [
            format!("{at}:3:1: there is no setting relay.pgae; the nearest name is relay.page"),
            "OVERDUE_CONFG: there is no such setting; the nearest name is OVERDUE_CONFIG".to_owned(),
            format!(
                "{at}:2:9: relay.grace: invalid value \"15\": a number without a unit: write 15s, 15m or 15h"
            ),
            "OVERDUE_CONSUME_LEASE: invalid value \"-5m\": negative: write a duration from 0s up, such as 5m"
                .to_owned(),
            "--attempts: invalid value \"0\": not a whole number from 1 to 1000".to_owned(),
        ]
    );
}

#[test]
fn a_missing_file_is_an_error() {
    let errors = errors(Some("/nowhere/overdue.toml".into()), vec![], &[]);
    assert_eq!(errors, ["cannot read /nowhere/overdue.toml: No such file or directory (os error 2)"]);
}

#[test]
fn a_password_comes_from_the_stronger_layer_and_never_from_two_of_one() {
    let (_p, secret) = file("from-file\n");
    let secret = secret.to_str().unwrap();
    let (_f, config) = file(&format!("[redis]\npassword_file = {secret:?}\n"));
    let password = |variables: &[(&str, &str)]| {
        let settings = Settings::resolve(layers(Some(config.clone()), vec![], variables)).unwrap();
        settings.redis.password.unwrap().expose().to_owned()
    };
    assert_eq!(password(&[]), "from-file");
    assert_eq!(password(&[("OVERDUE_REDIS_PASSWORD", "from-environment")]), "from-environment");
    let both = [("OVERDUE_REDIS_PASSWORD", "x"), ("OVERDUE_REDIS_PASSWORD_FILE", secret)];
    let expected =
        "OVERDUE_REDIS_PASSWORD_FILE: redis.password and redis.password_file are both set: keep one";
    assert_eq!(errors(None, vec![], &both), [expected]);
}

#[test]
fn no_password_is_in_what_is_shown_or_said() {
    let variables = [("OVERDUE_REDIS_URL", "http://u:geheim@h/"), ("OVERDUE_REDIS_PASSWORD", "geheim")];
    let given = layers(None, vec![], &variables);
    let shown = format!("{:?}", show::effective(&given, &[]));
    assert!(shown.contains("***") && !shown.contains("geheim"), "{shown}");
    let errors = Settings::resolve(given).unwrap_err().join("\n");
    assert!(errors.contains("http://u:***@h/") && !errors.contains("geheim"), "{errors}");
}

#[test]
fn files_that_settings_name_must_be_readable() {
    let errors = errors(
        None,
        vec![],
        &[("OVERDUE_REDIS_CA_FILE", "/no/ca"), ("OVERDUE_REDIS_PASSWORD_FILE", "/no/pw")],
    );
    let os = "No such file or directory (os error 2)";
    assert_eq!(
        errors,
        [
            format!("OVERDUE_REDIS_CA_FILE: cannot read /no/ca: {os}"),
            format!("OVERDUE_REDIS_PASSWORD_FILE: cannot read /no/pw: {os}"),
        ]
    );
}

#[test]
fn waits_must_fit_together() {
    let errors = errors(
        None,
        vec![],
        &[("OVERDUE_CONSUME_RETRY_WAIT", "30m"), ("OVERDUE_CONSUME_RETRY_WAIT_MAX", "5m")],
    );
    assert_eq!(
        errors,
        ["OVERDUE_CONSUME_RETRY_WAIT: consume.retry_wait is longer than consume.retry_wait_max"]
    );
}

#[test]
fn the_store_has_a_word_on_the_url() {
    let errors = errors(None, vec![], &[("OVERDUE_REDIS_URL", "redis://u:geheim@h:port/")]);
    assert!(errors.len() == 1 && errors[0].starts_with("OVERDUE_REDIS_URL: "), "{errors:?}");
    assert!(!errors[0].contains("geheim"), "{errors:?}");
}

#[test]
fn the_table_is_sound() {
    let paths: BTreeSet<_> = table::ALL.iter().map(|entry| entry.path).collect();
    assert_eq!(paths.len(), table::ALL.len(), "two settings share a name");
    let mut sections: Vec<_> = table::ALL.iter().map(|entry| entry.section_and_name().0).collect();
    sections.dedup();
    let distinct: BTreeSet<_> = sections.iter().collect();
    assert_eq!(sections.len(), distinct.len(), "the settings of a section stand together");
    for entry in table::ALL.iter().chain(watch::table::KEYS) {
        assert!(entry.help.ends_with('.'), "{}", entry.path);
        assert!(!entry.values.ends_with('.'), "{}", entry.path);
    }
}
