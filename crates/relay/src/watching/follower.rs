//! Follows the feeds: each has its marker and its scanner, each node its canary, as long as it is served.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use overdue_store::Feed;
use overdue_telemetry::label::Loop;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::canary::Canary;
use super::context::Context;
use super::marker::Marker;
use super::scanner::Scanner;

/// A feed must be given a marker, a scanner must make progress, a canary must end its round within these.
const BOUND_MARK: Duration = Duration::from_secs(5);
const BOUND_SCAN: Duration = Duration::from_secs(15);
const BOUND_CANARY: Duration = Duration::from_secs(15);

/// Starts and stops the tasks of feeds.
pub(super) struct Follower {
    pub(super) context: Context,
    pub(super) tasks: TaskTracker,
}

impl Follower {
    /// Runs until `stop`; the tasks stop with it.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut feeds = self.context.looker.nodes().feeds();
        let mut running: BTreeMap<Feed, CancellationToken> = BTreeMap::new();
        loop {
            let mut wanted: BTreeSet<Feed> = feeds.borrow_and_update().clone();
            wanted.retain(|feed| self.context.looker.watches(feed));
            running.retain(|feed, token| {
                let stays = wanted.contains(feed);
                if !stays {
                    token.cancel();
                    self.context.feeds.remove(feed);
                    tracing::info!(%feed, "no longer watched: its node serves nothing now");
                }
                stays
            });
            for feed in wanted {
                running.entry(feed).or_insert_with_key(|feed| {
                    let token = stop.child_token();
                    self.begin(feed, &token);
                    token
                });
            }
            tokio::select! {
                () = stop.cancelled() => return,
                changed = feeds.changed() => if changed.is_err() { return },
            }
        }
    }

    fn begin(&self, feed: &Feed, stop: &CancellationToken) {
        let (context, state) = (&self.context, self.context.feeds.of(feed));
        let enter = |kind, of: &str, bound| context.health.register(kind, of, bound);
        let label = feed.to_string();
        let progress = enter(Loop::Mark, &label, BOUND_MARK);
        self.tasks
            .spawn(Marker { context: context.clone(), state: state.clone(), progress }.run(stop.clone()));
        let progress = enter(Loop::Scan, &label, BOUND_SCAN);
        self.tasks
            .spawn(Scanner { context: context.clone(), state: state.clone(), progress }.run(stop.clone()));
        if context.looker.rules().dbs().first() == Some(&feed.db) {
            let progress = enter(Loop::Canary, feed.node.as_str(), BOUND_CANARY);
            self.tasks.spawn(Canary { context: context.clone(), state, progress }.run(stop.clone()));
        }
    }
}
