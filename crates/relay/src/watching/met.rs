//! How far every notification is settled: for each feed the last marker whose batch, and all before it on all lanes,
//! is answered.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use overdue_store::Feed;
use overdue_watch::Mets;
use tokio::sync::watch;

use super::queue::Queue;

/// The most markers of one feed that wait; then the newest take each other's place, which makes it coarser.
const MARKERS: usize = 1024;

/// The reader brings the markers, the lanes say when they have answered.
pub(super) struct Met {
    queues: Vec<Arc<Queue>>,
    waiting: Mutex<HashMap<Feed, Line>>,
    published: watch::Sender<BTreeMap<Feed, u64>>,
}

struct Line {
    /// What comes before it has lower sequence numbers than the first; its position is the second.
    markers: VecDeque<(u64, u64)>,
    moved: Instant,
}

impl Met {
    pub(super) fn new(queues: Vec<Arc<Queue>>) -> Self {
        Self { queues, waiting: Mutex::default(), published: watch::Sender::default() }
    }

    /// What is published.
    pub(super) fn mets(&self) -> Mets {
        self.published.subscribe()
    }

    /// A marker was met; what was put into the queues before it has lower sequence numbers than `next`.
    pub(super) fn mark(&self, feed: &Feed, next: u64, position: u64) {
        let mut waiting = self.lock();
        if !waiting.contains_key(feed) {
            waiting.insert(feed.clone(), Line { markers: VecDeque::new(), moved: Instant::now() });
        }
        if let Some(Line { markers, .. }) = waiting.get_mut(feed) {
            let full = markers.len() >= MARKERS;
            match markers.back_mut() {
                Some(last) if full || last.0 == next => *last = (next, position),
                _ => markers.push_back((next, position)),
            }
        }
        self.publish(&mut waiting);
    }

    /// Something of the feed was missed or given up: nothing is met before the next marker.
    pub(super) fn forget(&self, feed: &Feed) {
        let mut waiting = self.lock();
        waiting.remove(feed);
        self.published.send_if_modified(|mets| mets.remove(feed).is_some());
    }

    /// Something was answered.
    pub(super) fn renew(&self) {
        self.publish(&mut self.lock());
    }

    /// For each feed, since when nothing more was met.
    pub(super) fn moved(&self) -> Vec<(Feed, Instant)> {
        self.lock().iter().map(|(feed, line)| (feed.clone(), line.moved)).collect()
    }

    fn publish(&self, waiting: &mut HashMap<Feed, Line>) {
        // Looked at under the lock of the markers: what was put in before a marker is seen here.
        let oldest = self.queues.iter().filter_map(|queue| queue.oldest()).min().unwrap_or(u64::MAX);
        let mut met = vec![];
        for (feed, line) in waiting.iter_mut() {
            let answered = line.markers.partition_point(|(next, _)| *next <= oldest);
            if let Some((_, position)) = line.markers.drain(..answered).next_back() {
                line.moved = Instant::now();
                met.push((feed, position));
            }
        }
        if met.is_empty() {
            return;
        }
        self.published.send_modify(|mets| {
            for (feed, position) in met {
                match mets.get_mut(feed) {
                    Some(known) => *known = position,
                    None => drop(mets.insert(feed.clone(), position)),
                }
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Feed, Line>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use overdue_protocol::QueueName;
    use overdue_protocol::watch::{Glob, Rule};
    use overdue_store::Node;
    use overdue_watch::Ask;

    use super::*;

    fn feed(db: u8) -> Feed {
        Feed { node: Node::server(), db }
    }

    fn put(queue: &Queue, sequence: u64) {
        let name = QueueName::new("q").unwrap();
        let rule = Arc::new(Rule::new(name.clone(), Glob::new("*"), name));
        queue.put_look(sequence, &feed(0), Ask { key: sequence.to_string().into(), rule, removal: false });
    }

    fn stage() -> (Vec<Arc<Queue>>, Met) {
        let queues: Vec<_> = (0..2).map(|_| Arc::new(Queue::new(2_000, 2_000))).collect();
        (queues.clone(), Met::new(queues))
    }

    fn met(met: &Met) -> Option<u64> {
        met.mets().borrow().get(&feed(0)).copied()
    }

    #[tokio::test(start_paused = true)]
    async fn a_marker_is_met_when_all_before_it_on_all_lanes_is_answered() {
        let (queues, mets) = stage();
        put(&queues[0], 1);
        put(&queues[1], 2);
        mets.mark(&feed(0), 3, 1_000);
        put(&queues[1], 3);
        mets.mark(&feed(0), 4, 2_000);
        assert_eq!(met(&mets), None);
        queues[1].take().await.unwrap();
        queues[1].answered();
        mets.renew();
        assert_eq!(met(&mets), None, "the other lane has not answered");
        queues[0].take().await.unwrap();
        mets.renew();
        assert_eq!(met(&mets), None, "taken is not answered");
        queues[0].answered();
        mets.renew();
        assert_eq!(met(&mets), Some(2_000));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_behind_a_marker_does_not_hold_it_up() {
        let (queues, mets) = stage();
        mets.mark(&feed(0), 1, 1_000);
        assert_eq!(met(&mets), Some(1_000));
        put(&queues[0], 1);
        mets.mark(&feed(3), 2, 7_000);
        assert_eq!((met(&mets), mets.mets().borrow().len()), (Some(1_000), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_takes_back_what_was_met_and_the_markers_that_wait() {
        let (queues, mets) = stage();
        mets.mark(&feed(0), 1, 1_000);
        put(&queues[0], 1);
        mets.mark(&feed(0), 2, 2_000);
        mets.forget(&feed(0));
        assert_eq!(met(&mets), None);
        queues[0].take().await.unwrap();
        queues[0].answered();
        mets.renew();
        assert_eq!(met(&mets), None, "a marker before the gap says nothing about what was missed");
        mets.mark(&feed(0), 2, 3_000);
        assert_eq!(met(&mets), Some(3_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_not_waited_for_still_holds_back_what_is_met() {
        let (queues, mets) = stage();
        put(&queues[0], 1);
        let late = queues[0].take().await.unwrap();
        queues[0].is_late();
        put(&queues[0], 2);
        queues[0].take().await.unwrap();
        mets.mark(&feed(0), 3, 1_000);
        queues[0].answered();
        mets.renew();
        assert_eq!(met(&mets), None, "the first batch is not answered");
        queues[0].answered_late(late.oldest);
        mets.renew();
        assert_eq!(met(&mets), Some(1_000));
    }

    #[tokio::test(start_paused = true)]
    async fn markers_that_wait_are_bounded() {
        let (queues, mets) = stage();
        for n in 0..1_500 {
            put(&queues[0], 2 * n);
            mets.mark(&feed(0), 2 * n + 1, n);
        }
        assert_eq!(mets.lock()[&feed(0)].markers.len(), MARKERS);
        while queues[0].oldest().is_some() {
            queues[0].take().await.unwrap();
            queues[0].answered();
        }
        mets.renew();
        assert_eq!(met(&mets), Some(1_499));
    }
}
