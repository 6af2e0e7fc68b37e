//! In a cluster one node that is down, or hangs, must not hold up the keys of the others. What has to wait for a node
//! that is known to be down goes to another lane, the detour; and a batch that takes long is not waited for.
//!
//! So batches of one key may be settled in another order than they were heard in. Their positions make that right, as
//! between two relays, which do not wait for each other either.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::watch::Rule;
use overdue_store::{Feed, Node};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lane::{GivenUp, Lane};
use super::queue::{Batch, Put, Queue};

/// How long a batch is waited for.
const TURN: Duration = Duration::from_millis(250);
/// So many batches may be late; then the lane waits for one of them.
const LATE_MAX: usize = 32;

/// The batches that a lane no longer waits for.
pub(super) type Late = JoinSet<()>;

impl Lane {
    /// Settles a batch, each node's part for itself.
    pub(super) async fn settle_apart(
        self: &Arc<Self>,
        detour: &Queue,
        batch: Batch,
        late: &mut Late,
    ) -> Result<(), GivenUp> {
        let oldest = batch.oldest;
        let mut parts = JoinSet::new();
        for part in self.divide(detour, batch) {
            let lane = Arc::clone(self);
            parts.spawn(async move { lane.settle(part).await });
        }
        if let Ok(settled) = timeout(TURN, all(&mut parts)).await {
            self.answered();
            return settled;
        }
        self.queue.is_late();
        let lane = Arc::clone(self);
        late.spawn(async move {
            // What became of it is said and counted where it was settled.
            let _ = all(&mut parts).await;
            lane.queue.answered_late(oldest);
            lane.context.met.renew();
        });
        while late.try_join_next().is_some() || late.len() >= LATE_MAX && late.join_next().await.is_some() {}
        Ok(())
    }

    /// What can be settled now: the fires, and the looks at each node. The rest goes to the detour.
    fn divide(&self, detour: &Queue, mut batch: Batch) -> Vec<Batch> {
        let nodes = self.context.looker.nodes();
        if !nodes.feeds().borrow().iter().all(|feed| nodes.is_up(&feed.node)) {
            self.put_aside(detour, &mut batch);
        }
        let part = |looks| Batch { fires: vec![], looks, oldest: batch.oldest };
        let mut parts: Vec<_> = batch.looks.into_iter().map(|looks| part(BTreeMap::from([looks]))).collect();
        if !batch.fires.is_empty() {
            parts.push(Batch { fires: batch.fires, ..part(BTreeMap::new()) });
        }
        parts
    }

    /// Moves what has to wait for a node that is down.
    fn put_aside(&self, detour: &Queue, batch: &mut Batch) {
        let looker = self.context.looker.clone();
        let nodes = looker.nodes();
        let is_up = |node: &Node| nodes.is_up(node);
        let home = |db: u8, key: &[u8]| nodes.feed_of(db, key).filter(|feed| is_up(&feed.node));
        let has_index =
            |db: u8, rule: &Rule, key: &[u8]| home(db, &looker.partition_of(rule, key).watched()).is_some();
        let mut dropped = vec![];
        let mut put = |feed: Option<Feed>, put: Put| dropped.extend(feed.filter(|_| put == Put::Full));
        batch.fires.retain(|fire| {
            let (db, key) = (fire.key.db, &fire.key.key);
            let stays = has_index(db, &fire.rule, key);
            if !stays {
                put(nodes.feed_of(db, key), detour.put_fire(batch.oldest, fire.clone()));
            }
            stays
        });
        for (feed, asks) in &mut batch.looks {
            let node_is_up = is_up(&feed.node);
            asks.retain(|ask| {
                let stays = node_is_up && has_index(feed.db, &ask.rule, &ask.key);
                if !stays {
                    put(Some(feed.clone()), detour.put_look(batch.oldest, feed, ask.clone()));
                }
                stays
            });
        }
        batch.looks.retain(|_, asks| !asks.is_empty());
        dropped.sort();
        dropped.dedup();
        // There is no more room. SCAN finds what is alive, and nudges what was known.
        dropped.iter().for_each(|feed| self.context.give_up(feed, true));
    }
}

/// Waits for all parts; an error when one of them has failed. May be dropped and called again.
async fn all(parts: &mut JoinSet<Result<(), GivenUp>>) -> Result<(), GivenUp> {
    let mut settled = Ok(());
    while let Some(part) = parts.join_next().await {
        settled = part.unwrap_or(Err(GivenUp::Late)).and(settled);
    }
    settled
}
