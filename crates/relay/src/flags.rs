//! The servers' `notify-keyspace-events`. It is per node, and lost at a restart: every node is looked at again after
//! each reconnect, whenever the nodes change, and every few seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overdue_store::{Node, Nodes, Result};
use overdue_telemetry::{Health, Metric, Throttle};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::settings::KeyspaceEvents;

const SETTING: &str = "notify-keyspace-events";
/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// `A` stands for these classes; for missed keys (`m`) and new ones (`n`) it does not.
const ALL: (char, &str) = ('A', "g$lshztdxe");

/// What was found at a node, so that each finding is said once. In the order of how bad it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    Good,
    Untold,
    Missing(String),
}

impl Finding {
    fn value(&self) -> f64 {
        match self {
            Self::Good => 1.0,
            Self::Missing(_) => 0.0,
            Self::Untold => -1.0,
        }
    }

    /// What is wrong, and what to do.
    fn why(&self, of: &str, needs: &str) -> Option<String> {
        match self {
            Self::Good => None,
            Self::Missing(missing) => Some(format!(
                "{SETTING}{of} lacks {missing}: sweeps carry on alone; run CONFIG SET, or keyspace_events = \"add\""
            )),
            Self::Untold => Some(format!(
                "the server does not tell its {SETTING}{of}: set it to include {needs} where the server is managed"
            )),
        }
    }
}

/// Looks after the flags of every node.
pub struct Flags {
    nodes: Nodes,
    mode: KeyspaceEvents,
    needs: Arc<str>,
    health: Health,
    throttle: Throttle,
    last: BTreeMap<Node, Finding>,
    again: Arc<Notify>,
}

impl Flags {
    /// Looks at every node once, and adds what is missing if `mode` lets it. `needs` are the flags that the subscriptions
    /// need. A node that does not answer is said, and looked at again by [`Flags::run`].
    pub async fn start(nodes: Nodes, mode: KeyspaceEvents, needs: &str, health: Health) -> Self {
        let (needs, throttle) = (needs.into(), Throttle::default());
        let mut flags =
            Self { nodes, mode, needs, health, throttle, last: BTreeMap::new(), again: Arc::default() };
        flags.look().await;
        flags
    }

    /// A handle for whoever hears of a gap: behind it may be another server, or a restarted one, with other flags.
    pub fn look_again(&self) -> impl Fn() + Send + Sync + Clone + 'static {
        let again = Arc::clone(&self.again);
        move || again.notify_one()
    }

    /// Looks until `stop`: every 5 s, when the nodes change, and when it is told to look again.
    pub async fn run(mut self, stop: CancellationToken) {
        if self.mode == KeyspaceEvents::Ignore {
            stop.cancelled().await;
            return;
        }
        let again = Arc::clone(&self.again);
        let mut feeds = self.nodes.feeds();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(EVERY) => {}
                () = again.notified() => {}
                changed = feeds.changed() => if changed.is_err() { return },
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.look() => {}
            }
        }
    }

    /// Looks at every node once; adds what is missing if it may. A node that does not answer is said, and passed
    /// over: what is heard of it is the subscription's business. A refusal is said too: managed servers do not tell.
    async fn look(&mut self) {
        if self.mode == KeyspaceEvents::Ignore {
            return;
        }
        let nodes: Vec<Node> = self.nodes.feeds().borrow().iter().map(|feed| feed.node.clone()).collect();
        self.last.retain(|node, _| nodes.contains(node));
        let mut looking = JoinSet::new();
        // The databases of one node are neighbours.
        for node in nodes.chunk_by(|a, b| a == b).filter_map(<[Node]>::first) {
            let (node, nodes, mode, needs) =
                (node.clone(), self.nodes.clone(), self.mode, Arc::clone(&self.needs));
            looking.spawn(async move {
                let found = look_at(&nodes, &node, mode, &needs).await;
                (node, found)
            });
        }
        while let Some(Ok((node, found))) = looking.join_next().await {
            match found {
                Ok(finding) => self.say(node, finding),
                Err(error) => {
                    if let Some(pass) = self.throttle.pass("flags failed", Instant::now()) {
                        tracing::warn!(%error, "a node's notification flags could not be read{pass}");
                    }
                }
            }
        }
        self.show();
    }

    fn say(&mut self, node: Node, finding: Finding) {
        if self.last.get(&node) != Some(&finding)
            && let Some(why) = finding.why(&of(&self.nodes, &node), &self.needs)
        {
            tracing::warn!("{why}");
        }
        self.last.insert(node, finding);
    }

    /// The worst of all nodes, for the metrics and the health.
    fn show(&self) {
        let Some((node, worst)) = self.last.iter().max_by_key(|(_, finding)| *finding) else { return };
        Metric::KeyspaceEventsOk.set(worst.value(), &[]);
        let others =
            self.last.values().filter(|finding| **finding != Finding::Good).count().saturating_sub(1);
        let others = if others == 0 { String::new() } else { format!(" (and {others} nodes more)") };
        let why = worst.why(&of(&self.nodes, node), &self.needs).map(|why| why + &others);
        self.health.set_degraded("notifications", why);
    }
}

/// Names a node of a cluster; the one server needs no name.
fn of(nodes: &Nodes, node: &Node) -> String {
    if *node == Node::server() { String::new() } else { format!(" of {}", nodes.place(node)) }
}

async fn look_at(nodes: &Nodes, node: &Node, mode: KeyspaceEvents, needs: &str) -> Result<Finding> {
    let Some(before) = nodes.config_get(node, SETTING).await? else { return Ok(Finding::Untold) };
    let Some(missing) = missing(&before, needs) else { return Ok(Finding::Good) };
    let after = format!("{before}{missing}");
    if mode != KeyspaceEvents::Add || !nodes.config_set(node, SETTING, &after).await? {
        return Ok(Finding::Missing(missing));
    }
    tracing::info!(before, after, "{SETTING}{}: added the flags that were missing", of(nodes, node));
    Ok(Finding::Good)
}

/// The needed flags that `flags` lacks, as `notify-keyspace-events` writes them; `None` when it has all.
#[must_use]
pub fn missing(flags: &str, needs: &str) -> Option<String> {
    let (all, classes) = ALL;
    let has = |flag: char| flags.contains(flag) || classes.contains(flag) && flags.contains(all);
    let missing: String = needs.chars().filter(|&flag| !has(flag)).collect();
    (!missing.is_empty()).then_some(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_added() {
        for (flags, needs, lacks) in [
            ("", "Ex", Some("Ex")),
            ("E", "Ex", Some("x")),
            ("Kx", "Ex", Some("E")),
            ("AKE", "Ex", None),
            ("xE", "Ex", None),
            ("AK", "Ex", Some("E")),
            ("Eg$", "Ex", Some("x")),
            ("AE", "ExKge", Some("K")),
            ("AKE", "Kgxen", Some("n")),
            ("AKE", "Km", Some("m")),
            ("KExm", "ExKge", Some("ge")),
        ] {
            assert_eq!(missing(flags, needs).as_deref(), lacks, "{flags:?} {needs:?}");
        }
    }

    #[test]
    fn the_worst_of_all_nodes_is_shown() {
        let worst = [Finding::Good, Finding::Missing("x".into()), Finding::Untold].into_iter().max();
        assert_eq!(worst.map(|finding| finding.value()), Some(0.0));
    }
}
