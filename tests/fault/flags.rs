//! The notification flags of every node: added where they are missing, looked at again, and said where they may not be
//! changed.

use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Launch, Program, Redis, eventually};

use crate::stage::{stop, up};

const SETTING: &str = "notify-keyspace-events";

fn flags(redis: &Redis) -> String {
    redis.call(&["CONFIG", "GET", SETTING]).items()[1].text()
}

async fn has_flags(redis: &Redis) {
    eventually("the relay adds the flags", async || {
        let flags = redis.command(&["CONFIG", "GET", SETTING]).map_err(|error| error.to_string())?;
        let flags = flags.items()[1].text();
        if flags.contains('E') && flags.contains('x') { Ok(()) } else { Err(flags) }
    })
    .await;
}

fn gauge(relay: &Program) -> Option<f64> {
    relay.metrics().get("overdue_keyspace_events_flags_ok", &[])
}

fn lines_with(relay: &Program, part: &str) -> usize {
    relay.stderr().lines().filter(|line| line.contains(part)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_of_a_cluster_has_its_flags_and_gets_them_again_after_a_restart() {
    let options = Options::default().line("cluster-require-full-coverage no");
    let cluster = Cluster::with(&options);
    // What others have set stays, and `A` is enough for all but E and K.
    cluster.nodes()[1].call(&["CONFIG", "SET", SETTING, "K$"]);
    cluster.nodes()[2].call(&["CONFIG", "SET", SETTING, "KA"]);
    let relay = up(Launch::relay(&cluster.url()));
    assert_eq!(gauge(&relay), Some(1.0));
    for (node, kept) in cluster.nodes().iter().zip(["", "K$", "KA"]) {
        has_flags_now(node);
        assert!(kept.chars().all(|flag| flags(node).contains(flag)), "{}", flags(node));
    }
    assert_eq!(lines_with(&relay, "added the flags"), 3);
    let node = &cluster.nodes()[1];
    node.kill9();
    node.restart().unwrap();
    assert_eq!(flags(node), "");
    has_flags(node).await;
    // Taken away while the relay runs: seen within seconds.
    cluster.nodes()[0].call(&["CONFIG", "SET", SETTING, "E"]);
    has_flags(&cluster.nodes()[0]).await;
    stop(&relay);
}

fn has_flags_now(redis: &Redis) {
    let flags = flags(redis);
    assert!(flags.contains('E') && flags.contains(['x', 'A']), "{flags}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_flags_is_named_once_and_the_worst_is_shown() {
    let cluster = Cluster::start();
    for node in &cluster.nodes()[..2] {
        node.call(&["CONFIG", "SET", SETTING, "AE"]);
    }
    let relay = up(Launch::relay(&cluster.url()).args(["--keyspace-events", "check"]));
    assert_eq!(gauge(&relay), Some(0.0));
    let bad = &cluster.nodes()[2];
    let finding = format!("{SETTING} of redis://{}/ lacks Ex", bad.addr());
    assert!(relay.readyz().body.contains(&finding), "{}", relay.readyz().body);
    assert_eq!((lines_with(&relay, &finding), lines_with(&relay, "lacks")), (1, 1));
    cluster.nodes()[0].call(&["CONFIG", "SET", SETTING, ""]);
    eventually("the second one is counted", async || relay.readyz().body.contains("(and 1 nodes more)"))
        .await;
    for node in cluster.nodes() {
        node.call(&["CONFIG", "SET", SETTING, "Ex"]);
    }
    eventually("all is well", async || gauge(&relay) == Some(1.0)).await;
    assert!(!relay.readyz().body.contains(SETTING));
    assert_eq!(lines_with(&relay, &finding), 1);
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_tell_its_flags_is_said_once() {
    let users = vec!["relay on >secret ~overdue:* &* +@all -config".to_owned()];
    let redis = Redis::with(Options { users, ..Options::default() });
    let relay = up(Launch::relay(&redis.url().replace("//", "//relay:secret@")));
    assert_eq!(gauge(&relay), Some(-1.0));
    // It stays so over several looks.
    eventually("it was looked at again", async || {
        let log = redis.call(&["ACL", "LOG"]);
        log.items().iter().any(|entry| entry.items()[1].int() >= Some(3))
    })
    .await;
    assert_eq!(lines_with(&relay, "does not tell"), 1);
    assert!(relay.readyz().status == 200 && relay.readyz().body.contains("does not tell"));
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_new_primary_of_a_cluster_gets_its_flags_after_a_failover() {
    let cluster = Cluster::with_replica(&Options::default());
    let relay = up(Launch::relay(&cluster.url()));
    let replica = &cluster.nodes()[3];
    assert_eq!(flags(replica), "");
    replica.call(&["CLUSTER", "FAILOVER"]);
    has_flags(replica).await;
    stop(&relay);
}
