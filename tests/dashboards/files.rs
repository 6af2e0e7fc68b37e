//! What can be said of the files without running anything of ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::board::{Board, text};
use crate::expression::wrong;
use crate::rules;

/// Where they are.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards")
}

/// The data source that the reader chooses.
fn is_chosen(datasource: &Value) -> bool {
    text(&datasource["type"]) == "prometheus" && text(&datasource["uid"]) == "${datasource}"
}

#[test]
fn grafana_can_load_each_dashboard_without_a_question() {
    let mut uids = BTreeSet::new();
    for board in Board::all() {
        let Board { name, json } = &board;
        assert!(uids.insert(text(&json["uid"]).to_owned()), "{name}: its uid is another's");
        assert!(!text(&json["title"]).is_empty() && json["schemaVersion"].as_u64() >= Some(36), "{name}");
        // An id belongs to one Grafana; inputs are asked for at the import.
        assert!(json.get("id").is_none() && json.get("__inputs").is_none(), "{name}");
        let variables: Vec<_> = board.variables().iter().map(|variable| text(&variable["name"])).collect();
        assert!(variables.starts_with(&["datasource", "namespace", "queue"]), "{name}: {variables:?}");
        for variable in board.variables() {
            match text(&variable["type"]) {
                "datasource" => assert_eq!(text(&variable["query"]), "prometheus", "{name}"),
                _ => assert!(is_chosen(&variable["datasource"]), "{name}: {variable}"),
            }
        }
    }
}

#[test]
fn each_panel_says_what_it_shows_in_which_unit() {
    for board in Board::all() {
        let name = board.name;
        let mut ids = BTreeSet::new();
        for panel in board.panels() {
            let title = text(&panel["title"]);
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: {title}: its id is another's");
            if text(&panel["type"]) == "row" {
                continue;
            }
            assert!(["stat", "timeseries"].contains(&text(&panel["type"])), "{name}: {title}");
            assert!(is_chosen(&panel["datasource"]), "{name}: {title}");
            assert!(text(&panel["description"]).ends_with('.'), "{name}: {title}");
            let unit = text(&panel["fieldConfig"]["defaults"]["unit"]);
            assert!(["s", "short", "cps", "bytes", "percentunit"].contains(&unit), "{name}: {title}: {unit}");
            let targets = panel["targets"].as_array().unwrap();
            let letters: BTreeSet<_> = targets.iter().map(|target| text(&target["refId"])).collect();
            assert!(!targets.is_empty() && letters.len() == targets.len(), "{name}: {title}");
            for target in targets {
                assert!(is_chosen(&target["datasource"]), "{name}: {title}");
                assert!(!text(&target["legendFormat"]).is_empty(), "{name}: {title}");
                let counts = text(&target["expr"]).contains("_total{") && unit != "short";
                assert!(!counts || unit == "cps", "{name}: {title}: a rate in {unit}");
            }
        }
    }
}

#[test]
fn panels_lie_on_the_grid_beside_each_other() {
    for board in Board::all() {
        let mut taken = BTreeSet::new();
        for panel in board.panels() {
            let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
            let (x, y, w, h) = (at("x"), at("y"), at("w"), at("h"));
            assert!(w > 0 && h > 0 && x + w <= 24, "{}: {}", board.name, panel["title"]);
            let cells = (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y)));
            for cell in cells {
                assert!(taken.insert(cell), "{}: {} lies on another", board.name, panel["title"]);
            }
        }
    }
}

#[test]
fn queries_name_metrics_and_labels_of_ours_and_sum_nothing_twice() {
    for (title, query) in Board::all().iter().flat_map(Board::queries) {
        assert!(wrong(&query).is_empty(), "{title}: {query}: {:?}", wrong(&query));
        assert!(query.contains(r#"namespace="$namespace""#), "{title}: {query}");
    }
    for variable in Board::all().iter().flat_map(Board::variables) {
        let query = variable["query"]["query"].as_str().unwrap_or_default();
        assert!(wrong(query).is_empty(), "{query}: {:?}", wrong(query));
    }
    for rule in rules::text().split("- alert: ").skip(1) {
        let rule = rule.split("annotations:").next().unwrap();
        assert!(wrong(rule).is_empty(), "{rule}: {:?}", wrong(rule));
    }
}

#[test]
fn each_alert_has_its_heading_and_its_tests() {
    let operations = fs::read_to_string(folder().join("../docs/OPERATIONS.md")).unwrap();
    let tests = fs::read_to_string(folder().join("alerts_test.yml")).unwrap();
    let alerts = rules::values("alert");
    assert_eq!(alerts.len(), 8, "{alerts:?}");
    let links: Vec<_> =
        alerts.iter().map(|alert| format!("docs/OPERATIONS.md#{}", alert.to_lowercase())).collect();
    assert_eq!(rules::values("runbook_url"), links);
    for alert in &alerts {
        assert!(operations.contains(&format!("\n### {alert}\n")), "docs/OPERATIONS.md has no {alert}");
        let name = format!("- alertname: {alert}\n");
        let fires = tests.split(&name).skip(1);
        let (quiet, loud): (Vec<_>, Vec<_>) =
            fires.partition(|part| part.lines().nth(1).is_some_and(|line| line.trim() == "exp_alerts: []"));
        assert!(!quiet.is_empty() && !loud.is_empty(), "alerts_test.yml: {alert} must be tried both ways");
    }
}

#[test]
fn promtool_finds_the_rules_right() {
    for args in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let ran = Command::new("promtool").args(args).current_dir(folder()).output();
        let ran = ran.unwrap_or_else(|error| panic!("promtool: {error}: run scripts/need-prometheus"));
        assert!(ran.status.success(), "{args:?}: {ran:?}");
    }
}
