//! Every command that looks, on a Redis Cluster: the partitions of a queue live on several nodes.

use overdue_protocol::call::{From, Join, Sweep};
use overdue_protocol::{GroupName, Keyspace, QueueName};
use overdue_tests::program::Finished;
use overdue_tests::{Cluster, Launch, eventually_blocking, patience};
use serde_json::Value;

use super::stage::objects;

const PARTITIONS: u32 = 4;

fn run(cluster: &Cluster, line: &str) -> Finished {
    let finished = Launch::new(["--redis", &cluster.url()]).args(line.split(' ')).run();
    assert_eq!(finished.code, Some(0), "{line}: {finished:?}");
    finished
}

fn json(cluster: &Cluster, line: &str) -> Vec<Value> {
    objects(&run(cluster, &format!("{line} --json")))
}

#[test]
fn commands_reach_every_partition_of_a_cluster() {
    let cluster = Cluster::start();
    assert!(run(&cluster, "schedule orders t0 --in 1h").stdout.starts_with("created queue orders\n"));
    for n in 1..20 {
        run(&cluster, &format!("schedule orders t{n} --in {}m", 60 + n));
    }
    let listed = json(&cluster, "list orders");
    let ids: Vec<_> = listed.iter().map(|timer| timer["id"].as_str().unwrap()).collect();
    assert_eq!(ids, (0..20).map(|n| format!("t{n}")).collect::<Vec<_>>());
    assert_eq!(json(&cluster, "show orders t7")[0]["id"], "t7");
    assert_eq!(json(&cluster, "cancel orders t0 t1 t2").len(), 3);
    run(&cluster, "pause orders");
    let queue = &json(&cluster, "queues list")[0];
    assert_eq!((&queue["partitions"], &queue["armed"]), (&PARTITIONS.into(), &17.into()));

    let tail =
        Launch::new(["--redis", &cluster.url(), "tail", "orders", "--json", "--from", "oldest"]).start();
    for n in 0..8 {
        run(&cluster, &format!("schedule orders due{n} --at 100000000000"));
    }
    for number in 0..PARTITIONS {
        let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), number);
        let mut wire = overdue_tests::Wire::connect(cluster.node_of(&partition.tally()));
        let group = GroupName::new("billing").unwrap();
        wire.run(&Join { partition: partition.clone(), group, from: From::Oldest }).unwrap();
        wire.run(&Sweep { partition, limit: 256, grace_ms: 0, sweeper: "by hand".into() }).unwrap();
    }
    eventually_blocking("tail shows all partitions", || tail.stdout().lines().count() == 8);
    tail.sigterm();
    assert_eq!(tail.wait_exit(patience()).code(), Some(130));

    assert_eq!(json(&cluster, "groups list orders")[0]["undelivered"], 8);
    let account = &json(&cluster, "audit orders")[0];
    assert_eq!((&account["state"], &account["groups"][0]["live"]), (&"balanced".into(), &8.into()));
    assert!(run(&cluster, "dead list orders").stdout.starts_with("no dead letters"));
    assert_eq!(json(&cluster, "groups drop orders billing")[0]["dropped"], true);
    let doctor = Launch::new(["--redis", &cluster.url(), "doctor", "--json"]).run();
    assert_eq!(doctor.code, Some(4), "{doctor:?}");
    let version = objects(&doctor).into_iter().find(|finding| finding["check"] == "version").unwrap();
    assert!(version["finding"].as_str().unwrap().ends_with(", cluster"), "{version}");
}

#[test]
fn doctor_looks_at_the_flags_of_every_node() {
    let cluster = Cluster::start();
    let notifications = || {
        let doctor = Launch::new(["--redis", &cluster.url(), "doctor", "--json"]).run();
        let findings = objects(&doctor).into_iter().filter(|finding| finding["check"] == "notifications");
        findings.map(|finding| finding["finding"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for node in &cluster.nodes()[1..] {
        node.call(&["CONFIG", "SET", "notify-keyspace-events", "Ex"]);
    }
    let found = notifications();
    assert_eq!(found.len(), 3, "{found:#?}");
    let bad = format!("redis://{}/: notify-keyspace-events \"\" lacks", cluster.nodes()[0].addr());
    assert_eq!(found.iter().filter(|finding| finding.starts_with(&bad)).count(), 1, "{found:#?}");
    cluster.nodes()[0].call(&["CONFIG", "SET", "notify-keyspace-events", "Ex"]);
    let found = notifications();
    assert!(found.len() == 1 && found[0].contains("has all that is needed: Ex"), "{found:#?}");
}
