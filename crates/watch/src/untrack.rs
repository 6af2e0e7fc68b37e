//! Removing keys from the index that no rule matches.

use bytes::Bytes;
use overdue_protocol::Partition;
use overdue_protocol::call::{SettleItem, SettleOp, SettledWord, Sight};
use overdue_protocol::watch::{Seen, WatchedKey};
use overdue_store::{Capture, Feed, Result};

use crate::Looker;
use crate::looker::PAGE;

impl Looker {
    /// Touches keys of one feed that stand in the index of `partition` and that no rule matches, and removes those that
    /// are gone; answers how many. Nothing fires, and those that live stay as they were found.
    ///
    /// # Errors
    /// Redis does not answer, or refuses. It may be repeated.
    pub async fn untrack(&self, partition: &Partition, feed: &Feed, keys: Vec<Bytes>) -> Result<u32> {
        let mut removed = 0;
        for page in keys.chunks(PAGE) {
            let touched = self.nodes().touch(feed, page, Capture::NONE).await?;
            let gone =
                page.iter().zip(&touched.seen).filter(|(_, seen)| matches!(seen, Seen::Gone | Seen::Proven));
            let item = |(key, _): (&Bytes, &Seen)| SettleItem {
                key: WatchedKey { db: feed.db, key: key.clone() },
                // Stands in no entry: nothing fires.
                rule: partition.queue().clone(),
                position: touched.position,
                op: SettleOp::Look { found: Sight::Gone, removal: true, captured: None },
            };
            let items = gone.map(|one| (partition, item(one))).collect();
            let words = self.settle(items).await?;
            removed += words.iter().filter(|(word, ..)| *word == SettledWord::Ok).count() as u32;
        }
        Ok(removed)
    }
}
