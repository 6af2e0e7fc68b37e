//! What keys hold, whichever nodes serve them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::watch::Found;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Nodes;
use super::touch::PAGE;
use crate::connection::by_chance;
use crate::{Error, ErrorKind, Feed, Result};

/// Before a key is asked for again that nobody serves at this moment.
const PAUSE: Duration = Duration::from_millis(100);

const DOING: &str = "read the values of keys";

impl Nodes {
    /// What keys of a database hold, in their order; of a value, at most `limit` bytes. A node is asked for 256 keys
    /// at a time, and all nodes at once.
    ///
    /// # Errors
    /// As [`Nodes::scan`], when any of the nodes fails. Nothing is changed, and it may be asked again.
    pub async fn values(&self, db: u8, keys: &[Bytes], limit: u32) -> Result<Vec<Found>> {
        let mut until = Instant::now() + self.inner().deadline();
        let mut found: Vec<Option<Found>> = vec![None; keys.len()];
        loop {
            let open: Vec<usize> = (0..keys.len()).filter(|&at| found[at].is_none()).collect();
            if open.is_empty() {
                return Ok(found.into_iter().flatten().collect());
            }
            if self.read(db, keys, &open, limit, &mut found).await? > 0 {
                until = Instant::now() + self.inner().deadline();
                continue;
            }
            // No answer of a node that serves the rest, and all were asked: the slots are on their way.
            self.inner().refresh.notify_one();
            if Instant::now() + PAUSE >= until {
                let text =
                    "nobody serves the slots of some keys: it was not done; it can be tried again soon";
                return Err(Error::new(ErrorKind::Unavailable, DOING, text));
            }
            sleep(by_chance(PAUSE)).await;
        }
    }

    /// Asks once for each key at the places `open`; answers how many were found.
    async fn read(
        &self,
        db: u8,
        keys: &[Bytes],
        open: &[usize],
        limit: u32,
        found: &mut [Option<Found>],
    ) -> Result<usize> {
        let mut places: BTreeMap<Feed, Vec<usize>> = BTreeMap::new();
        for &at in open {
            if let Some(feed) = self.feed_of(db, &keys[at]) {
                places.entry(feed).or_default().push(at);
            }
        }
        let mut reading = JoinSet::new();
        for (feed, places) in places {
            let keys: Vec<Bytes> = places.iter().map(|&at| keys[at].clone()).collect();
            let nodes = self.clone();
            reading.spawn(async move { Ok((places, nodes.values_at(&feed, &keys, limit).await?)) });
        }
        let mut read = 0;
        while let Some(ended) = reading.join_next().await {
            let ended = ended.map_err(|_| Error::new(ErrorKind::Closed, DOING, "this process is ending"));
            let (places, values) = ended??;
            for (at, value) in places.into_iter().zip(values) {
                read += usize::from(value.is_some());
                found[at] = value;
            }
        }
        Ok(read)
    }

    /// What keys of one node hold; `None` for what has to be asked again.
    async fn values_at(&self, feed: &Feed, keys: &[Bytes], limit: u32) -> Result<Vec<Option<Found>>> {
        let mut found = Vec::with_capacity(keys.len());
        for page in keys.chunks(PAGE) {
            found.extend(self.values_page(feed, page, limit).await?);
        }
        Ok(found)
    }
}
