//! A server with notifications, and watchers without a program around them: nothing nudges.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use overdue_protocol::watch::{Glob, Rule, Rules, WatchedKey};
use overdue_protocol::{Entry, Keyspace, Partition, QueueName};
use overdue_relay::{Notifications, ScanNow, WatchSettings, Watcher};
use overdue_store::{Feed, Node, Nodes, Settings, Store};
use overdue_telemetry::{Health, Registry};
use overdue_tests::metrics::Metrics;
use overdue_tests::redis::Options;
use overdue_tests::{Redis, Wire, eventually};
use overdue_watch::{Looker, Mets};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The largest value that is captured.
const VALUE_MAX: u32 = 1024 * 1024;

/// A server that says all that is needed, in both ways.
pub(crate) fn redis() -> Redis {
    Redis::with(Options { notify: "KEgxe".into(), ..Options::default() })
}

pub(crate) fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// `pattern` of db 0 into `queue`; the rule has its name.
pub(crate) fn rule(pattern: impl Into<Bytes>, queue: &str) -> Rule {
    Rule::new(name(queue), Glob::new(pattern), name(queue))
}

pub(crate) fn server_feed(db: u8) -> Feed {
    Feed { node: Node::server(), db }
}

pub(crate) fn partition(queue: &str) -> Partition {
    Keyspace::default().partition(&name(queue), 0)
}

/// The timeouts in a queue.
pub(crate) fn entries(redis: &Redis, queue: &str) -> Vec<Entry> {
    let raw = Wire::connect(redis).xrange(partition(queue).stream()).unwrap();
    raw.iter().map(|raw| Entry::decode(raw).unwrap()).collect()
}

/// The index of a queue: keys and deadlines.
pub(crate) fn index(redis: &Redis, queue: &str) -> BTreeMap<WatchedKey, u64> {
    let watched = Wire::connect(redis).zrange(partition(queue).watched()).unwrap();
    watched.into_iter().map(|(member, due)| (WatchedKey::parse(&member).unwrap(), due)).collect()
}

pub(crate) fn set(redis: &Redis, key: impl AsRef<[u8]>, ttl_ms: u64) {
    let ttl = ttl_ms.to_string();
    redis.call(&[b"SET", key.as_ref(), b"value", b"PX", ttl.as_bytes()]);
}

/// Waits until a key has ended. That it is asked for ends it: nobody nudges here, and by itself a server finds few that
/// are due among many that are not.
pub(crate) async fn gone(redis: &Redis, key: &str) {
    eventually("the key is gone", async || redis.count(&["EXISTS", key]) == 0).await;
}

/// Writes a key and waits until it has ended.
pub(crate) async fn end(redis: &Redis, key: &str) {
    set(redis, key, 20);
    gone(redis, key).await;
}

/// A running watcher.
pub(crate) struct Running {
    pub(crate) mets: Mets,
    pub(crate) scan: ScanNow,
    pub(crate) health: Health,
    looker: Looker,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

pub(crate) fn settings(process: &str) -> WatchSettings {
    WatchSettings::new(process)
}

pub(crate) fn keyevent(process: &str) -> WatchSettings {
    WatchSettings { mode: Notifications::Keyevent, ..settings(process) }
}

/// Starts a watcher and waits until it has met a marker of every feed.
pub(crate) async fn watch(url: &str, rules: Vec<Rule>, settings: WatchSettings) -> Running {
    let running = start(url, rules, settings).await;
    running.has_met(|_, _| true).await;
    running
}

/// Starts a watcher.
pub(crate) async fn start(url: &str, rules: Vec<Rule>, settings: WatchSettings) -> Running {
    // Before the first series is taken: later ones would count nothing.
    Registry::install("test", "relay", "overdue").unwrap();
    let redis = Settings::new(url);
    let rules = Rules::new(&redis.keyspace, rules);
    let store = Store::connect(&redis, "test").await.unwrap();
    let nodes = Nodes::open(&redis, "keys", &rules.dbs()).await.unwrap();
    let looker = Looker::open(store, nodes, rules, VALUE_MAX).await.unwrap();
    let health = Health::default();
    let watcher = Watcher::start(looker.clone(), settings, health.clone(), || {}).await.unwrap();
    let (mets, scan, stop) = (watcher.mets(), watcher.scan_now(), CancellationToken::new());
    let task = tokio::spawn(watcher.run(stop.clone()));
    Running { mets, scan, health, looker, stop, task }
}

impl Running {
    /// Waits until each feed's last met marker is so.
    pub(crate) async fn has_met(&self, so: impl Fn(&Feed, u64) -> bool) {
        let feeds: BTreeSet<Feed> = self.looker.nodes().feeds().borrow().clone();
        eventually("every feed has met its marker", async || {
            let mets = self.mets.borrow().clone();
            if feeds.iter().all(|feed| mets.get(feed).is_some_and(|&met| so(feed, met))) {
                Ok(())
            } else {
                Err(mets)
            }
        })
        .await;
    }

    /// Waits until all that the server has said by now is settled.
    pub(crate) async fn settle(&self, redis: &Redis) {
        let now_us = redis.now_ms() * 1_000 + 999;
        self.has_met(|_, met| met > now_us).await;
    }

    /// Ends it in good order.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Waits until a queue holds so many timeouts, and until nothing more can come of what was heard.
pub(crate) async fn fired(redis: &Redis, queue: &str, count: usize, watchers: &[&Running]) -> Vec<Entry> {
    eventually("all have fired", async || {
        let fired = redis.count(&[b"XLEN".as_slice(), &partition(queue).stream()]) as usize;
        if fired >= count { Ok(()) } else { Err(fired) }
    })
    .await;
    for watcher in watchers {
        watcher.settle(redis).await;
    }
    let entries = entries(redis, queue);
    assert_eq!(entries.len(), count, "in {queue}");
    entries
}

/// What this process has counted.
pub(crate) fn metrics() -> Metrics {
    Metrics::parse(&Registry::install("test", "relay", "overdue").unwrap().render())
}

pub(crate) fn count(metric: &str, labels: &[(&str, &str)]) -> f64 {
    metrics().get(metric, labels).unwrap_or(0.0)
}

/// Waits until it counts so many: what a script has done is there a moment before it is counted.
pub(crate) async fn counted(metric: &str, labels: &[(&str, &str)], wanted: f64) {
    eventually(metric, async || {
        let counts = count(metric, labels);
        if counts == wanted { Ok(()) } else { Err(counts) }
    })
    .await;
}

/// Waits until so many scans for that reason are done.
pub(crate) async fn scanned(reason: &str, times: f64) {
    eventually("the scan is done", async || {
        let done = count("overdue_scans_total", &[("reason", reason), ("result", "done")]);
        if done >= times { Ok(()) } else { Err(done) }
    })
    .await;
}

/// Fails unless no two timeouts share a generation of the same key.
pub(crate) fn assert_unique(entries: &[Entry]) {
    let mut known = BTreeSet::new();
    for entry in entries {
        let name = (entry.db, entry.id.as_bytes().clone(), entry.generation);
        assert!(known.insert(name.clone()), "twice: {name:?}");
    }
}
