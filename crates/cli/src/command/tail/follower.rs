//! Follows the stream of one partition.

use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Partition, QueueName};
use overdue_store::{Error, Reader};
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;
use tracing::warn;

use super::line::Line;
use crate::command::pages::limit_after;
use crate::command::place::{Place, ROLE};

/// How long one read waits for something to fire.
const BLOCK: Duration = Duration::from_secs(5);
/// The pause after a failed read: it doubles, up to the second, half of it at random.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The first page: how large the payloads are is not known yet.
const FIRST: usize = 8;

/// Reads one stream on a connection of its own, from where it was put.
pub(super) struct Follower {
    reader: Reader,
    queue: QueueName,
    partition: u32,
    stream: Bytes,
    after: EntryId,
}

impl Follower {
    /// Connects. It begins with the `oldest` entry, or behind the newest.
    pub(super) async fn open(place: &Place, partition: &Partition, oldest: bool) -> Result<Self, Error> {
        let stream = partition.stream();
        let after = match oldest {
            true => EntryId::ZERO,
            false => {
                place.store.last_entries(&stream, 1).await?.first().map_or(EntryId::ZERO, |entry| entry.id)
            }
        };
        let reader = Reader::open(place.store.settings(), ROLE).await?;
        Ok(Self { reader, queue: place.queue.clone(), partition: partition.number(), stream, after })
    }

    /// Reads on and on. What Redis can't do now is tried again for ever, with growing pauses; each failure is said.
    ///
    /// # Errors
    /// A failure that does not pass by itself.
    pub(super) async fn run(mut self, lines: Sender<Vec<Line>>) -> Result<(), Error> {
        let (mut count, mut pause) = (FIRST, PAUSE.0);
        loop {
            match self.reader.follow(&self.stream, &self.after, count, BLOCK).await {
                Ok(page) => {
                    pause = PAUSE.0;
                    let Some(last) = page.last() else { continue };
                    self.after = last.id;
                    count = limit_after(count, &page);
                    let page =
                        page.iter().map(|entry| Line::new(&self.queue, self.partition, entry)).collect();
                    if lines.send(page).await.is_err() {
                        return Ok(());
                    }
                }
                Err(error) if error.is_retryable() => {
                    warn!(%error, "reading again soon");
                    sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
