//! What every task of a watcher shares.

use std::sync::Arc;
use std::time::Duration;

use overdue_store::Feed;
use overdue_telemetry::label::{GapReason, ScanReason};
use overdue_telemetry::{Health, Throttle};
use overdue_watch::Looker;

use super::feeds::Feeds;
use super::met::Met;
use super::settings::WatchSettings;
use crate::gaps::Gaps;

/// Clones share everything.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) looker: Looker,
    pub(super) settings: Arc<WatchSettings>,
    pub(super) health: Health,
    pub(super) feeds: Feeds,
    pub(super) met: Arc<Met>,
    pub(super) gaps: Gaps,
    pub(super) throttle: Arc<Throttle>,
}

impl Context {
    /// Something that was heard of the feed is given up: nothing is met until its next marker, and SCAN looks for it,
    /// if that helps. The names stay right, for it was counted.
    pub(super) fn give_up(&self, feed: &Feed, scan: bool) {
        self.met.forget(feed);
        self.gaps.declare(GapReason::Failed);
        if scan {
            self.feeds.of(feed).ask_scan(ScanReason::Gap);
        }
    }
}

/// `span` give or take a tenth, so that processes do not march in step.
pub(super) fn about(span: Duration) -> Duration {
    span.mul_f64(rand::random_range(0.9..1.1))
}
