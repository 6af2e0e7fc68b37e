//! A lane settles what the reader heard, in batches, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::QueueName;
use overdue_protocol::watch::Seen;
use overdue_store::{Backoff, ErrorKind, Feed, Node};
use overdue_telemetry::Progress;
use overdue_watch::{Ask, Fire, Looked};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::detour::Late;
use super::outcomes;
use super::queue::{Batch, Queue};

/// An idle lane says so this often.
const IDLE: Duration = Duration::from_secs(1);
/// How long a batch is tried again that others must not wait for: one that needs rights, or looks at one of several
/// nodes.
const PATIENCE: Duration = Duration::from_secs(5);

/// One lane. All events of one key take the same one.
pub(super) struct Lane {
    pub(super) context: Context,
    pub(super) queue: Arc<Queue>,
    pub(super) progress: Progress,
    pub(super) stop: CancellationToken,
    /// In a cluster, where to put what has to wait for a node that is down. A detour has none itself.
    pub(super) detour: Option<Arc<Queue>>,
}

/// A batch, or a part of it, is not settled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// It took too long, or the process stops.
    Late,
    /// The node serves nothing any more.
    Moved,
    /// Redis will not do it, however often it is asked.
    Refused,
}

impl Lane {
    /// Runs until its queue is closed and empty; after `stop`, until something fails.
    pub(super) async fn run(self) {
        let lane = Arc::new(self);
        let mut late = Late::new();
        lane.work(&mut late).await;
        // After the stop nothing is tried again.
        let _ = timeout(PATIENCE, async { while late.join_next().await.is_some() {} }).await;
        drop(late);
        if let Some(lane) = Arc::into_inner(lane) {
            lane.progress.retire();
        }
    }

    async fn work(self: &Arc<Self>, late: &mut Late) {
        loop {
            let batch = match timeout(IDLE, self.queue.take()).await {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(_) => {
                    self.progress.succeed();
                    continue;
                }
            };
            let settled = match &self.detour {
                Some(detour) => self.settle_apart(detour, batch, late).await,
                None => {
                    let settled = self.settle(batch).await;
                    self.answered();
                    settled
                }
            };
            if settled.is_err() && self.stop.is_cancelled() {
                break;
            }
        }
    }

    pub(super) fn answered(&self) {
        self.queue.answered();
        self.context.met.renew();
    }

    pub(super) async fn settle(&self, batch: Batch) -> Result<(), GivenUp> {
        let mut settled = self.fire(batch.fires).await;
        for (feed, asks) in batch.looks {
            settled = self.look(feed, asks).await.and(settled);
        }
        settled
    }

    async fn fire(&self, fires: Vec<Fire>) -> Result<(), GivenUp> {
        if fires.is_empty() {
            return Ok(());
        }
        let looker = &self.context.looker;
        // An event is the only proof of its expiry: it is not given up because Redis is away.
        let why = match self.repeat(None, || false, || looker.fire(fires.clone())).await {
            Ok(outcomes) => {
                outcomes::fired(&fires, &outcomes);
                return Ok(());
            }
            Err(why) => why,
        };
        let dbs: BTreeSet<u8> = fires.iter().map(|fire| fire.key.db).collect();
        if let (GivenUp::Refused, Some(parts)) = (why, by_queue(fires, |fire| &fire.rule.queue)) {
            let mut settled = Ok(());
            for part in parts {
                settled = Box::pin(self.fire(part)).await.and(settled);
            }
            return settled;
        }
        for state in self.context.feeds.all().iter().filter(|state| dbs.contains(&state.feed.db)) {
            self.context.give_up(&state.feed, why == GivenUp::Late);
        }
        Err(why)
    }

    /// Looks, and once more at what another node serves by now.
    async fn look(&self, feed: Feed, asks: Vec<Ask>) -> Result<(), GivenUp> {
        for (feed, asks) in self.look_at(feed, asks).await? {
            // What has moved on again meanwhile is found by the SCAN of the node that it moved to.
            self.look_at(feed, asks).await?;
        }
        Ok(())
    }

    async fn look_at(&self, feed: Feed, asks: Vec<Ask>) -> Result<BTreeMap<Feed, Vec<Ask>>, GivenUp> {
        let looker = &self.context.looker;
        let patience = (feed.node != Node::server()).then_some(PATIENCE);
        let mut moved: BTreeMap<Feed, Vec<Ask>> = BTreeMap::new();
        let put_where_it_is = |ask: Ask| match looker.nodes().feed_of(feed.db, &ask.key) {
            Some(now) if now != feed => moved.entry(now).or_default().push(ask),
            _ => {}
        };
        let feeds = looker.nodes().feeds();
        let is_gone = || !feeds.borrow().contains(&feed);
        let looked = match self.repeat(patience, is_gone, || looker.look(&feed, asks.clone())).await {
            Ok(looked) => looked,
            Err(GivenUp::Moved) => {
                asks.into_iter().for_each(put_where_it_is);
                return Ok(moved);
            }
            Err(why) => {
                if let (GivenUp::Refused, Some(parts)) = (why, by_queue(asks, |ask| &ask.rule.queue)) {
                    for part in parts {
                        moved.extend(Box::pin(self.look_at(feed.clone(), part)).await.unwrap_or_default());
                    }
                    return Ok(moved);
                }
                self.context.give_up(&feed, why == GivenUp::Late);
                return Err(why);
            }
        };
        outcomes::looked(&looked);
        let elsewhere = looked.into_iter().filter(|one| one.seen == Seen::Elsewhere);
        elsewhere.map(|Looked { ask, .. }| ask).for_each(put_where_it_is);
        Ok(moved)
    }

    /// Calls until it works, or it is given up: after `stop`, after `patience`, when there is nobody to call any more,
    /// or because it never will.
    async fn repeat<T, F>(
        &self,
        patience: Option<Duration>,
        is_gone: impl Fn() -> bool,
        call: impl Fn() -> F,
    ) -> Result<T, GivenUp>
    where
        F: Future<Output = overdue_store::Result<T>>,
    {
        let begun = Instant::now();
        let mut backoff = Backoff::default();
        loop {
            let error = match call().await {
                Ok(answer) => {
                    self.progress.succeed();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            self.progress.fail(error.kind().as_str());
            let given_up = match error.kind() {
                _ if self.stop.is_cancelled() => Some(GivenUp::Late),
                _ if is_gone() => Some(GivenUp::Moved),
                _ if error.is_retryable() => {
                    patience.filter(|&for_| begun.elapsed() >= for_).map(|_| GivenUp::Late)
                }
                // Rights are given while we run.
                ErrorKind::Refused => (begun.elapsed() >= PATIENCE).then_some(GivenUp::Refused),
                _ => Some(GivenUp::Refused),
            };
            if let Some(pass) = self.context.throttle.pass("settle failed", std::time::Instant::now()) {
                let given_up = given_up.is_some();
                tracing::warn!(%error, given_up, "what was heard of watched keys is not settled{pass}");
            }
            if let Some(why) = given_up {
                return Err(why);
            }
            self.stop.run_until_cancelled(sleep(backoff.next_wait())).await;
        }
    }
}

/// What is of several queues, one by one: what is wrong with one must not cost the others. `None` when it is of one.
fn by_queue<T>(items: Vec<T>, queue: impl Fn(&T) -> &QueueName) -> Option<Vec<Vec<T>>> {
    let mut parts: BTreeMap<QueueName, Vec<T>> = BTreeMap::new();
    for item in items {
        parts.entry(queue(&item).clone()).or_default().push(item);
    }
    (parts.len() > 1).then(|| parts.into_values().collect())
}
