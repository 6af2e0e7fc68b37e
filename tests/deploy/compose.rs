//! docker-compose.yml: what can be seen without running it, and its services as [`Container`]s.

use std::collections::BTreeMap;

use overdue_tests::blocks::{root, text};
use serde_json::Value;

use crate::container::Container;
use crate::image::Image;
use crate::yaml::{read, string, strings};

/// Its name.
pub(super) const FILE: &str = "docker-compose.yml";

/// All services by their names.
pub(super) fn services() -> BTreeMap<String, Value> {
    let services = read(FILE)["services"].as_object().unwrap().clone();
    services.into_iter().collect()
}

/// Whether it runs our image.
pub(super) fn is_ours(service: &Value) -> bool {
    service["image"] == "overdue"
}

/// How many of it run.
pub(super) fn replicas(service: &Value) -> u64 {
    service["deploy"]["replicas"].as_u64().unwrap_or(1)
}

/// What compose makes of a text: `$$` is a dollar, one alone would be a variable of the machine.
fn plain(text: &str) -> String {
    let plain = text.replace("$$", "\0");
    assert!(!plain.contains('$'), "a variable of the machine: {text}");
    plain.replace('\0', "$")
}

/// The service as a container. An image that is not ours gives its entry point by its name.
pub(super) fn container(service: &Value) -> Container {
    let entrypoint = match (&service["entrypoint"], is_ours(service)) {
        (Value::Null, true) => Image::read().entrypoint,
        (Value::Null, false) if string(&service["image"]).starts_with("prom/") => {
            vec!["prometheus".to_owned()]
        }
        (entrypoint, _) => strings(entrypoint),
    };
    let command =
        entrypoint.into_iter().chain(strings(&service["command"])).map(|word| plain(&word)).collect();
    let env = service["environment"].as_object().cloned().unwrap_or_default();
    let env = env.into_iter().map(|(name, value)| (name, plain(string(&value)))).collect();
    let binds = strings(&service["volumes"]).into_iter().filter_map(|volume| {
        let (ours, inside) = volume.strip_prefix("./")?.split_once(':')?;
        Some((inside.trim_end_matches(":ro").to_owned(), root().join(ours)))
    });
    Container { command, env, mounts: binds.collect() }
}

/// The command of its health check.
pub(super) fn health(service: &Value) -> Vec<String> {
    let test: Vec<_> = strings(&service["healthcheck"]["test"]).iter().map(|word| plain(word)).collect();
    match test.first().map(String::as_str) {
        Some("CMD") => test[1..].to_vec(),
        Some("CMD-SHELL") => ["sh", "-c", &test[1]].map(str::to_owned).to_vec(),
        _ => panic!("no health check: {service}"),
    }
}

/// A duration such as `40s`.
pub(super) fn seconds(value: &Value) -> u64 {
    string(value).trim_end_matches('s').parse().unwrap_or_else(|error| panic!("{value}: {error}"))
}

#[test]
fn two_relays_and_three_consumers() {
    let services = services();
    assert_eq!((replicas(&services["relay"]), replicas(&services["consumer"])), (2, 3));
}

#[test]
fn every_service_has_a_health_check_and_waits_for_services_that_have_one() {
    let services = services();
    for (name, service) in &services {
        assert!(!health(service).is_empty(), "{name}");
        assert!(seconds(&service["healthcheck"]["interval"]) <= 10, "{name}");
        assert_eq!(service["restart"], "unless-stopped", "{name}");
        let waits = service["depends_on"].as_object().cloned().unwrap_or_default();
        for (other, how) in waits {
            assert!(services.contains_key(&other), "{name} waits for {other}");
            assert_eq!(how["condition"], "service_healthy", "{name}");
        }
    }
}

#[test]
fn every_mounted_file_and_volume_is_there() {
    let volumes = read(FILE)["volumes"].as_object().unwrap().clone();
    for (name, service) in services() {
        for volume in strings(&service["volumes"]) {
            let (source, inside) = volume.split_once(':').unwrap();
            assert!(inside.starts_with('/'), "{name}: {volume}");
            match source.strip_prefix("./") {
                Some(ours) => assert!(root().join(ours).exists(), "{name}: {source} is not there"),
                None => assert!(volumes.contains_key(source), "{name}: {source} is not declared"),
            }
        }
    }
}

#[test]
fn images_are_pinned_or_ours_and_ports_are_open_on_this_machine_only() {
    for (name, service) in services() {
        let image = string(&service["image"]);
        if is_ours(&service) {
            assert_eq!(service["build"], ".", "{name}");
            let grace = seconds(&service["stop_grace_period"]);
            assert!(grace >= 40, "{name} is killed after {grace} s: the grace of its handlers would not end");
        } else {
            let tag = image.split_once(':').unwrap_or_else(|| panic!("{name}: {image} has no version")).1;
            assert!(tag.contains('.'), "{name}: {image}");
        }
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port} is open to everybody");
        }
    }
}

/// The commands that its head tells people to type: service, and what runs in it.
pub(super) fn told() -> Vec<(String, Vec<String>)> {
    let file = text(FILE);
    let lines = file.lines().map_while(|line| line.strip_prefix('#'));
    let execs = lines.filter_map(|line| line.trim().strip_prefix("docker compose exec "));
    let execs =
        execs.map(|line| line.split("   ").next().unwrap_or(line).split_whitespace().map(str::to_owned));
    execs.map(|mut words| (words.next().unwrap(), words.collect())).collect()
}
