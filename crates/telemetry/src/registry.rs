//! The process's Prometheus registry.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{KeyName, SharedString, Unit, with_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

use crate::metric::{Kind, Metric};
use crate::process;

/// How often observations are folded into the buckets: without it each one is kept (16 MB a million).
const UPKEEP: Duration = Duration::from_secs(5);

static INSTALLED: OnceLock<Result<Registry, String>> = OnceLock::new();

/// All metrics of this process. Clone it freely: there is one.
#[derive(Clone, Debug)]
pub struct Registry {
    handle: PrometheusHandle,
    /// What stands in the braces of every series.
    labels: String,
}

/// The registry could not be installed.
#[derive(Clone, Debug)]
pub struct InstallError(String);

impl std::fmt::Display for InstallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot install the metrics registry: {}", self.0)
    }
}

impl std::error::Error for InstallError {}

impl Registry {
    /// Makes this process record its metrics, each with the label `namespace`, and sets [`Metric::BuildInfo`] to `version`
    /// and `role` (`relay`, `consumer`). A second call gives the registry of the first, with its namespace.
    ///
    /// # Errors
    /// Another recorder of the `metrics` crate is installed already.
    pub fn install(version: &str, role: &str, namespace: &str) -> Result<Self, InstallError> {
        process::begin();
        let install = || {
            let builder = builder()?.add_global_label("namespace", namespace);
            let handle = builder.install_recorder().map_err(|e| e.to_string())?;
            let escaped = namespace.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            Ok(Self { handle, labels: format!("namespace=\"{escaped}\"") })
        };
        let registry = INSTALLED.get_or_init(install).clone().map_err(InstallError)?;
        Metric::ALL.iter().copied().for_each(describe);
        Metric::BuildInfo.set(1.0, &[version, role]);
        Ok(registry)
    }

    /// Everything recorded so far, in Prometheus' text format, without the gauges that were cleared.
    #[must_use]
    pub fn render(&self) -> String {
        self.handle.run_upkeep();
        let all = self.handle.render();
        let mut text = String::with_capacity(all.len() + 2048);
        // What [`Metric::clear`] leaves.
        all.split_inclusive('\n').filter(|line| !line.ends_with(" NaN\n")).for_each(|line| text += line);
        process::write(&mut text, &self.labels);
        text
    }

    /// Folds observations into their buckets every 5 s until `shutdown`. Run it beside the loops.
    pub async fn upkeep(&self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(UPKEEP);
        while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
            self.handle.run_upkeep();
        }
    }
}

/// Histograms get buckets each: without any, the exporter makes summaries of them.
fn builder() -> Result<PrometheusBuilder, String> {
    let mut builder = PrometheusBuilder::new();
    for metric in Metric::ALL {
        if let Kind::Histogram(buckets) = metric.kind() {
            let name = Matcher::Full(metric.name().to_owned());
            builder = builder.set_buckets_for_metric(name, buckets).map_err(|e| e.to_string())?;
        }
    }
    Ok(builder)
}

fn describe(metric: Metric) {
    let name = KeyName::from_const_str(metric.name());
    let help = SharedString::const_str(metric.help());
    let unit = (metric.unit() == "s").then_some(Unit::Seconds);
    with_recorder(|recorder| match metric.kind() {
        Kind::Counter => recorder.describe_counter(name, unit, help),
        Kind::Gauge => recorder.describe_gauge(name, unit, help),
        Kind::Histogram(_) => recorder.describe_histogram(name, unit, help),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_help_type_and_buckets() {
        let registry = Registry::install("1.2.3", "relay", "shop").unwrap();
        Metric::Fired.count(3, &["orders", "index"]);
        Metric::Armed.set(7.0, &["orders"]);
        Metric::Lateness.observe(0.0015, &["orders", "index"]);
        let text = registry.render();
        for line in [
            "# HELP overdue_fired_total Timers fired by this process.",
            "# TYPE overdue_fired_total counter",
            r#"overdue_fired_total{namespace="shop",queue="orders",source="index"} 3"#,
            "# TYPE overdue_armed gauge",
            r#"overdue_armed{namespace="shop",queue="orders"} 7"#,
            "# TYPE overdue_lateness_seconds histogram",
            r#"overdue_lateness_seconds_bucket{namespace="shop",queue="orders",source="index",le="0.001"} 0"#,
            r#"overdue_lateness_seconds_bucket{namespace="shop",queue="orders",source="index",le="0.002"} 1"#,
            r#"overdue_lateness_seconds_bucket{namespace="shop",queue="orders",source="index",le="300"} 1"#,
            r#"overdue_lateness_seconds_bucket{namespace="shop",queue="orders",source="index",le="+Inf"} 1"#,
            r#"overdue_build_info{namespace="shop",version="1.2.3",role="relay"} 1"#,
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line:?} in\n{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_absent_until_it_is_known_again() {
        let registry = Registry::install("1.2.3", "relay", "shop").unwrap();
        let says = || registry.render().lines().filter(|line| line.starts_with("overdue_group_lag{")).count();
        let of = ["orders", "billing"];
        for (known, lines) in [(true, 1), (false, 0), (true, 1)] {
            if known {
                Metric::GroupLag.set(0.0, &of);
            } else {
                Metric::GroupLag.clear(&of);
            }
            assert_eq!(says(), lines);
        }
    }

    #[test]
    fn the_process_is_in_the_text() {
        let text = Registry::install("1.2.3", "relay", "shop").unwrap().render();
        let read = |name: &str| {
            let series = format!("{name}{{namespace=\"shop\"}} ");
            let value = text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok());
            value.unwrap_or_else(|| panic!("no {name} in\n{text}"))
        };
        for metric in Metric::ALL.iter().filter(|metric| metric.name().starts_with("process_")) {
            assert!(read(metric.name()) >= 0.0);
        }
        assert!(read("process_resident_memory_bytes") > 1e5);
        assert!(read("process_open_fds") >= 3.0 && read("process_open_fds") < read("process_max_fds"));
        assert!(read("process_threads") >= 1.0 && read("process_cpu_seconds_total") < 600.0);
    }

    #[test]
    fn a_second_install_gives_the_same_registry() {
        let first = Registry::install("1.2.3", "relay", "shop").unwrap();
        let second = Registry::install("1.2.3", "relay", "shop").unwrap();
        Metric::Trimmed.count(5, &["twice"]);
        assert!(first.render().contains(r#"overdue_trimmed_total{namespace="shop",queue="twice"} 5"#));
        assert!(second.render().contains(r#"overdue_trimmed_total{namespace="shop",queue="twice"} 5"#));
    }

    #[tokio::test]
    async fn upkeep_stops_when_told() {
        let registry = Registry::install("1.2.3", "relay", "shop").unwrap();
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        registry.upkeep(shutdown).await;
    }
}
