//! How each feed stands: what its tasks tell each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use overdue_store::{Feed, Node};
use overdue_telemetry::label::ScanReason;
use tokio::sync::Notify;

/// One feed. The reader writes what it hears, the others ask for what they need.
pub(super) struct FeedState {
    pub(super) feed: Feed,
    /// Whether the node's subscription is up.
    open: AtomicBool,
    /// The last marker that was met, and when.
    marker: Mutex<(u64, Option<Instant>)>,
    /// A marker is wanted now.
    pub(super) touch: Notify,
    /// Why a SCAN is wanted.
    wanted: Mutex<Option<ScanReason>>,
    pub(super) scan: Notify,
    /// No notifications come.
    blind: AtomicBool,
    /// How often the canary's deadline and its end were heard.
    pub(super) deadlines_heard: AtomicU64,
    pub(super) ends_heard: AtomicU64,
}

impl FeedState {
    fn new(feed: Feed) -> Self {
        Self {
            feed,
            open: AtomicBool::new(false),
            marker: Mutex::default(),
            touch: Notify::new(),
            wanted: Mutex::default(),
            scan: Notify::new(),
            blind: AtomicBool::new(false),
            deadlines_heard: AtomicU64::new(0),
            ends_heard: AtomicU64::new(0),
        }
    }

    pub(super) fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::Relaxed);
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn set_blind(&self, blind: bool) {
        if self.blind.swap(blind, Ordering::Relaxed) != blind {
            self.scan.notify_one();
        }
    }

    pub(super) fn is_blind(&self) -> bool {
        self.blind.load(Ordering::Relaxed)
    }

    /// A marker was met.
    pub(super) fn mark(&self, position: u64) {
        *lock(&self.marker) = (position, Some(Instant::now()));
    }

    /// The position of the last marker that was met; 0 = none yet. What was heard before it is counted.
    pub(super) fn marker(&self) -> u64 {
        lock(&self.marker).0
    }

    /// When the last marker was met.
    pub(super) fn marked(&self) -> Option<Instant> {
        lock(&self.marker).1
    }

    /// Asks for a SCAN. One that is under way goes on, and another follows it.
    pub(super) fn ask_scan(&self, reason: ScanReason) {
        lock(&self.wanted).get_or_insert(reason);
        self.scan.notify_one();
    }

    /// Why a SCAN is wanted; then it no longer is.
    pub(super) fn take_scan(&self) -> Option<ScanReason> {
        lock(&self.wanted).take()
    }

    /// Whether another SCAN is wanted.
    pub(super) fn wants_scan(&self) -> bool {
        lock(&self.wanted).is_some()
    }
}

/// All feeds. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Feeds(Arc<Mutex<BTreeMap<Feed, Arc<FeedState>>>>);

impl Feeds {
    /// The one of this name; a new one when there is none.
    pub(super) fn of(&self, feed: &Feed) -> Arc<FeedState> {
        let mut all = lock(&self.0);
        if let Some(state) = all.get(feed) {
            return Arc::clone(state);
        }
        let state = Arc::new(FeedState::new(feed.clone()));
        all.insert(feed.clone(), Arc::clone(&state));
        state
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<FeedState>> {
        lock(&self.0).values().cloned().collect()
    }

    /// Those of one node.
    pub(super) fn of_node(&self, node: &Node) -> Vec<Arc<FeedState>> {
        lock(&self.0).values().filter(|state| state.feed.node == *node).cloned().collect()
    }

    /// The feed is no more, unless its subscription is still up: then whoever closes that comes here again.
    pub(super) fn remove(&self, feed: &Feed) {
        let mut all = lock(&self.0);
        if all.get(feed).is_some_and(|state| !state.is_open()) {
            all.remove(feed);
        }
    }
}

/// Asks for a SCAN of a feed. Clones ask the same watcher.
#[derive(Clone)]
pub struct ScanNow(pub(super) Feeds);

impl ScanNow {
    /// Scans the feed as soon as may be: one SCAN at a time, and another when this comes during one.
    pub fn scan_now(&self, feed: &Feed, reason: ScanReason) {
        self.0.of(feed).ask_scan(reason);
    }
}

/// A panic elsewhere does not make these wrong: each holds whole values at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_that_is_asked_for_twice_is_made_once_and_again_when_asked_during_it() {
        let feeds = Feeds::default();
        let feed = Feed { node: Node::server(), db: 0 };
        let ask = ScanNow(feeds.clone());
        ask.scan_now(&feed, ScanReason::Gap);
        ask.scan_now(&feed, ScanReason::Flush);
        let state = feeds.of(&feed);
        assert_eq!((state.take_scan(), state.take_scan()), (Some(ScanReason::Gap), None));
        ask.scan_now(&feed, ScanReason::Flush);
        assert!(state.wants_scan());
    }

    #[test]
    fn a_feed_goes_when_its_node_has_left_and_its_subscription_is_closed() {
        let feeds = Feeds::default();
        let feed = Feed { node: Node::of_cluster("a"), db: 0 };
        let state = feeds.of(&feed);
        state.set_open(true);
        feeds.remove(&feed);
        assert!(Arc::ptr_eq(&state, &feeds.of(&feed)));
        state.set_open(false);
        feeds.remove(&feed);
        assert!(feeds.of_node(&feed.node).is_empty());
    }
}
