//! A private Prometheus.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use overdue_sandbox::free_port;
use overdue_tests::{Launch, Program, eventually_blocking, http};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tempfile::TempDir;

/// How often its port may turn out to be taken.
const TRIES: usize = 5;

/// The server. Dropped, it is gone with its data.
pub(crate) struct Prometheus {
    program: Program,
    at: SocketAddr,
    _folder: TempDir,
}

/// An alert that is pending or firing.
#[derive(Debug)]
pub(crate) struct Alert {
    name: String,
    labels: Value,
    firing: bool,
}

impl Alert {
    /// Whether it fires, and with these labels.
    pub(crate) fn fires(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        let has = |(label, value): &(&str, &str)| self.labels[*label] == *value;
        self.firing && self.name == name && labels.iter().all(has)
    }
}

impl Prometheus {
    /// One that scrapes `targets` and evaluates `rules` twice a second.
    pub(crate) fn start(targets: &[SocketAddr], rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let targets: Vec<_> = targets.iter().map(|target| format!("'{target}'")).collect();
        let config = format!(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}\n\
             rule_files: [alerts.yml]\n\
             scrape_configs: [{{job_name: overdue, static_configs: [{{targets: [{}]}}]}}]\n",
            targets.join(", ")
        );
        fs::write(path("prometheus.yml"), config).unwrap();
        fs::write(path("alerts.yml"), rules).unwrap();
        let started = (0..TRIES).find_map(|_| Self::listen(folder.path()));
        let (program, at) = started.expect("a free port");
        Self { program, at, _folder: folder }
    }

    /// `None` when somebody else took the port.
    fn listen(folder: &Path) -> Option<(Program, SocketAddr)> {
        let at = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let option = |name: &str, file: &str| format!("--{name}={}", folder.join(file).display());
        let args = [
            option("config.file", "prometheus.yml"),
            option("storage.tsdb.path", "data"),
            format!("--web.listen-address={at}"),
        ];
        let program = std::panic::catch_unwind(|| Launch::new(args).start_as(Path::new("prometheus")));
        let program =
            program.unwrap_or_else(|_| panic!("prometheus is missing: run scripts/need-prometheus"));
        eventually_blocking("Prometheus is ready", || {
            if program.exited().is_some() {
                let log = program.stderr();
                assert!(log.contains("address already in use"), "{log}");
                return Ok(None);
            }
            match http::get(at, "/-/ready") {
                Ok(answer) if answer.status == 200 => Ok(Some(())),
                answer => Err(answer.map(|answer| answer.body).map_err(|error| error.to_string())),
            }
        })
        .map(|()| (program, at))
    }

    fn ask(&self, path: &str) -> Value {
        let answer = http::get(self.at, path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let json: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        assert_eq!(json["status"], "success", "{path}: {}; {}", answer.body, self.program.stderr());
        json["data"].clone()
    }

    /// How many series an expression has now.
    pub(crate) fn series(&self, expression: &str) -> usize {
        let encoded = utf8_percent_encode(expression, NON_ALPHANUMERIC);
        self.ask(&format!("/api/v1/query?query={encoded}"))["result"].as_array().unwrap().len()
    }

    /// Every series' name.
    pub(crate) fn names(&self) -> Vec<String> {
        serde_json::from_value(self.ask("/api/v1/label/__name__/values")).unwrap()
    }

    /// The expressions of its rules, as it has read them.
    pub(crate) fn rules(&self) -> Vec<String> {
        let groups = self.ask("/api/v1/rules");
        let groups = groups["groups"].as_array().unwrap().iter();
        let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
        rules
            .map(|rule| {
                assert_eq!(rule["health"], "ok", "{rule}");
                rule["query"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    /// What is pending or firing.
    pub(crate) fn alerts(&self) -> Vec<Alert> {
        let alerts = self.ask("/api/v1/alerts");
        let alert = |alert: &Value| Alert {
            name: alert["labels"]["alertname"].as_str().unwrap().to_owned(),
            labels: alert["labels"].clone(),
            firing: alert["state"] == "firing",
        };
        alerts["alerts"].as_array().unwrap().iter().map(alert).collect()
    }
}
