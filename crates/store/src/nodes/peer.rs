//! One node, with a connection for each database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use overdue_telemetry::label::ConnectionRole;
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::connection::Connection;
use crate::dial;
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::{ErrorKind, Node, Result, Settings};

/// How long a node of a cluster is waited for that was connected before.
const PROMPT: Duration = Duration::from_millis(200);

/// How to connect, whatever the node.
pub(super) struct Dial {
    pub(super) settings: Settings,
    pub(super) tls: Option<TlsConnector>,
    pub(super) role: String,
    /// How many connections were made, to all nodes.
    pub(super) made: watch::Sender<u64>,
}

/// A node. A connection that could not be made is tried again by the next call that needs it.
pub(super) struct Peer {
    node: Node,
    at: Endpoint,
    place: String,
    lines: BTreeMap<u8, OnceCell<Arc<Connection>>>,
    closed: AtomicBool,
}

impl Peer {
    /// A node at an address, not connected yet.
    pub(super) fn new(node: Node, at: Endpoint, dbs: &BTreeSet<u8>) -> Self {
        let lines = dbs.iter().map(|&db| (db, OnceCell::new())).collect();
        Self { node, place: at.to_string(), at, lines, closed: AtomicBool::new(false) }
    }

    /// Who it is.
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Where it is.
    pub(super) fn at(&self) -> &Endpoint {
        &self.at
    }

    /// Where it is, without user and password.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// The databases.
    pub(super) fn dbs(&self) -> impl Iterator<Item = u8> {
        self.lines.keys().copied()
    }

    /// The connection to any of its databases.
    pub(super) async fn any_line(&self, dial: &Arc<Dial>, deadline: Duration) -> Result<Arc<Connection>> {
        let db = self.lines.keys().next().copied().unwrap_or_default();
        self.line(dial, db, deadline).await
    }

    /// The connection to a database; made now when there is none yet.
    pub(super) async fn line(&self, dial: &Arc<Dial>, db: u8, deadline: Duration) -> Result<Arc<Connection>> {
        self.connected(dial, db, deadline).await.map_err(|fault| fault.during("connect", &self.place))
    }

    /// The same for those who say themselves what was being done. A node of a cluster that was connected and is not
    /// is not waited for: others must not be held up by it.
    pub(super) async fn connected(
        &self,
        dial: &Arc<Dial>,
        db: u8,
        deadline: Duration,
    ) -> std::result::Result<Arc<Connection>, Fault> {
        let Some(line) = self.lines.get(&db) else {
            let text = format!("database {db} is none of those that the connections were opened for");
            return Err(Fault::new(ErrorKind::Settings, text));
        };
        if self.closed.load(Relaxed) {
            return Err(Fault::new(ErrorKind::Unavailable, "the node is no primary any more"));
        }
        let (dial, at) = (Arc::clone(dial), Endpoint { db, ..self.at.clone() });
        let connect = || async move {
            // In a task of its own: dropped in the midst of it, the library would leave a connection behind.
            let connecting = tokio::spawn(async move {
                let client = dial::client(&dial.settings, &at, dial.tls.clone());
                let connection =
                    Connection::begin(client, &dial.settings, &at, &dial.role, ConnectionRole::Command)
                        .await?;
                count(connection.made(), dial.made.clone());
                Ok(Arc::new(connection))
            });
            connecting.await.map_err(|_| Fault::new(ErrorKind::Closed, "this process is ending"))?
        };
        let late = || Fault::new(ErrorKind::Unreachable, "no connection within the deadline");
        let line = timeout(deadline, line.get_or_try_init(connect)).await.map_err(|_| late())??;
        if self.node != Node::server() && !line.is_up_within(PROMPT).await {
            return Err(Fault::new(ErrorKind::Unreachable, "no connection to the node"));
        }
        Ok(Arc::clone(line))
    }

    /// The connections that there are.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.lines.values().filter_map(OnceCell::get)
    }

    /// Ends its connections, politely for at most a second.
    pub(super) async fn close(&self) {
        self.closed.store(true, Relaxed);
        let mut closing = JoinSet::new();
        for line in self.lines() {
            let line = Arc::clone(line);
            closing.spawn(async move { line.close().await });
        }
        closing.join_all().await;
    }
}

/// Counts in `total` too how often a connection is made, until it ends.
fn count(mut made: watch::Receiver<u64>, total: watch::Sender<u64>) {
    total.send_modify(|n| *n += *made.borrow_and_update());
    tokio::spawn(async move {
        while made.changed().await.is_ok() {
            total.send_modify(|n| *n += 1);
        }
    });
}
