//! Nudges without a listener: what it would say of its progress is made by hand, and notifications are off.

mod flushes;
mod strays;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::entry::{Proof, Source};
use overdue_protocol::watch::{OnUnproven, Rule, Rules};
use overdue_reconciler::{Reconciler, Watching};
use overdue_store::{Feed, Nodes, Settings, Store};
use overdue_telemetry::Health;
use overdue_tests::redis::Options;
use overdue_tests::{Redis, eventually};
use overdue_watch::{Ask, Looker};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::stage::{assert_unique, count, counted, entries, index, metrics, partition, rule, server_feed};

/// The largest value that is captured.
const VALUE_MAX: u32 = 1024 * 1024;

/// A server that expires keys only when somebody touches them.
fn lazy() -> Redis {
    let seven =
        Redis::start().info("server")["redis_version"].split('.').next().is_some_and(|major| major != "6");
    let options = Options::default();
    let redis = Redis::with(if seven { options.line("enable-debug-command yes") } else { options });
    redis.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
    redis
}

/// A reconciler that nudges.
struct Nudging {
    looker: Looker,
    mets: watch::Sender<BTreeMap<Feed, u64>>,
    scans: Arc<Mutex<Vec<Feed>>>,
    health: Health,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

async fn nudge(redis: &Redis, rules: Vec<Rule>) -> Nudging {
    metrics(); // What is taken to count with before that counts nothing.
    let settings = Settings::new(redis.url());
    let rules = Rules::new(&settings.keyspace, rules);
    let store = Store::connect(&settings, "test").await.unwrap();
    let nodes = Nodes::open(&settings, "keys", &rules.dbs()).await.unwrap();
    let looker = Looker::open(store.clone(), nodes, rules, VALUE_MAX).await.unwrap();
    let (mets, scans, health) =
        (watch::Sender::default(), Arc::<Mutex<Vec<Feed>>>::default(), Health::default());
    let asked = Arc::clone(&scans);
    let ask_scan = Arc::new(move |feed: &Feed| asked.lock().unwrap().push(feed.clone()));
    let watching = Watching { looker: looker.clone(), mets: mets.subscribe(), ask_scan };
    let settings = overdue_reconciler::Settings::new("test");
    let mut reconciler = Reconciler::start(store, settings, health.clone()).await.unwrap();
    reconciler.watch(watching);
    let stop = CancellationToken::new();
    let task = tokio::spawn(reconciler.run(stop.clone()));
    Nudging { looker, mets, scans, health, stop, task }
}

impl Nudging {
    /// The index learns of keys, as from a SCAN.
    async fn track<K: AsRef<[u8]>>(&self, db: u8, keys: impl IntoIterator<Item = K>) {
        let ask = |key: K| {
            let key = Bytes::copy_from_slice(key.as_ref());
            let rule = Arc::clone(self.looker.rules().rule_for(db, &key).unwrap());
            Ask { key, rule, removal: false }
        };
        let asks = keys.into_iter().map(ask).collect();
        self.looker.look(&server_feed(db), asks).await.unwrap();
    }

    /// Every notification up to `now_ms` is answered.
    fn met(&self, now_ms: u64) {
        let feeds = self.looker.nodes().feeds().borrow().clone();
        self.mets.send_replace(feeds.into_iter().map(|feed| (feed, now_ms * 1_000)).collect());
    }

