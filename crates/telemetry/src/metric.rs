//! Every metric of Overdue: one enum.
//!
//! To add one, add a line to the table (`metric/table.rs`) and feed it from one place. A name is never reused with
//! another meaning: dashboards outlive releases.

#[cfg(test)]
mod page;
mod table;

pub use metrics::{Counter, Gauge, Histogram};
use metrics::{Key, Label, Level, Metadata, with_recorder};

pub use self::table::{Metric, Part};

/// What a number means over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows, until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution, with the upper bounds of its buckets, in the metric's unit.
    Histogram(&'static [f64]),
}

struct Spec {
    part: Part,
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    labels: &'static [&'static str],
    words: &'static [&'static [&'static str]],
    meanings: &'static [&'static [&'static str]],
    help: &'static str,
}

static METADATA: Metadata<'static> = Metadata::new("overdue", Level::INFO, None);

impl Metric {
    /// The name, as Prometheus shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Counter, gauge or histogram.
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.spec().kind
    }

    /// What it tells of.
    #[must_use]
    pub const fn part(self) -> Part {
        self.spec().part
    }

    /// The unit: `s`, `B` (bytes) or nothing.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        self.spec().unit
    }

    /// The label names, in the order in which values are given.
    #[must_use]
    pub const fn labels(self) -> &'static [&'static str] {
        self.spec().labels
    }

    /// Every value that each label may have, in the order of [`Metric::labels`]; nothing where users or Redis choose it.
    #[must_use]
    pub const fn words(self) -> &'static [&'static [&'static str]] {
        self.spec().words
    }

    /// What each of [`Metric::words`] means; nothing where that is said elsewhere.
    #[must_use]
    pub const fn meanings(self) -> &'static [&'static [&'static str]] {
        self.spec().meanings
    }

    /// One sentence on what it says.
    #[must_use]
    pub const fn help(self) -> &'static str {
        self.spec().help
    }

    /// Adds `n` to a counter. On a hot path keep a [`Metric::counter`].
    pub fn count(self, n: u64, values: &[&str]) {
        self.counter(values).increment(n);
    }

    /// Sets a gauge.
    pub fn set(self, value: f64, values: &[&str]) {
        self.gauge(values).set(value);
    }

    /// Takes a gauge out of the scrapes until it is set again: what is not known is not 0.
    pub fn clear(self, values: &[&str]) {
        self.gauge(values).set(f64::NAN);
    }

    /// Adds one observation to a histogram. On a hot path keep a [`Metric::histogram`].
    pub fn observe(self, value: f64, values: &[&str]) {
        self.histogram(values).record(value);
    }

    /// A handle to one counter: 5 ns for each use, cheap to clone.
    pub fn counter(self, values: &[&str]) -> Counter {
        debug_assert_eq!(self.kind(), Kind::Counter, "{self:?} is no counter");
        with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA))
    }

    /// A handle to one gauge.
    pub fn gauge(self, values: &[&str]) -> Gauge {
        debug_assert_eq!(self.kind(), Kind::Gauge, "{self:?} is no gauge");
        with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA))
    }

    /// A handle to one histogram.
    pub fn histogram(self, values: &[&str]) -> Histogram {
        debug_assert!(matches!(self.kind(), Kind::Histogram(_)), "{self:?} is no histogram");
        with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA))
    }

    fn key(self, values: &[&str]) -> Key {
        debug_assert_eq!(values.len(), self.labels().len(), "{self:?} has the labels {:?}", self.labels());
        for (words, value) in self.words().iter().zip(values) {
            debug_assert!(words.is_empty() || words.contains(value), "{self:?} has no {value:?}: {words:?}");
        }
        let labels: Vec<Label> = self
            .labels()
            .iter()
            .zip(values)
            .map(|(&name, &value)| Label::new(name, value.to_owned()))
            .collect();
        Key::from_parts(self.name(), labels)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_keep_to_the_rules_of_prometheus() {
        let names: BTreeSet<_> = Metric::ALL.iter().map(|m| m.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len(), "two metrics share a name");
        for metric in Metric::ALL {
            let name = metric.name();
            assert!(name.starts_with("overdue_") || name.starts_with("process_"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert_eq!(metric.kind() == Kind::Counter, name.ends_with("_total"), "{name}");
            let base = name.trim_end_matches("_total");
            assert_eq!(metric.unit() == "s", base.ends_with("_seconds"), "{name}");
            assert_eq!(metric.unit() == "B", base.ends_with("_bytes"), "{name}");
            assert!(metric.help().ends_with('.') && metric.help().len() < 120, "{name}: {}", metric.help());
        }
    }

    #[test]
    fn buckets_rise() {
        for metric in Metric::ALL {
            if let Kind::Histogram(buckets) = metric.kind() {
                assert!(buckets.is_sorted_by(|a, b| a < b), "{}", metric.name());
            }
        }
    }

    #[test]
    fn recording_without_a_registry_is_a_no_op() {
        Metric::Fired.count(1, &["nobody", "index"]);
        Metric::Armed.set(1.0, &["nobody"]);
        Metric::SweepSeconds.observe(0.1, &["nobody"]);
    }
}
