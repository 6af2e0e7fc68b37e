//! Listener and nudger together, as two relays have them.

use std::sync::Arc;

use overdue_protocol::watch::{Rule, Rules};
use overdue_reconciler::{Reconciler, Watching};
use overdue_relay::Watcher;
use overdue_store::{Feed, Nodes, Settings, Store};
use overdue_telemetry::Health;
use overdue_tests::{Redis, eventually};
use overdue_watch::Looker;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::stage::{assert_unique, count, entries, index, metrics, partition, redis, rule, settings};

/// Two relays of one process: what they share is Redis.
struct Relays {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

async fn relays(redis: &Redis, rules: Vec<Rule>) -> Relays {
    metrics(); // What is taken to count with before that counts nothing.
    let mut relays = Relays { stop: CancellationToken::new(), tasks: JoinSet::new() };
    for process in ["one", "two"] {
        let redis = Settings::new(redis.url());
        let rules = Rules::new(&redis.keyspace, rules.clone());
        let store = Store::connect(&redis, "test").await.unwrap();
        let nodes = Nodes::open(&redis, "keys", &rules.dbs()).await.unwrap();
        let looker = Looker::open(store.clone(), nodes, rules, 1024 * 1024).await.unwrap();
        let health = Health::default();
        let watcher = Watcher::start(looker.clone(), settings(process), health.clone(), || {}).await.unwrap();
        let scan = watcher.scan_now();
        let ask_scan =
            Arc::new(move |feed: &Feed| scan.scan_now(feed, overdue_telemetry::label::ScanReason::Flush));
        let watching = Watching { looker, mets: watcher.mets(), ask_scan };
        let sweeping = overdue_reconciler::Settings::new(process);
        let mut reconciler = Reconciler::start(store, sweeping, health).await.unwrap();
        reconciler.watch(watching);
        relays.tasks.spawn(watcher.run(relays.stop.clone()));
        relays.tasks.spawn(reconciler.run(relays.stop.clone()));
    }
    relays
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_of_keys_due_in_one_second_every_one_fires_once() {
    const KEYS: usize = 20_000;
    let redis = redis();
    let relays = relays(&redis, vec![rule("s:*", "q")]).await;
    let due = redis.now_ms() + 6_000;
    let write = "for i = ARGV[1], ARGV[1] + 499 do
        for _, name in ipairs({'s:', 'other:'}) do
            redis.call('SET', name .. i, 'v', 'PXAT', string.format('%.0f', ARGV[2] + i % 1000))
        end
    end";
    for from in (0..KEYS).step_by(500) {
        redis.call(&["EVAL", write, "0", &from.to_string(), &due.to_string()]);
    }
    eventually("all have fired", async || {
        let fired = redis.count(&[b"XLEN".as_slice(), &partition("q").stream()]) as usize;
        if fired >= KEYS { Ok(()) } else { Err(fired) }
    })
    .await;
    eventually("nothing waits", async || count("overdue_nudges_waiting", &[]) == 0.0).await;
    let entries = entries(&redis, "q");
    assert_eq!(entries.len(), KEYS);
    assert_unique(&entries);
    assert_eq!(count("overdue_flushes_total", &[]), 0.0, "a storm is no flush");
    assert_eq!(count("overdue_unproven_total", &[("result", "fired")]), 0.0, "all was heard or proven");
    assert!(index(&redis, "q").is_empty());
    relays.stop.cancel();
    relays.tasks.join_all().await;
}
