//! What `/metrics` says.

use std::collections::BTreeMap;

/// All series of one scrape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    series: BTreeMap<String, f64>,
}

impl Metrics {
    /// Reads the text format. Comments and lines that are no series are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.rsplit_once(' '));
        let series =
            pairs.filter_map(|(series, value)| Some((series.to_owned(), value.parse().ok()?))).collect();
        Self { series }
    }

    /// The series as written, `name{label="value"}`, with their values.
    #[must_use]
    pub fn series(&self) -> &BTreeMap<String, f64> {
        &self.series
    }

    /// The sum over all series of `name` that carry all of `labels`; `None` when there is none.
    ///
    /// ```ignore
    /// metrics.get("overdue_fired_total", &[("queue", "orders")])
    /// ```
    #[must_use]
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let carries = |series: &str| {
            let (its_name, its_labels) = series.split_once('{').unwrap_or((series, ""));
            let its_labels: Vec<_> = its_labels.trim_end_matches('}').split(',').collect();
            its_name == name && wanted.iter().all(|label| its_labels.contains(&label.as_str()))
        };
        self.series.iter().filter(|(series, _)| carries(series)).map(|(_, value)| *value).reduce(|a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_summed_over_the_labels_not_asked_for() {
        let text =
            "# HELP a b\na_total{queue=\"q\",source=\"x\"} 2\na_total{queue=\"q\",source=\"y\"} 3\nup 1\n";
        let metrics = Metrics::parse(text);
        assert_eq!(metrics.get("a_total", &[("queue", "q")]), Some(5.0));
        assert_eq!(metrics.get("a_total", &[("source", "y"), ("queue", "q")]), Some(3.0));
        assert_eq!(metrics.get("a_total", &[("queue", "r")]), None);
        assert_eq!(metrics.get("up", &[]), Some(1.0));
    }
}
