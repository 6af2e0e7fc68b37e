//! Commands to whoever serves their slot: for the keys of Overdue itself, as long as they are in a cluster.

use std::sync::Arc;
use std::time::Duration;

use fred::types::Resp3Frame;
use rand::RngExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::Nodes;
use super::peer::Peer;
use crate::connection::{Connection, by_chance};
use crate::fault::Fault;
use crate::order::Order;
use crate::way::Way;
use crate::{ErrorKind, Result};

/// The database of the keys of Overdue: a cluster has no other.
const DB: u8 = 0;
/// The first wait before another try, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

impl Nodes {
    /// Sends a command once. What was certainly not executed and passes is tried again within the deadline, at
    /// whoever serves the slot then.
    pub(crate) async fn dispatch(&self, order: &Order) -> std::result::Result<Resp3Frame, Fault> {
        let until = Instant::now() + order.deadline;
        let mut pause = PAUSE.0;
        loop {
            let fault = match self.attempt(order, until).await {
                Err(fault) if fault.passing && !fault.no_script => fault,
                other => return other,
            };
            self.inner().refresh.notify_one();
            let wait = by_chance(pause);
            if Instant::now() + wait >= until {
                return Err(fault);
            }
            sleep(wait).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    async fn attempt(&self, order: &Order, until: Instant) -> std::result::Result<Resp3Frame, Fault> {
        let inner = self.inner();
        let left = || until.saturating_duration_since(Instant::now());
        let peer = self.server_of(order)?;
        // Nothing is sent before it is connected: another try may meet another node.
        let line = peer.connected(&inner.dial, DB, left()).await.map_err(|fault| Fault {
            passing: matches!(fault.kind, ErrorKind::Unreachable | ErrorKind::Unavailable),
            ..fault
        })?;
        let order = Order { deadline: left(), ..order.clone() };
        line.send(&order).await.map_err(|fault| Fault {
            // Closed because it is no primary any more: another one is, or will be.
            passing: fault.passing || fault.kind == ErrorKind::Closed && !inner.is_closed(),
            ..fault
        })
    }

    /// A connection to a node that answers, if any does: for commands that every node answers alike.
    pub(crate) async fn any_line(&self) -> Result<Arc<Connection>> {
        let inner = self.inner();
        let peer = self.any_peer().map_err(|fault| fault.during("connect", &inner.at.to_string()))?;
        peer.line(&inner.dial, DB, inner.deadline()).await
    }

    /// Counts the connections made to all nodes.
    pub(crate) fn made(&self) -> watch::Receiver<u64> {
        self.inner().dial.made.subscribe()
    }

    fn server_of(&self, order: &Order) -> std::result::Result<Arc<Peer>, Fault> {
        let Some(slot) = order.slot() else { return self.any_peer() };
        let nobody =
            || Fault { passing: true, ..Fault::new(ErrorKind::Unavailable, "no node serves the slot now") };
        self.inner().map().server_of(slot).cloned().ok_or_else(nobody)
    }

    /// One that is connected, if any is.
    fn any_peer(&self) -> std::result::Result<Arc<Peer>, Fault> {
        let map = self.inner().map();
        let peers: Vec<_> = map.peers().collect();
        let up: Vec<_> = peers.iter().filter(|peer| peer.lines().any(|line| line.is_up())).collect();
        let candidates = if up.is_empty() { peers.iter().collect() } else { up };
        let nobody = || Fault { passing: true, ..Fault::new(ErrorKind::Unavailable, "no node is known") };
        if candidates.is_empty() {
            return Err(nobody());
        }
        Ok(Arc::clone(candidates[rand::rng().random_range(0..candidates.len())]))
    }
}
