//! Grafana's JSON.

use std::fs;

use serde_json::Value;

use crate::files::folder;

/// One dashboard.
pub(crate) struct Board {
    pub(crate) name: &'static str,
    pub(crate) json: Value,
}

impl Board {
    pub(crate) const ALL: [&str; 3] = ["overview", "relay", "consumer"];

    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        Self::ALL.into_iter().map(Self::read).collect()
    }

    fn read(name: &'static str) -> Self {
        let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        Self { name, json: serde_json::from_str(&text).unwrap() }
    }

    /// Its variables.
    pub(crate) fn variables(&self) -> &[Value] {
        self.json["templating"]["list"].as_array().unwrap()
    }

    /// Its panels, rows too.
    pub(crate) fn panels(&self) -> &[Value] {
        self.json["panels"].as_array().unwrap()
    }

    /// The title of the panel and the text of each of its queries, as they stand there.
    pub(crate) fn queries(&self) -> Vec<(String, String)> {
        let targets = |panel: &Value| {
            let title = format!("{}: {}", self.name, text(&panel["title"]));
            let targets = panel["targets"].as_array().cloned().unwrap_or_default();
            targets.iter().map(|target| (title.clone(), text(&target["expr"]).to_owned())).collect::<Vec<_>>()
        };
        self.panels().iter().flat_map(targets).collect()
    }

    /// What its variables choose from: the series.
    fn choices(&self) -> Vec<(String, String)> {
        let choices = self.variables().iter().filter_map(|variable| {
            let query = variable["query"]["query"].as_str()?;
            let (series, _) = query.strip_prefix("label_values(").unwrap().rsplit_once(", ").unwrap();
            Some((format!("{}: {}", self.name, text(&variable["name"])), series.to_owned()))
        });
        choices.collect()
    }

    /// Its queries as Grafana sends them, with every variable at `All`; and the series that its variables choose from.
    pub(crate) fn sent(&self, namespace: &str) -> Vec<(String, String)> {
        let mut queries = self.queries();
        queries.extend(self.choices());
        for (title, query) in &mut queries {
            *query = query.replace("$__rate_interval", "1m").replace("$namespace", namespace);
            for variable in self.variables() {
                if let Some(all) = variable["allValue"].as_str() {
                    *query = query.replace(&format!("${}", text(&variable["name"])), all);
                }
            }
            assert!(!query.contains('$'), "{title}: an unknown variable in {query}");
        }
        queries
    }
}

/// A text that must be there.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
