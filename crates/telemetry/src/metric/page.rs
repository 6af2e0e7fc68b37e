//! `docs/METRICS.md`, made of the table.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{Kind, Metric, Part};

const HEAD: &str = "\
# Metrics

What `/metrics` says (address: `--listen`; OPERATIONS.md says how to look). This page is made from the table in
`crates/telemetry/src/metric/table.rs` by a test: it is not written by hand.

- Every series carries the label `namespace` too: the namespace of the keys (`--namespace`). It is not repeated below.
- **Every relay reports the same gauges of queues and groups: use `max`, not `sum`.** Counters and histograms are each process's own: `sum`.
- A gauge that is not known is absent, never 0. Counters of what has not happened yet may be absent too.
- Labels without a set below: `queue` and `group` are names that users chose; `node` is `server`, or the id of a node of a cluster; `feed` is
  `node/db`; `version` is the program's.

";

const WORDS: &str = "\
## What the words mean

Those of `word` stand in PROTOCOL.md, section 3; those of `kind`, and of `result` of calls to Redis, in OPERATIONS.md, section Errors; those of
`call` are the scripts in `lua/`, a `read` that blocks, or any other `command`.

";

/// The whole page.
fn page() -> String {
    let mut page = HEAD.to_owned();
    for part in Part::ALL {
        let _ = writeln!(page, "## {part:?}\n\n{}\n", part.about().trim());
        page += "| name | type | unit | labels | says |\n|---|---|---|---|---|\n";
        for metric in Metric::ALL.iter().filter(|metric| metric.part() == *part) {
            let kind = match metric.kind() {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram(_) => "histogram",
            };
            let labels: Vec<String> =
                metric.labels().iter().zip(metric.words()).map(|(label, words)| cell(label, words)).collect();
            let (name, unit) = (metric.name(), metric.unit());
            let _ =
                writeln!(page, "| `{name}` | {kind} | {unit} | {} | {} |", labels.join("; "), metric.help());
        }
        page.push('\n');
    }
    page += WORDS;
    for (label, words, meanings, metrics) in sets() {
        let names: Vec<_> = metrics.iter().map(|metric| format!("`{}`", metric.name())).collect();
        let _ = writeln!(page, "**`{label}`** of {}:\n", names.join(", "));
        for (word, means) in words.iter().zip(meanings) {
            let _ = writeln!(page, "- `{word}`: {}", means.trim());
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

type Set = (&'static str, &'static [&'static str], &'static [&'static str], Vec<Metric>);

/// The sets of words that are explained, in the order in which they come first, with the metrics that have them.
fn sets() -> Vec<Set> {
    let mut sets: Vec<Set> = vec![];
    for &metric in Metric::ALL {
        for ((&label, &words), &meanings) in metric.labels().iter().zip(metric.words()).zip(metric.meanings())
        {
            match sets.iter_mut().find(|set| set.0 == label && set.1 == words) {
                _ if meanings.is_empty() => {}
                Some(known) => known.3.push(metric),
                None => sets.push((label, words, meanings, vec![metric])),
            }
        }
    }
    sets
}

fn cell(label: &str, words: &[&str]) -> String {
    if words.is_empty() { format!("`{label}`") } else { format!("`{label}`: {}", words.join(", ")) }
}

#[test]
fn the_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let page = page();
    if fs::read_to_string(&path).ok().as_deref() != Some(&page) {
        fs::write(&path, &page).unwrap();
        panic!("docs/METRICS.md was out of date, and is now written anew from the table");
    }
}
