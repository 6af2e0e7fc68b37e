//! What a PromQL expression names.

use std::collections::BTreeSet;

use overdue_telemetry::Metric;
use overdue_telemetry::metric::Kind;

/// Labels that every series of ours has once it is scraped.
const EVERYWHERE: [&str; 2] = ["namespace", "instance"];

/// The metrics named in it: ours, and those of processes.
pub(crate) fn names(expression: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c| !is_part(c));
    words
        .filter(|word| word.starts_with("overdue_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

/// The metric of a series' name: of a histogram also by its parts.
pub(crate) fn metric(name: &str) -> Option<Metric> {
    Metric::ALL.iter().copied().find(|metric| match metric.kind() {
        Kind::Histogram(_) => {
            ["_bucket", "_sum", "_count"].iter().any(|part| name.strip_suffix(part) == Some(metric.name()))
        }
        _ => metric.name() == name,
    })
}

/// What is wrong with it: metrics that are not ours, labels that the metric has not, sums of what every relay reports.
pub(crate) fn wrong(expression: &str) -> Vec<String> {
    let mut wrong = vec![];
    let mut labels: BTreeSet<&str> = EVERYWHERE.into_iter().chain(["le"]).collect();
    for name in names(expression).iter().filter(|name| name.starts_with("overdue_")) {
        let Some(metric) = metric(name) else {
            wrong.push(format!("no metric {name}"));
            continue;
        };
        labels.extend(metric.labels());
        for (before, after) in places(expression, name) {
            for label in selectors(after) {
                if !metric.labels().contains(&label) && !EVERYWHERE.contains(&label) {
                    wrong.push(format!("{name} has no label {label}"));
                }
            }
            if metric.kind() == Kind::Gauge && sums_relays(before) {
                wrong.push(format!("{name} is summed over the relays"));
            }
        }
    }
    for list in ["by (", "on ("].iter().flat_map(|word| expression.split(word).skip(1)) {
        let list = list.split(')').next().unwrap_or_default().split(',').map(str::trim);
        let known = |label: &&str| !label.is_empty() && !labels.contains(label);
        wrong.extend(list.filter(known).map(|label| format!("no metric in it has the label {label}")));
    }
    wrong
}

/// What stands before and after each place where the name stands as a whole.
fn places<'a>(expression: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let ends = |after: &str| !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let places = expression.match_indices(name);
    let places = places.map(|(at, _)| (&expression[..at], &expression[at + name.len()..]));
    places.filter(|(_, after)| ends(after)).collect()
}

/// The labels between the braces that follow a name.
fn selectors(after: &str) -> Vec<&str> {
    let Some(inside) = after.strip_prefix('{').and_then(|rest| rest.split('}').next()) else { return vec![] };
    let labels = inside.split(',').filter_map(|one| one.split(['=', '!']).next());
    labels.map(str::trim).collect()
}

/// Whether what stands before a gauge sums it without telling the processes apart.
fn sums_relays(before: &str) -> bool {
    let call = before.trim_end().trim_end_matches('(').trim_end();
    let (call, by) = match call.strip_suffix(')').and_then(|call| call.rsplit_once("by (")) {
        Some((call, by)) => (call.trim_end(), by),
        None => (call, ""),
    };
    (call.ends_with("sum") || call.ends_with("avg")) && !by.contains("instance")
}

#[test]
fn what_is_wrong_in_an_expression_is_found() {
    for (expression, word) in [
        (r#"max(overdue_armd{queue="q"})"#, "no metric overdue_armd"),
        (r#"max by (queue) (overdue_armed{qeue="q"})"#, "no label qeue"),
        ("max by (group) (overdue_armed)", "label group"),
        ("rate(overdue_lateness_seconds[1m])", "no metric overdue_lateness_seconds"),
        ("sum by (queue) (overdue_armed)", "summed"),
        ("sum(overdue_armed)", "summed"),
    ] {
        let wrong = wrong(expression);
        assert!(wrong.len() == 1 && wrong[0].contains(word), "{expression}: {wrong:?}");
    }
    for expression in [
        r#"max by (namespace, queue) (overdue_armed{queue=~"q", instance="i"}) > 1"#,
        "histogram_quantile(0.99, sum by (queue, le) (rate(overdue_lateness_seconds_bucket[1m])))",
        "sum(max by (queue) (overdue_armed))",
        "sum by (instance, queue) (overdue_in_flight)",
    ] {
        assert!(wrong(expression).is_empty(), "{expression}: {:?}", wrong(expression));
    }
}
