//! Who is the right server: Sentinel and Cluster.

use std::collections::BTreeSet;

use overdue_store::{Node, Settings, Signal};
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Redis, Sentinel, eventually};

use super::{any, message, next, open, subscribe};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_by_sentinel_is_followed() {
    let sentinel = Sentinel::start();
    let (_subscriber, mut signals) = subscribe(&sentinel.url(), &["a*"], 64).await;
    sentinel.failover();
    assert_eq!(any(&mut signals).await, Signal::Closed(Node::server()));
    assert_eq!(any(&mut signals).await, Signal::Down);
    assert_eq!(any(&mut signals).await, Signal::Opened(Node::server()));
    assert_eq!(any(&mut signals).await, Signal::Up);
    // A replica passes publications on, but there is nobody to pass them on to yet.
    eventually("it listens to the new primary", async || {
        sentinel.primary().call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text().contains("name=overdue-test:")
    })
    .await;
    sentinel.primary().call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_sentinel_no_longer_names_is_left() {
    let (old, new) = (Redis::start(), Redis::start());
    let watch = |redis: &Redis| {
        ["SENTINEL", "MONITOR", "main", "127.0.0.1", &redis.port().to_string(), "1"].map(str::to_owned)
    };
    let sentinel = Redis::with(Options { sentinel: true, ..Options::default() });
    sentinel.call(&watch(&old));
    let url = format!("redis-sentinel://127.0.0.1:1,{}/main", sentinel.addr());
    let (_subscriber, mut signals) = subscribe(&url, &["a*"], 64).await;
    // Nobody closes our connection to it, and it answers.
    sentinel.call(&["SENTINEL", "REMOVE", "main"]);
    sentinel.call(&watch(&new));
    assert_eq!(next(&mut signals).await, Signal::Down);
    assert_eq!(next(&mut signals).await, Signal::Up);
    new.call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_may_have_the_password_of_the_servers_or_none() {
    let redis = Redis::with(Options { password: Some("sesame".into()), ..Options::default() });
    for own in ["requirepass sesame", "# none"] {
        let watch = Options { sentinel: true, ..Options::default() }
            .line(format!("sentinel monitor main 127.0.0.1 {} 1", redis.port()))
            .line("sentinel auth-pass main sesame")
            .line(own);
        let sentinel =
            Redis::with(Options { password: own.contains("sesame").then(|| "sesame".into()), ..watch });
        let url = format!("redis-sentinel://:sesame@{}/main", sentinel.addr());
        let (_subscriber, mut signals) = subscribe(&url, &["a*"], 64).await;
        redis.call(&["PUBLISH", "abc", "hello"]);
        assert_eq!(next(&mut signals).await, message("abc", "hello"), "{own}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_sentinel_names_is_no_primary() {
    let primary = Redis::start();
    let replica = Redis::with(Options::default().line(format!("replicaof 127.0.0.1 {}", primary.port())));
    let answer =
        format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{}\r\n", replica.port().to_string().len(), replica.port());
    let url =
        crate::store_traps::stub(move |_| answer.clone()).await.replace("redis://", "redis-sentinel://");
    let error = open(&Settings::new(format!("{url}main")), &["a*"], 8).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("no primary: slave") && error.is_retryable(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_tells_which_node_speaks_and_a_failover_is_another_node() {
    let options = Options { notify: "KEA".into(), ..Options::default() };
    let cluster = Cluster::with_replica(&options);
    let id = |redis: &Redis| Node::of_cluster(&redis.call(&["CLUSTER", "MYID"]).text());
    let [first, second, third, replica] = cluster.nodes() else { panic!("four nodes") };
    let (lost, new) = (id(first), id(replica));
    let settings = Settings::new(cluster.url());
    let (_subscriber, mut signals) = open(&settings, &["__keyspace@0__:*", "a*"], 4_096).await.unwrap();
    let mut opened = BTreeSet::new();
    for _ in 0..3 {
        match any(&mut signals).await {
            Signal::Opened(node) => opened.insert(node),
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(opened, [first, second, third].map(id).into());
    assert_eq!(any(&mut signals).await, Signal::Up);
    for i in 0..30 {
        let key = format!("k{i}");
        let speaker = cluster.node_of(key.as_bytes());
        speaker.call(&["SET", &key, "v"]);
        let heard = loop {
            match any(&mut signals).await {
                Signal::Event { name, .. } if name == "new" => {}
                heard => break heard,
            }
        };
        let wanted = Signal::Event { node: id(speaker), db: 0, name: "set".into(), key: key.into() };
        assert_eq!(heard, wanted);
    }
    first.kill9();
    // It may have been the one that speaks for all, too: that is another connection.
    let mut before = vec![];
    loop {
        match any(&mut signals).await {
            Signal::Opened(node) if node == new => break,
            signal => before.push(signal),
        }
    }
    assert!(before.contains(&Signal::Closed(lost)) && before.contains(&Signal::Down), "{before:?}");
    assert_eq!(any(&mut signals).await, Signal::Up);
    let key = (0..)
        .map(|i| format!("k{i}"))
        .find(|key| cluster.node_of(key.as_bytes()).port() == replica.port())
        .unwrap();
    eventually("the new primary takes writes", async || {
        replica.command(&["SET", &key, "v"]).map_err(|e| e.to_string())
    })
    .await;
    match any(&mut signals).await {
        Signal::Event { node, .. } => assert_eq!(node, new),
        other => panic!("{other:?}"),
    }
    // Whoever speaks for all: a message is heard once.
    second.call(&["PUBLISH", "abc", "hello"]);
    loop {
        match any(&mut signals).await {
            Signal::Event { .. } => {}
            heard => break assert_eq!(heard, message("abc", "hello")),
        }
    }
    third.call(&["PUBLISH", "abc", "again"]);
    assert_eq!(any(&mut signals).await, message("abc", "again"));
}
