//! The task that reads the subscription: it names what it hears and hands it to the lanes. It never calls Redis.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_protocol::watch::{MARK, OnEvicted, Rule, WatchedKey};
use overdue_store::{Feed, Signal};
use overdue_telemetry::label::{GapReason, Role, SuppressedReason, WatchEvent};
use overdue_telemetry::{Counter, Metric, Progress};
use overdue_watch::{Ask, Cause, Fire};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::event::Event;
use super::lines::Lines;
use super::patterns::around_tag;
use super::queue::{Put, Queue};

/// Between two reports.
const TICK: Duration = Duration::from_millis(500);
/// How many signals are taken from the channel at a time: each turn of the loop costs as much as a signal.
const INBOX: usize = 256;

/// Reads signals until there are no more.
pub(super) struct Reader {
    context: Context,
    signals: mpsc::Receiver<Signal>,
    queues: Vec<Arc<Queue>>,
    progress: Progress,
    lines: Lines,
    /// The sequence number of the next that is handed on.
    next: u64,
    /// What stands around the tag in the names of our canaries.
    canary: (Bytes, Bytes),
    up: bool,
    was_down: bool,
    counters: Vec<Counter>,
    coalesced: Counter,
}

impl Reader {
    pub(super) fn new(
        context: Context,
        signals: mpsc::Receiver<Signal>,
        queues: Vec<Arc<Queue>>,
        progress: Progress,
    ) -> Self {
        let counters = WatchEvent::ALL.iter().map(|event| Metric::WatchEvents.counter(&[event.as_str()]));
        Self {
            counters: counters.collect(),
            coalesced: Metric::WatchCoalesced.counter(&[]),
            canary: around_tag(context.looker.store().keyspace(), &context.settings.process),
            lines: Lines::new(context.clone()),
            context,
            signals,
            queues,
            progress,
            next: 0,
            up: false,
            was_down: false,
        }
    }

    /// Runs until `stop`.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut inbox = Vec::with_capacity(INBOX);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                n = self.signals.recv_many(&mut inbox, INBOX) => {
                    if n == 0 {
                        break;
                    }
                    inbox.drain(..).for_each(|signal| self.take(signal));
                }
                _ = tick.tick() => self.tell(),
            }
        }
        self.progress.retire();
    }

    fn take(&mut self, signal: Signal) {
        match signal {
            Signal::Event { node, db, name, key } => self.hear(Feed { node, db }, &name, key),
            Signal::Up => self.turn(true),
            Signal::Down => self.turn(false),
            Signal::Opened(node) => self.lines.open(&node),
            Signal::Closed(node) => self.lines.close(&node),
            Signal::Lost { node, count } => {
                Metric::NotificationsDropped.count(count, &[]);
                self.lines.gap(&node, GapReason::Lag);
            }
            Signal::Message { .. } => {}
        }
    }

    fn hear(&mut self, feed: Feed, name: &[u8], key: Bytes) {
        if name == MARK.as_bytes() {
            self.mark(&feed, &key);
            return;
        }
        let rules = self.context.looker.rules();
        let heard = Event::of(name).and_then(|event| Some((event, rules.rule_for(feed.db, &key)?)));
        let Some((event, rule)) = heard else {
            self.hear_canary(&feed, name, &key);
            return;
        };
        let rule = Arc::clone(rule);
        self.count(event.label());
        // All that ends counts, in every relay, whatever comes of it.
        let position = match event {
            Event::Expired | Event::Evicted => self.lines.name(&feed, &key),
            Event::Changed | Event::Removed => None,
        };
        let fires = rule.on_evicted == OnEvicted::Fire;
        match (event, position) {
            (Event::Expired, Some(position)) => self.fire(feed, key, rule, position, Cause::Expired),
            (Event::Evicted, Some(position)) if fires => self.fire(feed, key, rule, position, Cause::Evicted),
            // What ends without a name belongs to the gap before the next marker.
            (Event::Expired | Event::Changed, _) => self.look(feed, key, rule, false),
            (Event::Evicted, _) => {
                if !fires {
                    let queue = rule.queue.as_str();
                    Metric::Suppressed.count(1, &[queue, SuppressedReason::Evicted.as_str()]);
                }
                self.look(feed, key, rule, !fires);
            }
            (Event::Removed, _) => self.look(feed, key, rule, true),
        }
    }

    /// `<node> <position>`. In a cluster a marker reaches every node: only at its own node it has a place.
    fn mark(&mut self, feed: &Feed, payload: &[u8]) {
        let text = std::str::from_utf8(payload).ok().and_then(|text| text.rsplit_once(' '));
        if let Some((node, Ok(position))) = text.map(|(node, position)| (node, position.parse()))
            && node == feed.node.as_str()
        {
            self.count(WatchEvent::Marker);
            self.lines.mark(feed, self.next, position);
        }
    }

    fn hear_canary(&self, feed: &Feed, name: &[u8], key: &[u8]) {
        let (head, tail) = &self.canary;
        if !(key.starts_with(head) && key.ends_with(tail)) {
            self.count(WatchEvent::Ignored);
            return;
        }
        let state = self.context.feeds.of(feed);
        match name {
            b"expire" => drop(state.deadlines_heard.fetch_add(1, Ordering::Relaxed)),
            b"expired" => drop(state.ends_heard.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }

    fn fire(&mut self, feed: Feed, key: Bytes, rule: Arc<Rule>, position: u64, cause: Cause) {
        let queue = self.queue_of(&key);
        let fire = Fire { key: WatchedKey { db: feed.db, key }, rule, position, cause };
        let put = queue.put_fire(self.next, fire);
        self.handed(feed, put);
    }

    fn look(&mut self, feed: Feed, key: Bytes, rule: Arc<Rule>, removal: bool) {
        let queue = self.queue_of(&key);
        let put = queue.put_look(self.next, &feed, Ask { key, rule, removal });
        self.handed(feed, put);
    }

    fn handed(&mut self, feed: Feed, put: Put) {
        self.next += 1;
        match put {
            Put::Waits => {}
            Put::Merged => self.coalesced.increment(1),
            Put::Full => self.lines.overflow(feed),
        }
    }

    fn queue_of(&self, key: &Bytes) -> &Queue {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        &self.queues[hasher.finish() as usize % self.queues.len()]
    }

    fn turn(&mut self, up: bool) {
        self.up = up;
        let role = Role::Watch.as_str();
        Metric::SubscriptionUp.set(f64::from(up), &[role]);
        if !up {
            self.was_down = true;
            if let Some(pass) = self.context.throttle.pass("watching broke", Instant::now()) {
                tracing::warn!(
                    "watched keys are not heard of; nudges carry on alone until that is back{pass}"
                );
            }
            return;
        }
        self.progress.succeed();
        if self.was_down {
            Metric::Reconnects.count(1, &[role]);
            if let Some(pass) = self.context.throttle.pass("watching again", Instant::now()) {
                tracing::info!("watched keys are heard of again; SCAN looks for what was missed{pass}");
            }
        }
    }

    fn tell(&mut self) {
        if self.up {
            self.progress.succeed();
        } else {
            self.progress.fail("subscription_down");
        }
        self.lines.tell();
        let waiting: usize = self.queues.iter().map(|queue| queue.len()).sum();
        Metric::WatchWaiting.set(waiting as f64, &[]);
    }

    fn count(&self, event: WatchEvent) {
        if let Some(counter) = self.counters.get(event as usize) {
            counter.increment(1);
        }
    }
}
