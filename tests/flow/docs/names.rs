//! What the docs call by its name is there: metrics, environment variables, log lines.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use overdue_store::ErrorKind;
use overdue_telemetry::Metric;

use super::blocks::{files, text};
use super::terminal::Terminal;

/// The words of `text` that begin with `prefix`.
fn words(text: &str, prefix: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with(prefix) && *word != prefix);
    words.map(str::to_owned).collect()
}

/// All of a folder's sources, with the strings that go on in the next line put together.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &fs::read_to_string(&path).unwrap();
        }
    }
    let lines: Vec<_> = all
        .split("\\\n")
        .enumerate()
        .map(|(n, part)| if n == 0 { part } else { part.trim_start() })
        .collect();
    lines.concat()
}

fn crates() -> String {
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates"))
}

#[test]
fn every_metric_is_one_of_ours() {
    let known: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name().to_owned()).collect();
    for name in files() {
        // A crate, as the filter of the log calls it.
        let used = words(&text(&name).replace("overdue_relay=debug", ""), "overdue_");
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}

#[test]
fn every_metric_is_fed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let others = fs::read_dir(&crates).unwrap().map(|folder| folder.unwrap().path());
    let mut feeding: String =
        others.filter(|folder| !folder.ends_with("telemetry")).map(|folder| sources(&folder)).collect();
    for file in ["health.rs", "process.rs", "registry.rs"] {
        let text = fs::read_to_string(crates.join("telemetry/src").join(file)).unwrap();
        feeding += text.split("#[cfg(test)]").next().unwrap();
    }
    let fed = words(&feeding.replace("Metric::", "Metric__"), "Metric__");
    let idle: Vec<_> =
        Metric::ALL.iter().filter(|metric| !fed.contains(&format!("Metric__{metric:?}"))).collect();
    assert!(idle.is_empty(), "nothing feeds {idle:?}");
}

#[test]
fn every_environment_variable_is_read_or_set() {
    let terminal = Terminal::nowhere();
    let mut sample = terminal.run("overdue config sample");
    assert_eq!(sample.code(), 0);
    let known: BTreeSet<_> = words(&(crates() + &sample.output()), "OVERDUE_");
    for name in files() {
        let used = words(&text(&name), "OVERDUE_");
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}

#[test]
fn every_log_line_that_operations_explains_is_written() {
    let sources = crates().replace("{SETTING}", "notify-keyspace-events").replace("{of}", "");
    let operations = text("docs/OPERATIONS.md");
    let table = operations.split("| line | means | what to do |").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let first = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let phrases: Vec<_> = first.flat_map(|cell| cell.split('`').step_by(2)).collect();
    assert!(phrases.len() > 10, "{phrases:?}");
    for phrase in phrases.into_iter().filter(|phrase| !phrase.is_empty()) {
        let phrase = phrase.trim_end_matches(" ...");
        assert!(sources.contains(phrase), "nothing says {phrase:?}");
    }
}

#[test]
fn every_kind_of_error_has_its_line_in_operations_and_no_other() {
    let operations = text("docs/OPERATIONS.md");
    let section = operations.split("\n## Errors\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let explained: Vec<_> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(explained, ErrorKind::ALL.map(ErrorKind::as_str));
}
