//! Values, scans and canaries of every node.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::time::Instant;

use bytes::Bytes;
use overdue_protocol::watch::{Found, Seen};
use overdue_store::{ErrorKind, Feed, Node, Settings};
use overdue_tests::{Cluster, Redis};

use super::{PROMPT, feeds, keys, look, open, scan};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_come_from_every_node_in_their_order_however_many_bytes_they_are() {
    let cluster = Cluster::start();
    let nodes = open(&cluster.url(), &[0]).await;
    let mut names = keys(600);
    for (i, key) in names.iter().enumerate() {
        let value = format!("MOVED {i} 127.0.0.1:1 {}", "x".repeat(9_000));
        cluster.node_of(key).call(&[b"SET".as_slice(), key, value.as_bytes()]);
    }
    let odd = Bytes::from_static(b"\xff\x00\r\n{}*");
    cluster.node_of(&odd).call(&[b"HSET".as_slice(), &odd, b"\xfe", b"\x00"]);
    names.insert(300, Bytes::from("nobody"));
    names.insert(10, odd);
    names.push(names[20].clone());
    let found = nodes.values(0, &names, 100_000).await.unwrap();
    assert_eq!(found.len(), 603);
    assert_eq!(found[10], Found::Hash(vec![(Bytes::from_static(b"\xfe"), Bytes::from_static(b"\x00"))]));
    assert_eq!((&found[301], &found[602]), (&Found::Missing, &found[20]));
    for (key, found) in names.iter().zip(&found) {
        let Some(number) = key.strip_prefix(b"session:".as_slice()) else { continue };
        let Found::String(value) = found else { panic!("{key:?}: {found:?}") };
        let begins = [b"MOVED ".as_slice(), number, b" 127"].concat();
        assert!(value.starts_with(&begins), "{key:?}: {:?}", &value[..20]);
    }
    assert_eq!(nodes.values(0, &names[..1], 100).await.unwrap(), [Found::Large(9_020)]);
    assert_eq!(nodes.values(0, &[], 100).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_of_every_node_meets_every_key_whatever_its_name() {
    let cluster = Cluster::start();
    let nodes = open(&cluster.url(), &[0]).await;
    let mut all = keys(1_000);
    // Words that the client library looks for, and bytes that are no text.
    for odd in ["message", "pmessage", "smessage", "subscribe", "MOVED 1 127.0.0.1:1", "a\r\nb"] {
        all.push(Bytes::from(odd));
    }
    all.push(Bytes::from_static(b"\xff\x00\xfe"));
    all.push(Bytes::from(vec![b'n'; 65_536]));
    for key in &all {
        cluster.node_of(key).call(&[b"SET".as_slice(), key, b"v"]);
    }
    let mut met = BTreeSet::new();
    for feed in feeds(&nodes) {
        let own = scan(&nodes, &feed, b"*").await;
        assert!(own.iter().all(|key| nodes.feed_of(0, key).as_ref() == Some(&feed)));
        met.extend(own);
    }
    assert_eq!(met, all.iter().cloned().collect());
    // Three names in one answer, the first of them a word of the library's.
    let redis = Redis::start();
    let nodes = open(&redis.url(), &[0]).await;
    let feed = Feed { node: Node::server(), db: 0 };
    for names in [["message", "a", "b"], ["pmessage", "c", "d"], ["subscribe", "e", "f"]] {
        redis.call(&["FLUSHALL"]);
        names.iter().for_each(|name| drop(redis.call(&["SET", name, "v"])));
        assert_eq!(scan(&nodes, &feed, b"*").await, names.map(Bytes::from).into());
    }
    assert_eq!(scan(&nodes, &feed, b"[es]?bscribe").await, [Bytes::from("subscribe")].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_lives_on_the_node_whose_tag_it_has() {
    let cluster = Cluster::start();
    let settings = Settings::new(cluster.url());
    let nodes = open(&cluster.url(), &[0]).await;
    for feed in feeds(&nodes) {
        let key = settings.keyspace.canary(&nodes.tag(&feed.node), "me");
        nodes.plant(&feed, &key, 60_000).await.unwrap();
        let home = cluster.node_of(&key);
        assert!(home.count(&[b"PTTL".as_slice(), &key]) > 50_000);
        assert!(nodes.place(&feed.node).contains(&home.port().to_string()));
        let touched = look(&nodes, &feed, from_ref(&key)).await.unwrap();
        assert!(matches!(touched.seen[..], [Seen::Due(_)]), "{touched:?}");
        // A node that does not serve it says so at once.
        let other = feeds(&nodes).into_iter().find(|other| *other != feed).unwrap();
        let begun = Instant::now();
        let error = nodes.plant(&other, &key, 100).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
    }
}