    /// All of them, ever.
    fn met_all(&self) {
        self.met(9_000_000_000_000);
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn set(redis: &Redis, key: impl AsRef<[u8]>, ttl_ms: u64) {
    redis.call(&[b"SET", key.as_ref(), b"value", b"PX", ttl_ms.to_string().as_bytes()]);
}

/// Writes `s:0` and on; the first ends in a second, and then one every `apart_ms`. All in one call: on a busy machine
/// one call each takes until they are due.
fn set_one_after_the_other(redis: &Redis, keys: u64, apart_ms: u64) {
    let write =
        "for n = 0, ARGV[1] - 1 do redis.call('SET', 's:' .. n, 'value', 'PX', 1000 + n * ARGV[2]) end";
    redis.call(&["EVAL", write, "0", &keys.to_string(), &apart_ms.to_string()]);
}

/// `EXISTS` would make it expire.
async fn passes(redis: &Redis, ms: u64) {
    eventually("the server's clock passes", async || redis.now_ms() > ms).await;
}

async fn fired(redis: &Redis, queue: &str, wanted: usize) -> Vec<overdue_protocol::Entry> {
    eventually("all have fired", async || {
        let fired = redis.count(&[b"XLEN".as_slice(), &partition(queue).stream()]) as usize;
        if fired >= wanted { Ok(()) } else { Err(fired) }
    })
    .await;
    let entries = entries(redis, queue);
    assert_eq!(entries.len(), wanted, "in {queue}");
    entries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_fire_at_their_due_with_proof_though_nobody_notifies() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![rule("s:*", "q")]).await;
    set_one_after_the_other(&redis, 200, 3);
    nudging.track(0, (0..200).map(|n| format!("s:{n}"))).await;
    let entries = fired(&redis, "q", 200).await;
    assert_unique(&entries);
    assert!(entries.iter().all(|e| e.proof == Some(Proof::Nudge) && e.source == Source::Index));
    let mut late: Vec<_> = entries.iter().map(|entry| entry.fired_ms - entry.due_ms).collect();
    late.sort_unstable();
    assert!(late[100] < 100 && late[190] < 500, "{late:?}");
    assert_eq!(index(&redis, "q").len(), 0);
    counted("overdue_nudges_total", &[("queue", "q"), ("result", "fired")], 200.0).await;
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_due_at_one_instant_among_100_000_two_reconcilers_fire_each_once() {
    let redis = Redis::start();
    let (one, two) =
        (nudge(&redis, vec![rule("s:*", "q")]).await, nudge(&redis, vec![rule("s:*", "q")]).await);
    let fill = "for i = 1, 100000 do redis.call('SET', 's:other:' .. i, 'v', 'PX', 3600000 + i) end";
    redis.call(&["EVAL", fill, "0"]);
    one.track(0, (1..=100_000).map(|n| format!("s:other:{n}"))).await;
    let due = redis.now_ms() + 2_000;
    redis.call(&[
        "EVAL",
        "for i = 1, 1000 do redis.call('SET', 's:' .. i, 'v', 'PXAT', ARGV[1]) end",
        "0",
        &due.to_string(),
    ]);
    one.track(0, (1..=1_000).map(|n| format!("s:{n}"))).await;
    // A listener that is 20 ms behind.
    let listens = async || {
        for nudging in [&one, &two] {
            nudging.met(redis.now_ms() - 20);
        }
    };
    eventually("all have fired", async || {
        listens().await;
        let fired = redis.count(&[b"XLEN".as_slice(), &partition("q").stream()]);
        if fired >= 1_000 { Ok(()) } else { Err(fired) }
    })
    .await;
    eventually("nothing waits", async || {
        listens().await;
        count("overdue_nudges_waiting", &[]) == 0.0
    })
    .await;
    let entries = fired(&redis, "q", 1_000).await;
    assert_eq!(entries.iter().map(|entry| entry.id.clone()).collect::<BTreeSet<_>>().len(), 1_000);
    let mut late: Vec<_> = entries.iter().map(|entry| entry.fired_ms - entry.due_ms).collect();
    late.sort_unstable();
    assert!(late[989] < 1_000, "p50 {} p99 {} ms", late[499], late[989]);
    assert_eq!(index(&redis, "q").len(), 100_000);
    assert_eq!(count("overdue_flushes_total", &[]), 0.0);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_key_whose_notification_was_lost_fires_or_not_as_its_rule_says() {
    let redis = lazy();
    let careful = Rule { on_unproven: OnUnproven::Drop, ..rule("d:*", "q") };
    let nudging = nudge(&redis, vec![careful, rule("s:*", "q")]).await;
    nudging.met_all();
    for key in ["d:1", "d:2", "s:1", "s:2"] {
        set(&redis, key, 300);
    }
    nudging.track(0, ["d:1", "d:2", "s:1", "s:2"]).await;
    redis.call(&["DEL", "d:1", "s:1"]);
    eventually("all are settled", async || index(&redis, "q").is_empty()).await;
    let found = |(proof, id): (Proof, &str)| (proof, id.to_owned());
    let entries = fired(&redis, "q", 3).await;
    let entries =
        entries.iter().map(|e| (e.proof.unwrap(), String::from_utf8_lossy(e.id.as_bytes()).into_owned()));
    let expected = [(Proof::Nudge, "d:2"), (Proof::Nudge, "s:2"), (Proof::Unproven, "s:1")].map(found);
    let sorted = |mut all: Vec<(Proof, String)>| {
        all.sort_by(|a, b| a.1.cmp(&b.1));
        all
    };
    assert_eq!(sorted(entries.collect()), sorted(expected.to_vec()));
    let unproven = |result| count("overdue_unproven_total", &[("queue", "q"), ("result", result)]);
    assert_eq!((unproven("fired"), unproven("dropped")), (1.0, 1.0));
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gone_key_waits_for_what_was_said_before_and_no_longer_than_its_rule_allows() {
    let redis = lazy();
    let quick = Rule { proof_wait: Duration::from_millis(400), ..rule("q:*", "quick") };
    let nudging = nudge(&redis, vec![quick, rule("s:*", "q")]).await;
    let due = redis.now_ms() + 200;
    for key in ["s:1", "q:1"] {
        redis.call(&["SET", key, "v", "PXAT", &due.to_string()]);
    }
    nudging.track(0, ["s:1", "q:1"]).await;
    redis.call(&["DEL", "s:1", "q:1"]);
    // What was said by the moment of the due is answered; what was said since is not.
    nudging.met(due);
    let waited = fired(&redis, "quick", 1).await[0].fired_ms - due;
    assert!((400..900).contains(&waited), "{waited}");
    assert_eq!(entries(&redis, "q").len(), 0, "it may wait for a second");
    nudging.met(redis.now_ms() + 1);
    let waited = fired(&redis, "q", 1).await[0].fired_ms - due;
    assert!((400..1_000).contains(&waited), "{waited}");
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_written_again_while_it_waited_is_no_false_timeout() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![rule("s:*", "q")]).await;
    let due = redis.now_ms() + 200;
    redis.call(&["SET", "s:1", "v", "PXAT", &due.to_string()]);
    nudging.track(0, ["s:1"]).await;
    redis.call(&["DEL", "s:1"]);
    eventually("it waits", async || count("overdue_nudges_waiting", &[("queue", "q")]) == 1.0).await;
    set(&redis, "s:1", 400);
    nudging.track(0, ["s:1"]).await;
    nudging.met_all();
    let entries = fired(&redis, "q", 1).await;
    assert!(entries[0].proof == Some(Proof::Nudge) && entries[0].due_ms > due, "{entries:?}");
    counted("overdue_unproven_total", &[("result", "known")], 1.0).await;
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_proves_nothing() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![rule("s:*", "q")]).await;
    nudging.met_all();
    let due = redis.now_ms() + 400;
    redis.call(&["SET", "s:1", "v", "PXAT", &due.to_string()]);
    nudging.track(0, ["s:1"]).await;
    redis.call(&["REPLICAOF", "127.0.0.1", "1"]);
    passes(&redis, due + 1_500).await;
    assert_eq!((entries(&redis, "q").len(), index(&redis, "q").len()), (0, 1));
    redis.call(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(fired(&redis, "q", 1).await[0].proof, Some(Proof::Nudge));
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_name_fires_in_any_database() {
    let redis = lazy();
    let in_three = Rule { db: 3, ..rule("*", "three") };
    let nudging = nudge(&redis, vec![in_three, rule("*", "q")]).await;
    let long = vec![b'x'; 65_536];
    let names: [&[u8]; 8] =
        [b"plain", b"\xff\x00\xfe", b"a\r\nb", b"{}:{x}", b"*?[a-z]\\", b"0:3:1", b" ", &long];
    for db in ["0", "3"] {
        let mut connection = redis.connection().unwrap();
        connection.call(&["SELECT", db]).unwrap();
        for name in names {
            connection.call(&[b"SET", name, db.as_bytes(), b"PX", b"300"]).unwrap();
        }
        nudging.track(db.parse().unwrap(), names).await;
    }
    for (queue, db) in [("q", 0), ("three", 3)] {
        let entries = fired(&redis, queue, names.len()).await;
        let ids: BTreeSet<_> = entries.iter().map(|entry| entry.id.as_bytes().to_vec()).collect();
        assert_eq!(ids, names.iter().map(|name| name.to_vec()).collect());
        assert!(entries.iter().all(|entry| entry.db == Some(db) && entry.proof == Some(Proof::Nudge)));
    }
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_looks_are_forgotten_when_nothing_under_way_needs_them() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![rule("s:*", "q")]).await;
    let keys: Vec<_> = (0..3_000).map(|n| format!("s:{n}")).collect();
    for key in &keys {
        set(&redis, key, 100);
    }
    nudging.track(0, &keys).await;
    fired(&redis, "q", 3_000).await;
    let sizes = || {
        let size = |key: Bytes| redis.count(&[b"ZCARD".as_slice(), &key]);
        (size(partition("q").looked()), size(partition("q").fired()))
    };
    assert!(sizes().0 >= 3_000 && sizes().1 >= 3_000, "{:?}", sizes());
    nudging.met(redis.now_ms());
    passes(&redis, redis.now_ms() + 1_500).await;
    assert!(sizes().0 >= 3_000, "ten seconds are kept");
    nudging.met(redis.now_ms() + 20_000);
    eventually("all is forgotten", async || if sizes() == (0, 0) { Ok(()) } else { Err(sizes()) }).await;
    nudging.stop().await;
}
