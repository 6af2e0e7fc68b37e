//! What waits for a lane: fires in their order, and looks, of which a key needs no more than one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::watch::Rule;
use overdue_store::Feed;
use overdue_watch::{Ask, Fire};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The most fires, and the most looks, in one batch. Small batches cost Redis five times as much.
pub(super) const PAGE: usize = 256;
/// How long a batch with a fire waits for more.
const GATHER_FIRES: Duration = Duration::from_millis(1);
/// How long a batch of looks waits for more: nobody waits for them.
const GATHER_LOOKS: Duration = Duration::from_millis(5);
/// So many bytes of names may wait: they may be long.
const BYTES: usize = 16 * 1024 * 1024;

/// One lane's. The reader puts in, the lane takes out.
pub(super) struct Queue {
    inner: Mutex<Inner>,
    /// There is something; there is a fire; a page is full; it is closed.
    ripe: Notify,
    fires_max: usize,
    looks_max: usize,
}

#[derive(Default)]
struct Inner {
    fires: VecDeque<(u64, Fire)>,
    looks: HashMap<(Feed, Bytes), Pending>,
    /// The looks by their sequence numbers.
    order: VecDeque<(u64, Feed, Bytes)>,
    bytes: usize,
    /// The oldest of the batch in the lane's hands.
    taken: Option<u64>,
    /// The oldest of each batch that is not answered and that the lane does not wait for.
    late: Vec<u64>,
    closed: bool,
}

struct Pending {
    rule: Arc<Rule>,
    removal: bool,
}

/// What is settled at once.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) fires: Vec<Fire>,
    pub(super) looks: BTreeMap<Feed, Vec<Ask>>,
    /// The lowest sequence number.
    pub(super) oldest: u64,
}

/// What became of something that was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It waits.
    Waits,
    /// Its key waits for a look already; that look is enough.
    Merged,
    /// There is no room: it was dropped.
    Full,
}

impl Queue {
    pub(super) fn new(fires_max: usize, looks_max: usize) -> Self {
        Self { inner: Mutex::default(), ripe: Notify::new(), fires_max, looks_max }
    }

    /// Adds a fire. Sequence numbers rise over all lanes.
    pub(super) fn put_fire(&self, sequence: u64, fire: Fire) -> Put {
        let mut inner = self.lock();
        let size = fire.key.key.len();
        if inner.fires.len() >= self.fires_max || inner.is_heavy(size) {
            return Put::Full;
        }
        inner.bytes += size;
        inner.fires.push_back((sequence, fire));
        if inner.fires.len() == 1 || inner.fires.len() == PAGE {
            self.ripe.notify_one();
        }
        Put::Waits
    }

    /// Adds a look. A key that waits for one keeps its place. Removed once, it counts as removed: what was written
    /// since may have ended too.
    pub(super) fn put_look(&self, sequence: u64, feed: &Feed, ask: Ask) -> Put {
        let mut inner = self.lock();
        let place = (feed.clone(), ask.key);
        if let Some(pending) = inner.looks.get_mut(&place) {
            pending.removal |= ask.removal;
            return Put::Merged;
        }
        let size = place.1.len();
        if inner.looks.len() >= self.looks_max || inner.is_heavy(size) {
            return Put::Full;
        }
        inner.bytes += size;
        inner.order.push_back((sequence, place.0.clone(), place.1.clone()));
        inner.looks.insert(place, Pending { rule: ask.rule, removal: ask.removal });
        if inner.looks.len() == 1 && inner.fires.is_empty() || inner.looks.len() == PAGE {
            self.ripe.notify_one();
        }
        Put::Waits
    }

    /// Waits for something, and a moment for more; `None` when all is taken and the queue is closed. What is taken
    /// counts as unanswered until [`Queue::answered`]. Nothing is lost when the wait is dropped.
    pub(super) async fn take(&self) -> Option<Batch> {
        let mut first = None;
        loop {
            let (fires, looks, closed) = {
                let inner = self.lock();
                (inner.fires.len(), inner.looks.len(), inner.closed)
            };
            if fires >= PAGE || looks >= PAGE || closed && fires + looks > 0 {
                break;
            }
            if closed {
                return None;
            }
            let gather = match (fires, looks) {
                (0, 0) => {
                    self.ripe.notified().await;
                    continue;
                }
                (0, _) => GATHER_LOOKS,
                _ => GATHER_FIRES,
            };
            let until = *first.get_or_insert_with(Instant::now) + gather;
            tokio::select! {
                () = self.ripe.notified() => {}
                () = sleep_until(until) => break,
            }
        }
        Some(self.lock().take())
    }

    /// What was taken is settled, or given up.
    pub(super) fn answered(&self) {
        self.lock().taken = None;
    }

    /// What was taken takes long: the next batch may be taken, and [`Queue::answered_late`] is to be told of this one.
    pub(super) fn is_late(&self) {
        let mut inner = self.lock();
        let taken = inner.taken.take();
        inner.late.extend(taken);
    }

    /// A batch that was late is settled, or given up.
    pub(super) fn answered_late(&self, oldest: u64) {
        let mut inner = self.lock();
        if let Some(at) = inner.late.iter().position(|&late| late == oldest) {
            inner.late.swap_remove(at);
        }
    }

    /// The oldest that is not answered.
    pub(super) fn oldest(&self) -> Option<u64> {
        let inner = self.lock();
        let fire = inner.fires.front().map(|(sequence, _)| *sequence);
        let look = inner.order.front().map(|(sequence, ..)| *sequence);
        inner.late.iter().copied().chain([fire, look, inner.taken].into_iter().flatten()).min()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        let inner = self.lock();
        inner.fires.len() + inner.looks.len()
    }

    /// Nothing more is put in.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ripe.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether one more of this size is too much. One is always taken, however long.
    fn is_heavy(&self, size: usize) -> bool {
        self.bytes > 0 && self.bytes + size > BYTES
    }

    fn take(&mut self) -> Batch {
        let mut batch = Batch::default();
        let mut oldest = u64::MAX;
        for (sequence, fire) in self.fires.drain(..self.fires.len().min(PAGE)) {
            oldest = oldest.min(sequence);
            self.bytes -= fire.key.key.len();
            batch.fires.push(fire);
        }
        for _ in 0..PAGE {
            let Some((sequence, feed, key)) = self.order.pop_front() else { break };
            let place = (feed, key);
            let Some(Pending { rule, removal }) = self.looks.remove(&place) else { continue };
            let (feed, key) = place;
            oldest = oldest.min(sequence);
            self.bytes -= key.len();
            batch.looks.entry(feed).or_default().push(Ask { key, rule, removal });
        }
        // A storm's memory goes back when it is over.
        if self.fires.is_empty() && self.looks.is_empty() {
            self.fires.shrink_to(PAGE);
            self.looks.shrink_to(PAGE);
            self.order.shrink_to(PAGE);
        }
        self.taken = Some(oldest);
        batch.oldest = oldest;
        batch
    }
}

#[cfg(test)]
mod tests;
