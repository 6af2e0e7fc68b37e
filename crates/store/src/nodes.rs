//! The servers that hold ordinary keys: a connection for each node and database ([`peer`]), and who serves which slot
//! ([`map`]).
//!
//! One client for a whole cluster stands still when one of its nodes is down, and sends a script without keys to any
//! node. So each node has a client of its own, and the topology is followed here ([`follow`]).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::endpoint::{Endpoint, Place};
use crate::{Error, ErrorKind, Feed, Node, Result, Settings};

mod command;
mod dispatch;
mod follow;
mod map;
mod peer;
mod sentinel;
mod touch;
mod values;

use map::Map;
use peer::{Dial, Peer};

/// Connections to the nodes that hold ordinary keys. Clones share them; they end with the last clone.
///
/// Nothing is sent twice. In a cluster the topology is looked at every 2 s, and at once when a node refuses what it
/// served before. A node that is down holds up nobody but those who ask it.
#[derive(Clone)]
pub struct Nodes {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<Inner>,
    follower: Option<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.follower.iter().for_each(AbortHandle::abort);
    }
}

/// What the follower shares with the callers.
struct Inner {
    settings: Settings,
    at: Endpoint,
    dial: Arc<Dial>,
    dbs: BTreeSet<u8>,
    map: RwLock<Arc<Map>>,
    feeds: watch::Sender<BTreeSet<Feed>>,
    /// Asks the follower of a cluster to look now.
    refresh: Notify,
    closed: AtomicBool,
    /// These servers know no flags of scripts: they are older than 7.0.
    flagless: AtomicBool,
}

impl Nodes {
    /// Connects to every node, once for each of `dbs` (not none), and fails fast; a node of a cluster that is down
    /// is no failure while another answers.
    ///
    /// `role` is what the connections are named by, as in [`crate::Store::connect`].
    ///
    /// # Errors
    /// As [`crate::Store::connect`]; `Settings` for a database that the server does not have.
    pub async fn open(settings: &Settings, role: &str, dbs: &BTreeSet<u8>) -> Result<Self> {
        let (at, tls) = settings.endpoint()?;
        let made = watch::Sender::new(0);
        let dial = Arc::new(Dial { settings: settings.clone(), tls, role: role.to_owned(), made });
        if at.is_cluster() && dbs.iter().any(|&db| db != 0) {
            let text = "a cluster has only database 0: correct the settings";
            return Err(Error::new(ErrorKind::Settings, "connect to the nodes", text));
        }
        let map = if at.is_cluster() {
            let primaries = follow::ask_seeds(&at, &dial, settings.connect_deadline).await?;
            Map::of_cluster(primaries, &Map::default(), &at, dbs)
        } else {
            Map::of_server(Peer::new(Node::server(), at.clone(), dbs))
        };
        connect_all(&map, &dial).await?;
        let inner = Arc::new(Inner {
            settings: settings.clone(),
            dial,
            dbs: dbs.clone(),
            feeds: watch::Sender::new(map.feeds(dbs)),
            map: RwLock::new(Arc::new(map)),
            refresh: Notify::new(),
            closed: AtomicBool::new(false),
            flagless: AtomicBool::new(false),
            at,
        });
        let follower = match inner.at.place {
            Place::Cluster { .. } => Some(tokio::spawn(follow::follow(Arc::clone(&inner)))),
            Place::Sentinel { .. } => Some(tokio::spawn(sentinel::heed(Arc::clone(&inner)))),
            Place::One { .. } | Place::Unix(_) => None,
        };
        let follower = follower.map(|task| task.abort_handle());
        Ok(Self { shared: Arc::new(Shared { inner, follower }) })
    }

    /// The primaries of now, each with every database. Changes with the topology.
    #[must_use]
    pub fn feeds(&self) -> watch::Receiver<BTreeSet<Feed>> {
        self.inner().feeds.subscribe()
    }

    /// Who holds a key, as far as is known; `None` when nobody serves its slot.
    #[must_use]
    pub fn feed_of(&self, db: u8, key: &[u8]) -> Option<Feed> {
        let map = self.inner().map();
        map.owner(key).map(|peer| Feed { node: peer.node().clone(), db })
    }

