//! How much memory the nodes use, and may use: a node at its limit takes no more timers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use overdue_store::{Backoff, ErrorKind, Node, Nodes, Result};
use overdue_telemetry::label::Loop;
use overdue_telemetry::{Health, Metric, Progress, Throttle};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);
/// Without a look for so long the process is not ready. It is long: no timer waits for this.
const BOUND: Duration = Duration::from_secs(300);

/// Reads the memory of every node for the metrics.
pub struct Memory {
    nodes: Nodes,
    progress: Progress,
    throttle: Throttle,
    /// The nodes that have told.
    told: BTreeSet<Node>,
}

impl Memory {
    /// Nothing is read before [`Memory::run`].
    #[must_use]
    pub fn new(nodes: Nodes, health: &Health) -> Self {
        let progress = health.register(Loop::Memory, "", BOUND);
        Self { nodes, progress, throttle: Throttle::default(), told: BTreeSet::new() }
    }

    /// Looks every 10 s until `stop`; sooner after a failure.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut backoff = Backoff::default();
        loop {
            let wait = if self.look().await {
                backoff.reset();
                EVERY
            } else {
                backoff.next_wait()
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(wait) => {}
            }
        }
        self.progress.retire();
    }

    /// False when a node did not answer. One that does not answer, does not tell, or is no more has no numbers: old
    /// ones would lie.
    async fn look(&mut self) -> bool {
        let nodes: BTreeSet<Node> =
            self.nodes.feeds().borrow().iter().map(|feed| feed.node.clone()).collect();
        let mut failed = None;
        let mut told = BTreeSet::new();
        for node in nodes {
            match read(&self.nodes, &node).await {
                Ok(Some((used, most))) => {
                    Metric::RedisMemoryUsed.set(used, &[node.as_str()]);
                    Metric::RedisMemoryMax.set(most, &[node.as_str()]);
                    told.insert(node);
                }
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        for node in self.told.difference(&told) {
            Metric::RedisMemoryUsed.clear(&[node.as_str()]);
            Metric::RedisMemoryMax.clear(&[node.as_str()]);
        }
        self.told = told;
        match failed {
            None => {
                self.progress.succeed();
                true
            }
            Some(error) => {
                self.progress.fail(error.kind().as_str());
                if let Some(pass) = self.throttle.pass("memory failed", Instant::now()) {
                    tracing::warn!(%error, "a node's memory could not be read{pass}");
                }
                false
            }
        }
    }
}

/// Bytes in use, and the most; `None` when the node does not tell.
async fn read(nodes: &Nodes, node: &Node) -> Result<Option<(f64, f64)>> {
    let info = match nodes.info(node, "memory").await {
        Ok(info) => info,
        Err(error) if error.kind() == ErrorKind::Refused => return Ok(None),
        Err(error) => return Err(error),
    };
    let number = |name: &str| info.get(name).and_then(|value| value.parse::<f64>().ok());
    Ok(number("used_memory").zip(number("maxmemory")))
}
