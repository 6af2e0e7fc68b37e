//! Following the topology of a cluster.
//!
//! Every node is asked, on its own connection, and the one with the highest epoch is believed: a primary that is cut
//! off from the others goes on saying what was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::Inner;
use super::peer::{Dial, Peer};
use crate::connection::by_chance;
use crate::endpoint::{Endpoint, Place};
use crate::order::{Order, Route};
use crate::topology::{self, Primary};
use crate::way::Way;
use crate::{Error, ErrorKind, Node, Result};

/// Between two looks; half to one and a half times.
const EVERY: Duration = Duration::from_secs(2);
/// The same while a node does not answer: another one takes its place soon.
const EVERY_SHAKY: Duration = Duration::from_millis(500);
/// Before a look that was asked for: so many callers may ask at once.
const SOON: Duration = Duration::from_millis(100);
/// How long the nodes may take to answer.
const LOOK: Duration = Duration::from_secs(1);
/// How long the others may take when one has answered.
const LAGGARDS: Duration = Duration::from_millis(300);
/// The shortest time between two log lines about a cluster that does not answer.
const SILENCE: Duration = Duration::from_secs(30);

const DOING: &str = "look at the cluster";

/// Looks at the topology until it is aborted.
pub(super) async fn follow(inner: Arc<Inner>) {
    let mut said: Option<Instant> = None;
    let mut every = EVERY;
    loop {
        tokio::select! {
            () = sleep(by_chance(every)) => {}
            () = inner.refresh.notified() => sleep(by_chance(SOON)).await,
        }
        let known = inner.map().peers().cloned().collect();
        let found = match ask_all(known, &inner.dial, LOOK).await {
            // All may have moved at once.
            Err(_) => ask_seeds(&inner.at, &inner.dial, LOOK).await.map(|primaries| (primaries, true)),
            found => found,
        };
        every = if matches!(found, Ok((_, true))) { EVERY } else { EVERY_SHAKY };
        match found {
            Ok((primaries, _)) => {
                said = None;
                inner.adopt(primaries);
            }
            Err(error) if said.is_none_or(|at| at.elapsed() >= SILENCE) => {
                tracing::warn!(%error, "the topology is not known; going on with the last one");
                said = Some(Instant::now());
            }
            Err(_) => {}
        }
    }
}

/// Asks the nodes of the URL, on connections that end with this.
pub(super) async fn ask_seeds(at: &Endpoint, dial: &Arc<Dial>, patience: Duration) -> Result<Vec<Primary>> {
    let Place::Cluster { hosts } = &at.place else { return Ok(vec![]) };
    let seed = |(host, port): &(String, u16)| {
        let node = Node::of_cluster(&format!("{host}:{port}"));
        let place = Place::One { host: host.clone(), port: *port };
        Arc::new(Peer::new(node, Endpoint { place, ..at.clone() }, &BTreeSet::from([0])))
    };
    Ok(ask_all(hosts.iter().map(seed).collect(), dial, patience).await?.0)
}

/// Asks nodes all at once. Answers whether all have answered too.
async fn ask_all(
    peers: Vec<Arc<Peer>>,
    dial: &Arc<Dial>,
    patience: Duration,
) -> Result<(Vec<Primary>, bool)> {
    let (mut answers, wanted) = (0, peers.len());
    let mut asked = JoinSet::new();
    for peer in peers {
        let dial = Arc::clone(dial);
        asked.spawn(async move { ask(&peer, &dial, patience).await });
    }
    let mut until = Instant::now() + patience;
    let mut best: Result<(u64, Vec<Primary>)> = Err(Error::new(
        ErrorKind::Unreachable,
        DOING,
        "no node answers: is the cluster up, and the address right?",
    ));
    while let Ok(Some(answer)) = timeout_at(until, asked.join_next()).await {
        answers += usize::from(matches!(answer, Ok(Ok(_))));
        match (answer, &best) {
            (Ok(Ok((epoch, _))), Ok((best_epoch, _))) if epoch <= *best_epoch => {}
            (Ok(Ok(answer)), _) => {
                until = until.min(Instant::now() + LAGGARDS);
                best = Ok(answer);
            }
            // What does not pass by itself says most.
            (Ok(Err(error)), Err(known)) if known.is_retryable() => best = Err(error),
            _ => {}
        }
    }
    best.map(|(_, primaries)| (primaries, answers == wanted))
}

/// A node's epoch, and then what it says.
async fn ask(peer: &Peer, dial: &Arc<Dial>, patience: Duration) -> Result<(u64, Vec<Primary>)> {
    let line = peer.any_line(dial, patience).await?;
    let order = Order::new("CLUSTER", vec!["INFO".into()], Route::Any, patience);
    let epoch = match line.ask(DOING, &order).await {
        Ok(info) => epoch_in(info.as_str().unwrap_or_default()),
        // One right that can be done without.
        Err(error) if error.kind() == ErrorKind::Refused => 0,
        Err(error) => return Err(error),
    };
    // A host that it does not name is its own.
    let own = match &peer.at().place {
        Place::One { host, port } => vec![(host.clone(), *port)],
        _ => vec![],
    };
    let at = Endpoint { place: Place::Cluster { hosts: own }, ..peer.at().clone() };
    Ok((epoch, topology::look(&line, &at, patience).await?))
}

fn epoch_in(info: &str) -> u64 {
    let epoch = info.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:"));
    epoch.and_then(|epoch| epoch.trim_end().parse().ok()).unwrap_or(0)
}