    /// Whether a node is a primary, and connected as far as is known. What is not need not be asked in vain.
    #[must_use]
    pub fn is_up(&self, node: &Node) -> bool {
        let map = self.inner().map();
        map.peer(node).is_some_and(|peer| peer.lines().all(|line| line.is_up()))
    }

    /// The nodes of now, and where each of them is.
    pub(crate) fn places(&self) -> Vec<(Node, Endpoint)> {
        self.inner().map().peers().map(|peer| (peer.node().clone(), peer.at().clone())).collect()
    }

    /// A hash tag of a slot that the node serves; `0` for a node that serves none.
    #[must_use]
    pub fn tag(&self, node: &Node) -> String {
        self.inner().map().tag(node).to_string()
    }

    /// The address of a node for logs; its id when it is no primary now.
    #[must_use]
    pub fn place(&self, node: &Node) -> String {
        self.inner().map().peer(node).map_or_else(|| node.to_string(), |peer| peer.place().to_owned())
    }

    /// Closes all connections, politely for at most a second. Later calls answer `Closed`.
    pub async fn close(&self) {
        self.inner().closed.store(true, Relaxed);
        self.shared.follower.iter().for_each(AbortHandle::abort);
        let mut closing = JoinSet::new();
        for peer in self.inner().map().peers() {
            let peer = Arc::clone(peer);
            closing.spawn(async move { peer.close().await });
        }
        closing.join_all().await;
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.shared.inner
    }
}

impl Inner {
    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    fn deadline(&self) -> Duration {
        self.settings.command_deadline
    }

    /// The node, or what to do when it is none of those of now.
    fn peer(&self, doing: &str, node: &Node) -> Result<Arc<Peer>> {
        if self.closed.load(Relaxed) {
            let text = "the connections to the nodes are closed: they were closed by this process";
            return Err(Error::new(ErrorKind::Closed, doing, text));
        }
        self.map().peer(node).cloned().ok_or_else(|| {
            self.refresh.notify_one();
            let text = format!("node {node} is no primary now: it was not done; look up who serves the key");
            Error::new(ErrorKind::Unavailable, doing, text)
        })
    }

    /// Takes over what the cluster says of itself; ends the connections of nodes that are gone.
    fn adopt(&self, primaries: Vec<crate::topology::Primary>) {
        let old = self.map();
        if old.is_of(&primaries) {
            return;
        }
        let new = Arc::new(Map::of_cluster(primaries, &old, &self.at, &self.dbs));
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        for gone in old.peers().filter(|peer| !new.holds(peer)) {
            let gone = Arc::clone(gone);
            tokio::spawn(async move { gone.close().await });
        }
        let feeds = new.feeds(&self.dbs);
        // While slots move from node to node there is nothing to say.
        if *self.feeds.borrow() != feeds {
            let primaries: Vec<&str> = new.peers().map(|peer| peer.place()).collect();
            tracing::info!(?primaries, "the cluster has other primaries now");
            self.feeds.send_replace(feeds);
        }
    }
}

/// Connects everything at once. In a cluster one node that answers is enough, but none may refuse us.
async fn connect_all(map: &Map, dial: &Arc<Dial>) -> Result<()> {
    let mut connecting = JoinSet::new();
    for peer in map.peers() {
        for db in peer.dbs() {
            let (peer, dial) = (Arc::clone(peer), Arc::clone(dial));
            let deadline = dial.settings.connect_deadline;
            connecting.spawn(async move { peer.line(&dial, db, deadline).await.map(drop) });
        }
    }
    let mut connected = 0;
    let mut down = None;
    for result in connecting.join_all().await {
        match result {
            Ok(()) => connected += 1,
            Err(error) if error.is_retryable() && !map.is_server() => {
                tracing::warn!(%error, "a node of the cluster does not answer; going on with the others");
                down = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    down.filter(|_| connected == 0).map_or(Ok(()), Err)
}
