//! Nodes that hang, die, and lose their place.

use std::slice::from_ref;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_protocol::watch::{Found, Seen};
use overdue_store::{ErrorKind, Feed, Nodes};
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, eventually};

use super::{PROMPT, feeds, keys, look, open};

/// Within this a change of the topology is followed: a look every 3 s at most, and a share for a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// Touches every node but `dead` while `dead` is touched too; answers the slowest of the healthy ones.
async fn slowest_of_others(nodes: &Nodes, dead: &Feed) -> Duration {
    let to_dead = {
        let (nodes, dead) = (nodes.clone(), dead.clone());
        tokio::spawn(async move { look(&nodes, &dead, &keys(3)).await })
    };
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        for feed in feeds(nodes).iter().filter(|feed| *feed != dead) {
            let begun = Instant::now();
            look(nodes, feed, &keys(3)).await.unwrap();
            slowest = slowest.max(begun.elapsed());
        }
    }
    let error = to_dead.await.unwrap().unwrap_err();
    assert!(error.is_retryable(), "{error}");
    slowest
}

fn partial() -> Options {
    Options::default().line("cluster-require-full-coverage no")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_or_hangs_holds_up_no_other() {
    let cluster = Cluster::with(&partial());
    let nodes = open(&cluster.url(), &[0]).await;
    let key = Bytes::from("session:1");
    let (dead, redis) = (nodes.feed_of(0, &key).unwrap(), cluster.node_of(&key));
    redis.sigstop();
    let slowest = slowest_of_others(&nodes, &dead).await;
    assert!(slowest < PROMPT, "hung: {slowest:?}");
    redis.sigcont();
    let back = async || look(&nodes, &dead, from_ref(&key)).await.map_err(|error| error.to_string());
    eventually("it goes on", back).await;
    redis.kill9();
    let slowest = slowest_of_others(&nodes, &dead).await;
    assert!(slowest < PROMPT, "killed: {slowest:?}");
    assert!(nodes.values(0, &keys(30), 10).await.unwrap_err().is_retryable());
    // Meanwhile somebody else comes up all the same, and finds it when it is back.
    let late = open(&cluster.url(), &[0]).await;
    assert_eq!(feeds(&late).len(), 3);
    redis.restart().unwrap();
    eventually("it is back", back).await;
    eventually("for others too", async || look(&late, &dead, &[]).await.map_err(|error| error.to_string()))
        .await;
}

/// Waits until the feeds are those of the new primary, and answers how long it took.
async fn moved(nodes: &Nodes, from: &Feed, key: &Bytes) -> Duration {
    let begun = Instant::now();
    eventually("the new primary is known, and answers", async || {
        let feed = nodes.feed_of(0, key).ok_or("nobody serves it")?;
        if feed == *from {
            return Err("still the old one".to_owned());
        }
        assert!(nodes.feeds().borrow().contains(&feed) && !nodes.feeds().borrow().contains(from));
        let touched = look(nodes, &feed, from_ref(key)).await.map_err(|error| error.to_string())?;
        if touched.seen == [Seen::Forever] { Ok(()) } else { Err(format!("{touched:?}")) }
    })
    .await;
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_failover_is_followed_within_seconds_even_when_nobody_calls() {
    let cluster = Cluster::with_replica(&partial());
    let nodes = open(&cluster.url(), &[0]).await;
    let replica = &cluster.nodes()[3];
    let is_first = |key: &Bytes| cluster.node_of(key).port() == cluster.nodes()[0].port();
    let key = keys(100).into_iter().find(is_first).unwrap();
    let old = nodes.feed_of(0, &key).unwrap();
    cluster.nodes()[0].call(&[b"SET".as_slice(), &key, b"v"]);
    let mut feeds = nodes.feeds();
    replica.call(&["CLUSTER", "FAILOVER"]);
    let role = |node: usize| cluster.nodes()[node].info("replication")["role"].clone();
    eventually("it is a primary", async || role(3) == "master").await;
    // Nobody calls: only the follower looks.
    tokio::time::timeout(SOON, feeds.changed()).await.expect("within seconds").unwrap();
    let took = moved(&nodes, &old, &key).await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(nodes.place(&nodes.feed_of(0, &key).unwrap().node), format!("redis://{}/", replica.addr()));
    let error = look(&nodes, &old, &[]).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("no primary"), "{error}");
    // The connection to what is a replica now is closed.
    let ours = || cluster.nodes()[0].call(&["CLIENT", "LIST"]).text().contains("overdue-test:");
    eventually("its connection is closed", async || !ours()).await;
    // And back again, with callers: their refusal is enough to look at once.
    let old = nodes.feed_of(0, &key).unwrap();
    cluster.nodes()[0].call(&["CLUSTER", "FAILOVER"]);
    eventually("it is a primary again", async || role(0) == "master").await;
    let refused = eventually("the other one refuses", async || look(&nodes, &old, &[]).await.err());
    let refused = refused.await;
    assert!(refused.is_retryable(), "{refused}");
    let begun = Instant::now();
    eventually("the new one is known", async || nodes.feed_of(0, &key).is_some_and(|feed| feed != old)).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    // 6.2 holds it up for longer: what it paused before it lost its place is still paused.
    moved(&nodes, &old, &key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_is_replaced_by_its_replica_within_seconds_of_the_election() {
    let cluster = Cluster::with_replica(&partial());
    let nodes = open(&cluster.url(), &[0]).await;
    let is_first = |key: &Bytes| cluster.node_of(key).port() == cluster.nodes()[0].port();
    let key = keys(100).into_iter().find(is_first).unwrap();
    let (old, replica) = (nodes.feed_of(0, &key).unwrap(), &cluster.nodes()[3]);
    cluster.nodes()[0].call(&[b"SET".as_slice(), &key, b"v"]);
    // WAIT speaks for the writes of its own connection only, and each call here is another one.
    eventually("the replica has it", async || replica.count(&["DBSIZE"]) == 1).await;
    cluster.nodes()[0].kill9();
    eventually("the replica is elected", async || replica.info("replication")["role"] == "master").await;
    let took = moved(&nodes, &old, &key).await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(nodes.values(0, &[key], 10).await.unwrap(), [Found::String("v".into())]);
}
