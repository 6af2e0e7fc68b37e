//! Databases, sockets, TLS, Sentinel; and what cannot be reached.

use std::collections::BTreeSet;
use std::slice::from_ref;

use bytes::Bytes;
use overdue_protocol::watch::{Found, Seen};
use overdue_store::{ErrorKind, Feed, Node, Nodes, Settings};
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Redis, Sentinel, Tls, eventually};

use super::{feeds, look, open, scan};

/// The same name in database 0 and database 3 is two keys.
async fn two_databases(settings: &Settings, redis: &Redis) {
    let nodes = Nodes::open(settings, "test", &BTreeSet::from([0, 3])).await.unwrap();
    let [zero, three] = [0, 3].map(|db| Feed { node: Node::server(), db });
    assert_eq!(feeds(&nodes), [zero.clone(), three.clone()]);
    let key = Bytes::from("same");
    assert_eq!(nodes.feed_of(3, &key), Some(three.clone()));
    nodes.plant(&three, &key, 60_000).await.unwrap();
    redis.call(&["SET", "same", "in 0"]);
    assert_eq!(look(&nodes, &zero, from_ref(&key)).await.unwrap().seen, [Seen::Forever]);
    let touched = look(&nodes, &three, from_ref(&key)).await.unwrap();
    assert!(matches!(touched.seen[..], [Seen::Due(_)]) && touched.dbsize == 1, "{touched:?}");
    let values = async |db| nodes.values(db, from_ref(&key), 100).await.unwrap();
    assert_eq!(values(0).await, [Found::String("in 0".into())]);
    assert_eq!(values(3).await, [Found::String("".into())]);
    assert_eq!(scan(&nodes, &three, b"s*").await, [key].into());
    let unknown = Feed { db: 7, ..zero };
    assert_eq!(look(&nodes, &unknown, &[]).await.unwrap_err().kind(), ErrorKind::Settings);
    assert_eq!(
        nodes.info(&three.node, "server").await.unwrap()["redis_version"],
        redis.info("server")["redis_version"]
    );
    assert_eq!(nodes.tag(&three.node), "0");
    nodes.close().await;
    assert_eq!(look(&nodes, &three, &[]).await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_are_told_apart_over_tcp_and_sockets() {
    let redis = Redis::start();
    two_databases(&Settings::new(redis.url()), &redis).await;
    redis.call(&["FLUSHALL"]);
    two_databases(&Settings::new(redis.unix_url()), &redis).await;
    let secret = Options { password: Some("hunter2".into()), ..Options::default() };
    let redis = Redis::with(secret);
    two_databases(&Settings::new(redis.url().replace("//", "//:hunter2@")), &redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_are_told_apart_over_tls() {
    let tls = Tls::start();
    let settings = Settings { ca_file: Some(tls.ca_file()), ..Settings::new(tls.url()) };
    two_databases(&settings, tls.redis()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_sentinel_the_node_stays_the_same_and_the_primary_is_followed() {
    let sentinel = Sentinel::start();
    two_databases(&Settings::new(sentinel.url()), sentinel.primary()).await;
    let nodes = open(&sentinel.url(), &[0]).await;
    let (feeds, feed) = (nodes.feeds(), Feed { node: Node::server(), db: 0 });
    let key = Bytes::from("a");
    sentinel.failover();
    sentinel.primary().call(&["SET", "a", "1"]);
    eventually("the new primary answers", async || {
        let touched = look(&nodes, &feed, from_ref(&key)).await.map_err(|error| error.to_string())?;
        // The old one is a primary still for a moment, and may say what it knows.
        if touched.seen == [Seen::Forever] { Ok(()) } else { Err(format!("{touched:?}")) }
    })
    .await;
    assert!(!feeds.has_changed().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_the_sentinel_no_longer_names_is_left() {
    let (old, new) = (Redis::start(), Redis::start());
    let watch = |redis: &Redis| {
        ["SENTINEL", "MONITOR", "main", "127.0.0.1", &redis.port().to_string(), "1"].map(str::to_owned)
    };
    let sentinel = Redis::with(Options { sentinel: true, ..Options::default() });
    sentinel.call(&watch(&old));
    let nodes = open(&format!("redis-sentinel://{}/main", sentinel.addr()), &[0, 3]).await;
    let keys = [Bytes::from("a")];
    for db in ["0", "3"] {
        let mut redis = new.connection().unwrap();
        redis.call(&["SELECT", db]).unwrap();
        redis.call(&["SET", "a", "1"]).unwrap();
    }
    // Nobody closes our connections to it, and it answers.
    sentinel.call(&["SENTINEL", "REMOVE", "main"]);
    sentinel.call(&watch(&new));
    for feed in feeds(&nodes) {
        assert_eq!(feed.node, Node::server());
        eventually("the new one answers", async || {
            let touched = look(&nodes, &feed, &keys).await.map_err(|error| error.to_string())?;
            if touched.seen == [Seen::Forever] { Ok(()) } else { Err(format!("{touched:?}")) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_opened_says_why_at_once() {
    let redis = Redis::start();
    let kind = async |url: &str, dbs: &[u8]| {
        let dbs = dbs.iter().copied().collect();
        let error = Nodes::open(&Settings::new(url), "test", &dbs).await.map(drop).unwrap_err();
        (error.kind(), error.to_string())
    };
    assert_eq!(kind(&redis.url(), &[0, 200]).await.0, ErrorKind::Settings);
    assert_eq!(kind("redis://127.0.0.1:1/", &[0]).await.0, ErrorKind::Unreachable);
    assert_eq!(kind("redis-cluster://127.0.0.1:1/", &[0]).await.0, ErrorKind::Unreachable);
    let (found, text) = kind("redis-cluster://127.0.0.1:1/", &[0, 3]).await;
    assert!(found == ErrorKind::Settings && text.contains("only database 0"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_nodes_leave_no_connection() {
    let cluster = Cluster::start();
    let clients = || cluster.nodes().iter().map(|node| node.info("clients")["connected_clients"].clone());
    let before: Vec<_> = clients().collect();
    let nodes = open(&cluster.url(), &[0]).await;
    let clone = nodes.clone();
    drop(nodes);
    assert_eq!(feeds(&clone).len(), 3);
    assert!(clients().all(|now| now.parse::<u64>().unwrap() > 1));
    drop(clone);
    let gone = || {
        let now: Vec<_> = clients().collect();
        if now == before { Ok(()) } else { Err(now) }
    };
    eventually("all are gone", async || gone()).await;
    open(&cluster.url(), &[0]).await.close().await;
    eventually("all are closed", async || gone()).await;
}
