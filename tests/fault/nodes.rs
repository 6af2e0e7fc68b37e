//! Nodes that hold watched keys: every slot is reached, a node that is down holds up no other, and whoever is no
//! primary any more answers nothing that could be taken for an expiry.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use overdue_store::{Capture, Error, Feed, Nodes, Settings, Touched};

mod failures;
mod places;
mod reading;
mod touches;

/// The slowest that a call to a healthy node may be on a busy machine.
const PROMPT: Duration = Duration::from_millis(1_500);

async fn open(url: &str, dbs: &[u8]) -> Nodes {
    Nodes::open(&Settings::new(url), "test", &dbs.iter().copied().collect()).await.expect("the nodes take us")
}

fn feeds(nodes: &Nodes) -> Vec<Feed> {
    nodes.feeds().borrow().iter().cloned().collect()
}

fn keys(n: usize) -> Vec<Bytes> {
    (0..n).map(|i| Bytes::from(format!("session:{i}"))).collect()
}

async fn look(nodes: &Nodes, feed: &Feed, keys: &[Bytes]) -> Result<Touched, Error> {
    nodes.touch(feed, keys, Capture::NONE).await
}

async fn scan(nodes: &Nodes, feed: &Feed, pattern: &[u8]) -> BTreeSet<Bytes> {
    let (mut all, mut cursor) = (BTreeSet::new(), 0);
    loop {
        let (next, names) = nodes.scan(feed, cursor, pattern, 100).await.unwrap();
        all.extend(names);
        cursor = next;
        if cursor == 0 {
            return all;
        }
    }
}
