//! What the docs call by its name is there: metrics, environment variables.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use overdue_telemetry::Metric;

use super::blocks::{files, text};
use super::sources::{crates, sources};
use super::terminal::Terminal;

/// The words of `text` that begin with `prefix`.
fn words(text: &str, prefix: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with(prefix) && *word != prefix);
    words.map(str::to_owned).collect()
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
