//! Everything at work, watched by a real Prometheus: one fault after the other, then every query of every dashboard.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use overdue::Raw;
use overdue_tests::{Launch, eventually};

use crate::board::Board;
use crate::expression::names;
use crate::prometheus::Prometheus;
use crate::rules;
use crate::scene::Scene;

/// The namespace of everything here.
const NAMESPACE: &str = "overdue";

/// Waits for an alert.
async fn fires(prometheus: &Prometheus, name: &str, labels: &[(&str, &str)]) {
    eventually(&format!("{name} fires for {labels:?}"), async || {
        let alerts = prometheus.alerts();
        if alerts.iter().any(|alert| alert.fires(name, labels)) { Ok(()) } else { Err(alerts) }
    })
    .await;
}

/// Waits until no alert fires, and none is about to.
async fn quiet(prometheus: &Prometheus) {
    eventually("no alert is left", async || {
        let alerts = prometheus.alerts();
        if alerts.is_empty() { Ok(()) } else { Err(alerts) }
    })
    .await;
}

/// Waits until an expression has a series.
async fn holds(prometheus: &Prometheus, expression: &str) {
    eventually(expression, async || prometheus.series(expression) > 0).await;
}

/// Without relays nothing fires; and a server without memory, on which they start all the same.
async fn relays_and_memory(scene: &mut Scene, prometheus: &Prometheus) {
    scene.relays.clear();
    fires(prometheus, "OverdueNoRelay", &[("namespace", NAMESPACE)]).await;
    scene.redis.call(&["CONFIG", "SET", "maxmemory", &scene.redis.info("memory")["used_memory"]]);
    scene.start_relays();
    fires(prometheus, "OverdueMemory", &[("namespace", NAMESPACE)]).await;
    scene.redis.call(&["CONFIG", "SET", "maxmemory", "200mb"]);
}

/// A handler that rejects, an endpoint that is away, a consumer that hangs, a queue that nobody reads, and no notifications;
/// at last no right to write into the stream.
async fn everything_else(scene: &mut Scene, prometheus: &Prometheus) {
    scene.blind();
    scene.redis.call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    scene.printer.sigstop();
    let lonely = scene.client.queue::<Raw>("lonely").await.unwrap();
    lonely.timer("one").at(Duration::from_millis(10)).payload(&Raw::new("")).schedule().await.unwrap();
    scene.rejecting.store(true, Ordering::SeqCst);
    fires(prometheus, "OverdueDeadLetters", &[("queue", "orders")]).await;
    scene.rejecting.store(false, Ordering::SeqCst);
    scene.receiver.close().await;
    fires(prometheus, "OverdueEndpointDown", &[("queue", "orders"), ("group", "billing")]).await;
    fires(prometheus, "OverdueGroupStuck", &[("queue", "orders"), ("group", "mail")]).await;
    fires(prometheus, "OverdueQueueWithoutGroup", &[("queue", "lonely")]).await;
    fires(prometheus, "OverdueBlind", &[("namespace", NAMESPACE)]).await;
    scene.redis.call(&["ACL", "SETUSER", "default", "-xadd"]);
    fires(prometheus, "OverdueLate", &[("queue", "orders")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_alert_fires_under_its_fault_and_clears_and_no_panel_is_empty() {
    let mut scene = Scene::start().await;
    let prometheus = Prometheus::start(&scene.listen[..5], &rules::quick());
    holds(&prometheus, "overdue_group_backlog").await;
    holds(&prometheus, "overdue_handled_total > 0").await;
    quiet(&prometheus).await;

    relays_and_memory(&mut scene, &prometheus).await;
    everything_else(&mut scene, &prometheus).await;

    scene.redis.call(&["ACL", "SETUSER", "default", "+@all"]);
    scene.see();
    scene.receiver.open().await;
    scene.printer.sigcont();
    let _reader = scene.consume("lonely");
    let purge = Launch::new(["dead", "purge", "orders", "--all", "--redis", &scene.redis.url()]).run();
    assert_eq!(purge.code, Some(0), "{purge:?}");
    quiet(&prometheus).await;

    let known: BTreeSet<_> = prometheus.names().into_iter().collect();
    let rules = prometheus.rules();
    let unknown: Vec<_> =
        rules.iter().flat_map(|rule| names(rule)).filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "rules: {unknown:?}");
    let queries: Vec<_> = Board::all().iter().flat_map(|board| board.sent(NAMESPACE)).collect();
    assert!(queries.len() > 50, "{queries:?}");
    // What stands for nothing at all must not hide that there is nothing.
    let empty =
        queries.iter().filter(|(_, query)| prometheus.series(query.trim_end_matches(" or vector(0)")) == 0);
    let empty: Vec<_> = empty.collect();
    assert!(empty.is_empty(), "{empty:#?}");
}
