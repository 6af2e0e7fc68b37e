//! What the reader knows of each feed: positions, and what is owed after a gap.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_store::{Feed, Node};
use overdue_telemetry::Metric;
use overdue_telemetry::label::{GapReason, ScanReason};

use super::context::Context;
use super::positions::Positions;

/// While lanes overflow, SCAN makes up for it no more often than this: it adds to what they have to do.
const SCAN_AFTER_OVERFLOW: Duration = Duration::from_secs(10);

/// All feeds that were heard of.
pub(super) struct Lines {
    context: Context,
    lines: HashMap<Feed, Line>,
}

#[derive(Default)]
struct Line {
    positions: Positions,
    /// It was open before.
    known: bool,
    /// A SCAN to be made when the next marker is met: subscribe, verify, then scan.
    owed: Option<ScanReason>,
    /// Found no room since the last tick.
    dropped: u64,
    /// Something found no room since the last SCAN for that, and when that was.
    overflowed: bool,
    scanned: Option<Instant>,
}

impl Lines {
    pub(super) fn new(context: Context) -> Self {
        Self { context, lines: HashMap::new() }
    }

    /// Names what has ended; `None` in a gap.
    pub(super) fn name(&mut self, feed: &Feed, key: &Bytes) -> Option<u64> {
        self.lines.get_mut(feed)?.positions.name(key)
    }

    /// A marker was met; what was handed on before it has lower sequence numbers than `next`.
    pub(super) fn mark(&mut self, feed: &Feed, next: u64, position: u64) {
        let line = self.lines.entry(feed.clone()).or_default();
        line.positions.mark(position);
        let state = self.context.feeds.of(feed);
        state.mark(position);
        self.context.met.mark(feed, next, position);
        if let Some(reason) = line.owed.take() {
            state.ask_scan(reason);
        }
    }

    /// The node's subscription begins: what it said before is a gap.
    pub(super) fn open(&mut self, node: &Node) {
        for feed in self.of_node(node) {
            self.context.feeds.of(&feed).set_open(true);
        }
        self.gap(node, GapReason::Reconnect);
    }

    /// The node's subscription is broken, or the node is gone.
    pub(super) fn close(&mut self, node: &Node) {
        let served = self.context.looker.nodes().feeds();
        for feed in self.of_node(node) {
            self.forget(&feed);
            self.context.feeds.of(&feed).set_open(false);
            if !served.borrow().contains(&feed) {
                self.context.feeds.remove(&feed);
            }
        }
    }

    /// What the node said until now may have been missed: nothing is named before the next marker. The very first of
    /// a feed misses nothing that was promised.
    pub(super) fn gap(&mut self, node: &Node, reason: GapReason) {
        let mut missed = false;
        for feed in self.of_node(node) {
            self.forget(&feed);
            let line = self.lines.entry(feed.clone()).or_default();
            let first = !std::mem::replace(&mut line.known, true);
            line.owed.get_or_insert(if first { ScanReason::Start } else { ScanReason::Gap });
            missed |= !first;
            self.context.feeds.of(&feed).touch.notify_one();
        }
        if missed {
            self.context.gaps.declare(reason);
        }
    }

    /// Something found no room in the lanes. It was counted, so that names stay right; but nothing is met before
    /// another marker.
    pub(super) fn overflow(&mut self, feed: Feed) {
        self.context.met.forget(&feed);
        self.lines.entry(feed).or_default().dropped += 1;
    }

    /// Reports once a tick: a storm that overflows the lanes is one gap, not thousands.
    pub(super) fn tell(&mut self) {
        for (feed, line) in &mut self.lines {
            let dropped = std::mem::take(&mut line.dropped);
            if dropped > 0 {
                line.overflowed = true;
                Metric::NotificationsDropped.count(dropped, &[]);
                self.context.gaps.declare(GapReason::Overflow);
                if let Some(pass) = self.context.throttle.pass("lanes full", Instant::now()) {
                    tracing::warn!(%feed, dropped, "Redis is slower than its notifications; SCAN and nudges make up for what was dropped{pass}");
                }
            }
            let recently = line.scanned.is_some_and(|at| at.elapsed() < SCAN_AFTER_OVERFLOW);
            if line.overflowed && (dropped == 0 || !recently) {
                line.overflowed = false;
                line.scanned = Some(Instant::now());
                self.context.feeds.of(feed).ask_scan(ScanReason::Gap);
            }
        }
        for (feed, moved) in self.context.met.moved() {
            Metric::MetAge.set(moved.elapsed().as_secs_f64(), &[&feed.to_string()]);
        }
    }

    fn forget(&mut self, feed: &Feed) {
        if let Some(line) = self.lines.get_mut(feed) {
            line.positions.forget();
        }
        self.context.met.forget(feed);
    }

    fn of_node(&self, node: &Node) -> Vec<Feed> {
        let dbs = self.context.looker.rules().dbs();
        dbs.into_iter().map(|db| Feed { node: node.clone(), db }).collect()
    }
}
