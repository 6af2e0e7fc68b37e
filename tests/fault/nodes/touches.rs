//! What a touch sees, and what it proves.

use std::collections::BTreeMap;

use bytes::Bytes;
use overdue_protocol::watch::{Found, Seen};
use overdue_store::{Capture, ErrorKind, Feed, Node, Nodes};
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Proxy, Redis, eventually};

use super::{feeds, keys, look, open};

fn by_feed(nodes: &Nodes, keys: &[Bytes]) -> BTreeMap<Feed, Vec<Bytes>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for key in keys {
        all.entry(nodes.feed_of(0, key).expect("it is served")).or_default().push(key.clone());
    }
    all
}

/// A server that expires nothing by itself: keys end only when they are touched.
fn calm(options: Options) -> Options {
    let seven = !Redis::start().info("server")["redis_version"].starts_with('6');
    if seven { options.line("enable-debug-command yes") } else { options }
}

fn hold_still(redis: &Redis) {
    redis.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
}

fn set(redis: &Redis, key: &[u8], value: &[u8], px: &str) {
    redis.call(&[b"SET".as_slice(), key, value, b"PX", px.as_bytes()]);
}

async fn end_of(redis: &Redis) {
    let now = redis.now_ms();
    eventually("the keys are due", async || redis.now_ms() > now + 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_expiry_in_every_slot_of_a_cluster_is_proven() {
    let cluster = Cluster::with(&calm(Options::default()));
    cluster.nodes().iter().for_each(hold_still);
    let (nodes, keys) = (open(&cluster.url(), &[0]).await, keys(100));
    for key in &keys {
        set(cluster.node_of(key), key, b"v", "1");
    }
    end_of(&cluster.nodes()[0]).await;
    let groups = by_feed(&nodes, &keys);
    assert_eq!(groups.keys().cloned().collect::<Vec<_>>(), feeds(&nodes));
    assert_eq!(groups.len(), 3);
    let mut proven = 0;
    for (feed, own) in &groups {
        let mark = look(&nodes, feed, &[]).await.unwrap();
        assert_eq!((mark.dbsize, mark.seen.len()), (own.len() as u64, 0));
        let touched = look(&nodes, feed, own).await.unwrap();
        assert!(touched.position > mark.position && touched.dbsize == 0, "{touched:?}");
        proven += touched.seen.iter().filter(|seen| **seen == Seen::Proven).count();
        let again = look(&nodes, feed, own).await.unwrap();
        assert!(again.seen.iter().all(|seen| *seen == Seen::Gone), "{again:?}");
    }
    assert_eq!(proven, 100);
    let (first, foreign) = (groups.keys().next().unwrap(), groups.values().next_back().unwrap());
    let elsewhere = look(&nodes, first, foreign).await.unwrap();
    assert!(elsewhere.seen.iter().all(|seen| *seen == Seen::Elsewhere), "{elsewhere:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_touch_tells_all_states_apart_and_reads_what_is_about_to_end() {
    let redis = Redis::with(calm(Options::default()));
    hold_still(&redis);
    let nodes = open(&redis.url(), &[0]).await;
    let [feed] = &feeds(&nodes)[..] else { panic!("one server, one database") };
    set(&redis, b"far", b"1", "1000000");
    set(&redis, b"past", b"2", "1");
    redis.call(&["SET", "forever", "3"]);
    end_of(&redis).await;
    let five_mib = vec![b'x'; 5 << 20];
    let mib = vec![b'y'; (1 << 20) - 9];
    for (key, value) in
        [("soon", b"message".as_slice()), ("large", &five_mib), ("full-1", &mib), ("full-2", &mib)]
    {
        set(&redis, key.as_bytes(), value, "60000");
    }
    redis.call(&["HSET", "hash", "message", "a b", "f", ""]);
    redis.call(&["LPUSH", "list", "1"]);
    ["hash", "list"].iter().for_each(|key| drop(redis.call(&["PEXPIRE", key, "60000"])));
    let names = ["far", "past", "forever", "gone", "soon", "large", "full-1", "full-2", "hash", "list"];
    let asked: Vec<_> = names.map(Bytes::from).to_vec();
    let capture = Capture { limit: 1 << 20, within_ms: 70_000 };
    let touched = nodes.touch(feed, &asked, capture).await.unwrap();
    let due = |at: usize| matches!(touched.seen[at], Seen::Due(due) if due > touched.position / 1_000);
    assert!(due(0) && (4..10).all(due), "{:?}", touched.seen);
    assert_eq!(touched.seen[1..4], [Seen::Proven, Seen::Forever, Seen::Gone]);
    // The two that fill a page each are read one after the other.
    let text = |bytes: &[u8]| Found::String(Bytes::copy_from_slice(bytes));
    let pair = |field: &'static str, value: &'static str| (Bytes::from(field), Bytes::from(value));
    let expected = BTreeMap::from([
        (4, text(b"message")),
        (5, Found::Large(5 << 20)),
        (6, text(&mib)),
        (7, text(&mib)),
        (9, Found::OtherType),
    ]);
    let mut captured = touched.captured.clone();
    let Some(Found::Hash(mut hash)) = captured.remove(&8) else { panic!("{:?}", captured.keys()) };
    hash.sort();
    assert_eq!(hash, [pair("f", ""), pair("message", "a b")]);
    assert_eq!((captured == expected, touched.more.len()), (true, 0), "{:?}", touched.captured.keys());
    // Too far from their end: nothing is read.
    let capture = Capture { within_ms: 100, ..capture };
    assert_eq!(nodes.touch(feed, &asked, capture).await.unwrap().captured, BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_an_error_and_never_says_that_keys_are_gone() {
    let primary = Redis::with(Options::default().line("repl-diskless-sync-delay 0"));
    let replica = Redis::start();
    let nodes = open(&replica.url(), &[0]).await;
    replica.call(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    eventually("it is in step", async || replica.info("replication")["master_link_status"] == "up").await;
    primary.call(&["SET", "a", "1", "PX", "1"]);
    let feed = Feed { node: Node::server(), db: 0 };
    for _ in 0..3 {
        let error = look(&nodes, &feed, &keys(3)).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("READONLY"), "{error}");
    }
    let error = nodes.plant(&feed, &Bytes::from("b"), 100).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    replica.call(&["REPLICAOF", "NO", "ONE"]);
    eventually("it answers again", async || {
        look(&nodes, &feed, &keys(3)).await.map_err(|error| error.to_string())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_a_server_forgot_are_sent_again() {
    let redis = Redis::start();
    let nodes = open(&redis.url(), &[0]).await;
    let feed = Feed { node: Node::server(), db: 0 };
    for _ in 0..3 {
        look(&nodes, &feed, &keys(2)).await.unwrap();
        assert_eq!(nodes.values(0, &keys(2), 10).await.unwrap(), [Found::Missing, Found::Missing]);
        redis.call(&["SCRIPT", "FLUSH"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_unknown_and_nothing_is_touched_twice() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let nodes = open(&proxy.url(), &[0]).await;
    let feed = Feed { node: Node::server(), db: 0 };
    look(&nodes, &feed, &[]).await.unwrap();
    let calls = || {
        let stats = redis.info("commandstats");
        let line = stats.get("cmdstat_publish").cloned().unwrap_or_default();
        line.split([',', '=']).nth(1).and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0)
    };
    let before = calls();
    proxy.down(overdue_tests::Mode::Cut);
    let error = look(&nodes, &feed, &[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(calls(), before + 1);
    proxy.heal();
    eventually("it goes on", async || look(&nodes, &feed, &[]).await.map_err(|error| error.to_string()))
        .await;
}
