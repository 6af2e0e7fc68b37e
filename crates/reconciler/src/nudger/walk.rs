//! A walk over the watched keys of a flushed database: what is gone before its due has not expired, and is dropped.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::Partition;
use overdue_protocol::call::SettledWord;
use overdue_protocol::watch::{Seen, WatchedKey};
use overdue_store::{Backoff, Feed, Result};
use overdue_telemetry::Metric;
use overdue_watch::{Ask, Looker};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::rule_of;

const PAGE: usize = 256;
/// Between two pages: a walk must not crowd out firing.
const PACE: Duration = Duration::from_millis(5);
/// What is due within this is left to the nudge: the clocks of the index and of the key's node may differ.
const MARGIN_MS: u64 = 1_000;
/// A walk that gets no further for so long is given up; nudges find the rest when it is due.
const PATIENCE: Duration = Duration::from_secs(60);

/// Walks over all partitions, until the end or `stop`.
pub(super) async fn over(looker: &Looker, feed: &Feed, stop: &CancellationToken) {
    let mut dropped = 0;
    for partition in looker.partitions() {
        let mut walk = Walk { looker, feed, partition, dropped: 0, behind: None };
        if let Err(error) = walk.run(stop).await {
            tracing::warn!(%feed, %error, "the walk over a flushed database was given up; nudges find the rest");
        }
        dropped += walk.dropped;
    }
    tracing::info!(%feed, dropped, "walked over the watched keys of a flushed database");
}

struct Walk<'a> {
    looker: &'a Looker,
    feed: &'a Feed,
    partition: Partition,
    dropped: u64,
    /// What was read last.
    behind: Option<(u64, Bytes)>,
}

impl Walk<'_> {
    async fn run(&mut self, stop: &CancellationToken) -> Result<()> {
        let mut backoff = Backoff::default();
        let mut until = Instant::now() + PATIENCE;
        // Keys that live are moved behind us for ever; each of those that were there is met once.
        let mut pages = None;
        while !stop.is_cancelled() && pages != Some(0) {
            match self.page(&mut pages).await {
                Ok(()) => {
                    backoff.reset();
                    until = Instant::now() + PATIENCE;
                    sleep(PACE).await;
                }
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => sleep(backoff.next_wait()).await,
            }
        }
        Ok(())
    }

    async fn page(&mut self, pages: &mut Option<usize>) -> Result<()> {
        let store = self.looker.store();
        let from_ms = store.time_ms().await? + MARGIN_MS;
        let left = match *pages {
            Some(left) => left,
            None => store.watched_depth(&self.partition).await? as usize / PAGE + 1,
        };
        *pages = Some(left);
        let behind = self.behind.clone().filter(|(due_ms, _)| *due_ms >= from_ms);
        let behind = behind.unwrap_or((from_ms, Bytes::new()));
        let page = store.watched_page(&self.partition, Some(behind), None, PAGE).await?;
        let ask = |(member, _): &(Bytes, u64)| {
            let key = WatchedKey::parse(member).filter(|key| key.db == self.feed.db)?;
            let rule = Arc::clone(rule_of(self.looker, &self.partition, &key)?);
            let ours = self.looker.nodes().feed_of(key.db, &key.key).as_ref() == Some(self.feed);
            ours.then_some(Ask { key: key.key, rule, removal: true })
        };
        let asks: Vec<_> = page.iter().filter_map(ask).collect();
        if !asks.is_empty() {
            let looked = self.looker.look(self.feed, asks).await?;
            let gone = looked.iter().filter(|l| l.seen == Seen::Gone && l.word == Some(SettledWord::Ok));
            let gone = gone.count() as u64;
            Metric::FlushDropped.count(gone, &[&self.feed.to_string()]);
            self.dropped += gone;
        }
        *pages = Some(if page.len() < PAGE { 0 } else { left - 1 });
        self.behind = page.into_iter().next_back().map(|(member, due_ms)| (due_ms, member));
        Ok(())
    }
}
