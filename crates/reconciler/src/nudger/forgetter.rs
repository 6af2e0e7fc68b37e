//! Forgets names and looks of watched keys that nothing under way can need, once a second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use overdue_protocol::Partition;
use overdue_protocol::call::Forget;
use overdue_store::{Backoff, Feed, Result};
use overdue_telemetry::{Metric, Progress};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Watching;
use crate::Shared;

/// Between two passes.
const EVERY: Duration = Duration::from_secs(1);
/// How far behind the last answered marker names are kept, microseconds (W of PROTOCOL.md section 5).
const KEPT_US: u64 = 10_000_000;
/// The most of each set that one call forgets.
const PAGE: u32 = 1_000;
/// The longest that one partition is worked on in a pass: forgetting must not crowd out firing.
const TURN: Duration = Duration::from_millis(200);

/// Runs until `stop`.
pub(super) async fn run(shared: Shared, watching: Watching, progress: Progress, stop: CancellationToken) {
    let partitions = watching.looker.partitions();
    let feeds = watching.looker.nodes().feeds();
    let mut backoff = Backoff::default();
    loop {
        // Nobody listens to a database without a rule.
        let watched = feeds.borrow().iter().filter(|feed| watching.looker.watches(feed)).cloned().collect();
        let upto = upto(&watched, &watching.mets.borrow());
        let wait = match forget(&shared, &partitions, upto, &stop).await {
            Ok(()) => {
                backoff.reset();
                // Without a marker of every node nothing may be forgotten: that must not go on for long.
                if upto.is_some() {
                    progress.succeed();
                } else {
                    progress.beat();
                }
                EVERY
            }
            Err(error) => {
                progress.fail(error.kind().as_str());
                if let Some(pass) = shared.throttle.pass("forget failed", std::time::Instant::now()) {
                    tracing::warn!(%error, "old names of watched keys could not be forgotten{pass}");
                }
                EVERY.max(backoff.next_wait())
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = sleep(wait) => {}
        }
    }
    progress.retire();
}

/// Up to which position names may be forgotten: what every feed has answered long ago. `None` while a feed has not.
fn upto(feeds: &BTreeSet<Feed>, mets: &BTreeMap<Feed, u64>) -> Option<u64> {
    let mut least: Option<u64> = None;
    for feed in feeds {
        let met = *mets.get(feed)?;
        least = Some(least.map_or(met, |least| least.min(met)));
    }
    least.map(|met| met.saturating_sub(KEPT_US))
}

async fn forget(
    shared: &Shared,
    partitions: &[Partition],
    upto: Option<u64>,
    stop: &CancellationToken,
) -> Result<()> {
    let Some(upto) = upto else { return Ok(()) };
    for partition in partitions {
        let call = Forget { partition: partition.clone(), upto, limit: PAGE };
        let until = Instant::now() + TURN;
        while !stop.is_cancelled() {
            let forgot = shared.store.run(&call).await?;
            Metric::Forgotten.count(forgot.removed.into(), &[partition.queue().as_str()]);
            if !forgot.more || Instant::now() >= until {
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use overdue_store::Node;

    use super::*;

    #[test]
    fn nothing_is_forgotten_that_any_node_may_still_speak_of() {
        let feed = |db| Feed { node: Node::server(), db };
        let feeds = BTreeSet::from([feed(0), feed(3)]);
        let mut mets = BTreeMap::from([(feed(0), 50_000_000), (feed(9), 1)]);
        assert_eq!(upto(&feeds, &mets), None, "a feed without a marker");
        mets.insert(feed(3), 30_000_000);
        assert_eq!(upto(&feeds, &mets), Some(20_000_000), "the slowest counts, and feeds of no rule don't");
        mets.insert(feed(3), 5);
        assert_eq!(upto(&feeds, &mets), Some(0));
        assert_eq!(upto(&BTreeSet::new(), &mets), None);
    }
}
