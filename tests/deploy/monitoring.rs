//! Prometheus and Grafana: their files name what is there, and Prometheus takes its own.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;

use overdue_tests::blocks::{root, text};
use overdue_tests::http;
use overdue_tests::terminal::Running;
use serde_json::{Value, json};

use crate::compose::{container, services};
use crate::container::Container;
use crate::place::Place;
use crate::yaml::{parse, read, string, strings};

/// The container's path of a file: what is mounted there.
fn mounted(container: &Container, path: &str) -> String {
    let found = container.mounts.iter().find(|(inside, _)| inside == path);
    let (_, source) = found.unwrap_or_else(|| panic!("nothing is mounted at {path}"));
    source
        .canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", source.display()))
        .display()
        .to_string()
}

/// The value of an argument `--name=value`.
fn flag(container: &Container, name: &str) -> String {
    let prefix = format!("--{name}=");
    let found = container.command.iter().find_map(|word| word.strip_prefix(&prefix));
    found.unwrap_or_else(|| panic!("no --{name}")).to_owned()
}

/// Starts Prometheus as its container would be; names are asked of `addresses` in the place of a name server.
pub(super) fn prometheus(
    container: &Container,
    addr: SocketAddr,
    addresses: &BTreeMap<String, Vec<SocketAddr>>,
    place: &Place,
) -> Running {
    let inside = flag(container, "config.file");
    let mut settings = parse(&fs::read_to_string(mounted(container, &inside)).unwrap(), &inside);
    for rules in settings["rule_files"].as_array_mut().unwrap() {
        *rules = mounted(container, string(rules)).into();
    }
    for job in settings["scrape_configs"].as_array_mut().unwrap() {
        let mut targets = vec![];
        for asked in job["dns_sd_configs"].as_array().unwrap() {
            for name in strings(&asked["names"]) {
                let service = format!("{name}:{}", asked["port"]);
                let found = addresses.get(&service).unwrap_or_else(|| panic!("nothing listens at {service}"));
                targets.extend(found.iter().map(ToString::to_string));
            }
        }
        let job = job.as_object_mut().unwrap();
        job.remove("dns_sd_configs");
        job.insert("static_configs".into(), json!([{ "targets": targets }]));
    }
    let file = place.folder().join("prometheus.yml");
    fs::write(&file, settings.to_string()).unwrap();
    let data = flag(container, "storage.tsdb.path");
    let mut here = Container::default();
    for word in &container.command {
        let word = word.replace(&format!("={inside}"), &format!("={}", file.display()));
        here.command.push(word.replace(&format!("={data}"), &format!("={}/data", place.folder().display())));
    }
    here.command.push(format!("--web.listen-address={addr}"));
    here.start(place)
}

/// The answer to a query.
pub(super) fn query(addr: SocketAddr, query: &str) -> Value {
    let query = query.replace(' ', "%20").replace('=', "%3D");
    let response = http::get(addr, &format!("/api/v1/query?query={query}"));
    response.ok().and_then(|response| serde_json::from_str(&response.body).ok()).unwrap_or_default()
}

#[test]
fn grafana_finds_its_prometheus_and_the_dashboards() {
    let services = services();
    let grafana = container(&services["grafana"]);
    let provisioned = |kind: &str| {
        let inside = format!("/etc/grafana/provisioning/{kind}/overdue.yml");
        let file = mounted(&grafana, &inside);
        parse(&fs::read_to_string(&file).unwrap(), &file)
    };
    let source = &provisioned("datasources")["datasources"][0];
    let (host, port) = string(&source["url"]).trim_start_matches("http://").split_once(':').unwrap();
    let open = strings(&services[host]["ports"]);
    assert!(open.iter().any(|open| open.ends_with(&format!(":{port}"))), "{open:?}");
    assert_eq!((&source["type"], &source["isDefault"]), (&json!("prometheus"), &json!(true)));

    let path = provisioned("dashboards")["providers"][0]["options"]["path"].clone();
    let folder = mounted(&grafana, string(&path));
    let dashboards = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let dashboards: Vec<_> =
        dashboards.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    assert!(dashboards.len() >= 3, "{dashboards:?}");
    for dashboard in dashboards {
        let dashboard: Value = serde_json::from_str(&fs::read_to_string(dashboard).unwrap()).unwrap();
        assert!(dashboard["uid"].is_string() && dashboard["title"].is_string());
        // With an id it would be looked for in Grafana's own database.
        assert!(dashboard["id"].is_null());
    }
    let home = &grafana.env["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"];
    let home = home.strip_prefix(string(&path)).unwrap().trim_start_matches('/');
    assert!(root().join(&folder).join(home).is_file(), "{home}");
}

#[test]
fn what_the_autoscaler_reads_is_what_a_relay_exports() {
    let rule = read("deploy/kubernetes/prometheus-adapter.yml")["rules"]["external"][0].clone();
    let exported = overdue_telemetry::Metric::GroupBacklog.name();
    assert_eq!(rule["seriesQuery"], exported);
    assert!(string(&rule["metricsQuery"]).starts_with(&format!("max({exported}{{")));
    let scaler = crate::kubernetes::of_kind("HorizontalPodAutoscaler").remove(0);
    let metric = &scaler["spec"]["metrics"][0]["external"]["metric"];
    assert_eq!(metric["name"], rule["name"]["as"]);
    let labels: Vec<_> = metric["selector"]["matchLabels"].as_object().unwrap().keys().collect();
    assert_eq!(labels, ["group", "queue"]);
    // Its queue and group are those that the consumers handle.
    let settings = text("deploy/kubernetes/overdue.yml");
    for (label, value) in metric["selector"]["matchLabels"].as_object().unwrap() {
        assert!(settings.contains(&format!("    {label} = {value}\n")), "{label} = {value}");
    }
}
