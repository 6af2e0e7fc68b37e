//! Members of the index that are no keys of our rules: another relay may have a rule for them, or had one.
//!
//! They stay where they are. When one is overdue for long, nobody works on it: it is touched and, if its key is gone,
//! removed and counted. It never fires: no rule says how.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::Partition;
use overdue_protocol::watch::WatchedKey;
use overdue_store::{Error, Feed, Result};
use overdue_watch::Looker;
use tokio::time::Instant;

use super::Watching;
use super::metrics::Metrics;

/// How long a relay with a rule for it may be away, milliseconds.
const PATIENCE_MS: u64 = 60_000;
/// Between two turns that touch them.
const EVERY: Duration = Duration::from_secs(10);

/// The strays of one partition.
pub(super) struct Strays {
    looker: Looker,
    partition: Partition,
    next: Instant,
    /// How many this turn has met.
    met: u64,
}

impl Strays {
    pub(super) fn new(watching: &Watching, partition: &Partition) -> Self {
        let (looker, partition) = (watching.looker.clone(), partition.clone());
        Self { looker, partition, next: Instant::now(), met: 0 }
    }

    /// Removes those of a page that nobody works on and that are gone; answers how many. Only a turn that reads all does.
    pub(super) async fn clear(
        &mut self,
        now_ms: u64,
        strays: Vec<(Bytes, u64)>,
        whole: bool,
        metrics: &Metrics,
    ) -> u32 {
        self.met += strays.len() as u64;
        if !whole || Instant::now() < self.next {
            return 0;
        }
        let (removed, error) = self.remove(now_ms, strays).await;
        metrics.strays_removed.increment(removed.into());
        self.met = self.met.saturating_sub(removed.into());
        let queue = self.partition.queue();
        if removed > 0 {
            tracing::warn!(%queue, removed, "removed keys from the index that are gone and that no rule here matches");
        }
        if let Some(error) = error {
            // They can wait: our own keys can not.
            self.next = Instant::now() + EVERY;
            tracing::warn!(%queue, %error, "could not look at keys in the index that no rule here matches");
        }
        removed
    }

    async fn remove(&self, now_ms: u64, strays: Vec<(Bytes, u64)>) -> (u32, Option<Error>) {
        let mut no_keys = vec![];
        let mut gone: BTreeMap<Feed, Vec<Bytes>> = BTreeMap::new();
        for (member, due_ms) in strays {
            if due_ms + PATIENCE_MS >= now_ms {
                continue;
            }
            match WatchedKey::parse(&member) {
                None => no_keys.push(member),
                Some(key) => {
                    // Keys of databases that we do not look at stay.
                    if let Some(feed) = self.looker.nodes().feed_of(key.db, &key.key)
                        && self.looker.rules().dbs().contains(&key.db)
                    {
                        gone.entry(feed).or_default().push(key.key);
                    }
                }
            }
        }
        let (mut removed, mut failed) = (0, None);
        let mut add = |result: Result<u32>| match result {
            Ok(count) => removed += count,
            Err(error) => failed = Some(error),
        };
        if !no_keys.is_empty() {
            add(self.looker.store().remove_watched(&self.partition, &no_keys).await);
        }
        for (feed, keys) in gone {
            add(self.looker.untrack(&self.partition, &feed, keys).await);
        }
        (removed, failed)
    }

    /// The turn is over; answers how many strays there are, if it has read all.
    pub(super) fn finish(&mut self, whole: bool) -> Option<u64> {
        let met = std::mem::take(&mut self.met);
        if whole && Instant::now() >= self.next {
            self.next = Instant::now() + EVERY;
        }
        whole.then_some(met)
    }
}
