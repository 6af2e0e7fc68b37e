//! The whole tour of docker-compose.yml, as processes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use overdue_tests::terminal::Running;
use overdue_tests::{Redis, eventually_blocking, http, redis};
use serde_json::Value;

use crate::compose::{self, container, health, replicas, services};
use crate::container::Container;
use crate::monitoring;
use crate::place::Place;

/// The server, with the settings that its command line gives.
fn server(service: &Value) -> Redis {
    let command = container(service).command;
    assert_eq!(command[0], "redis-server");
    let pairs =
        command[1..].chunks(2).map(|pair| format!("{} {}", pair[0].trim_start_matches("--"), pair[1]));
    Redis::with(pairs.fold(redis::Options::default(), |options, line| options.line(line)))
}

/// One that was started, and what its health check needs.
struct Started {
    container: Container,
    health: Vec<String>,
    process: Running,
}

/// Where each service serves its metrics: `service:port`, and where each of its replicas does here.
type Addresses = BTreeMap<String, Vec<SocketAddr>>;

/// Everything of ours and the load, on `redis`; and where each service serves its metrics.
fn start(place: &mut Place) -> (Vec<(String, Started)>, Addresses) {
    let (mut started, mut addresses) = (vec![], Addresses::new());
    for (name, service) in
        services().into_iter().filter(|(name, _)| !["redis", "prometheus", "grafana"].contains(&&**name))
    {
        for n in 0..replicas(&service) {
            for (there, port) in [("0.0.0.0:9633", 9633), ("0.0.0.0:9634", 9634)] {
                if container(&service).env.values().any(|value| value == there) {
                    addresses.entry(format!("{name}:{port}")).or_default().push(place.listen(port));
                }
            }
            let life = place.folder().join(format!("life-{name}-{n}"));
            place.put("/tmp/life", life.display().to_string());
            // Taken as it is now: the next one listens elsewhere.
            let mut container = container(&service);
            container.env.values_mut().for_each(|value| *value = place.replace(value));
            let process = container.start(place);
            started.push((name.clone(), Started { health: health(&service), container, process }));
        }
    }
    (started, addresses)
}

fn becomes_healthy(name: &str, started: &mut Started, place: &Place) {
    eventually_blocking(&format!("{name} is healthy"), || {
        started.process.assert_runs();
        let mut check = started.container.exec(&started.health, place);
        if check.code() == 0 {
            Ok(())
        } else {
            Err(format!("{}\n{}", check.output(), started.process.output()))
        }
    });
}

fn says(started: &[(String, Started)], service: &str, what: &str) {
    eventually_blocking(what, || {
        let outputs = started.iter().filter(|(name, _)| name == service).map(|(_, one)| one.process.output());
        if outputs.into_iter().any(|output| output.contains(what)) {
            Ok(())
        } else {
            Err(format!("no {service} says it"))
        }
    });
}

#[test]
fn the_whole_tour_runs_is_healthy_and_handles_what_the_load_arms() {
    let redis = server(&services()["redis"]);
    let mut place = Place::at(&redis);
    let (mut started, addresses) = start(&mut place);
    assert_eq!(started.len(), 7);
    for (name, one) in &mut started {
        becomes_healthy(name, one, &place);
    }
    let mut ping = Container::default().exec(&health(&services()["redis"]), &place);
    assert_eq!(ping.code(), 0, "{}", ping.output());
    says(&started, "consumer", " is overdue: orders/order-");
    says(&started, "consumer", "session:");

    let (service, listen) = (services()["prometheus"].clone(), "127.0.0.1:9090");
    let addr = place.listen(9090);
    place.put(listen, addr.to_string());
    let mut prometheus = monitoring::prometheus(&container(&service), addr, &addresses, &place);
    let url = place.replace(health(&service).last().unwrap());
    let path = url.strip_prefix(&format!("http://{addr}")).unwrap().to_owned();
    eventually_blocking("Prometheus is healthy", || {
        prometheus.assert_runs();
        http::get(addr, &path).map(|response| response.status).is_ok_and(|status| status == 200)
    });
    eventually_blocking("Prometheus scrapes all five", || {
        let up = monitoring::query(addr, "count(up == 1)");
        let all = up.pointer("/data/result/0/value/1").and_then(Value::as_str) == Some("5");
        if all { Ok(()) } else { Err((up, prometheus.output())) }
    });
    let rules = http::get(addr, "/api/v1/rules").unwrap().body;
    assert!(rules.contains("OverdueNoRelay") && rules.contains("OverdueGroupStuck"), "{rules}");

    let told = compose::told();
    assert!(told.len() >= 2, "{told:?}");
    for (service, command) in told {
        let inside = started.iter().find(|(name, _)| *name == service).map(|(_, one)| one.container.clone());
        let mut told = inside.unwrap_or_default().exec(&command, &place);
        assert_eq!(told.code(), 0, "{service} {command:?}\n{}", told.output());
    }
    says(&started, "consumer", "session:42");

    for (name, one) in started.iter_mut().filter(|(name, _)| ["relay", "consumer"].contains(&name.as_str())) {
        let (began, grace) = (Instant::now(), compose::seconds(&services()[name]["stop_grace_period"]));
        one.process.sigterm();
        assert_eq!(one.process.code(), 0, "{}", one.process.output());
        assert!(began.elapsed().as_secs() < grace, "{name} took {:?}", began.elapsed());
    }
}
