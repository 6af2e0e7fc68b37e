//! The task that reads the subscription.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_store::{Result, Signal, Store, Subscriber};
use overdue_telemetry::label::{GapReason, Loop, NotificationResult, Role};
use overdue_telemetry::{Health, Metric, Progress, Throttle};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gaps::Gaps;
use crate::lane::{Lane, Named, result};
use crate::settings::Settings;

/// Calls under way at once. The server is busy with four batches of 100, and more do not make it faster.
const LANES: usize = 4;
/// The subscription must be up within this, or the process is not ready.
const BOUND: Duration = Duration::from_secs(5);
/// Between two reports.
const TICK: Duration = Duration::from_millis(500);

/// A listener that holds a verified subscription and is ready to run.
pub struct Listener {
    store: Store,
    settings: Settings,
    subscriber: Subscriber,
    signals: mpsc::Receiver<Signal>,
    gaps: Gaps,
    progress: Progress,
    throttle: Arc<Throttle>,
}

impl Listener {
    /// Subscribes. `on_gap` is called whenever notifications may have been missed; it must not block.
    ///
    /// # Errors
    /// Redis does not answer, or refuses the subscription.
    pub async fn start(
        store: Store,
        settings: Settings,
        health: Health,
        on_gap: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        let progress = health.register(Loop::Listen, "", BOUND);
        let throttle = Arc::<Throttle>::default();
        let pattern = format!("__keyevent@{}__:expired", store.db());
        let role = Role::Notification.as_str();
        let (subscriber, signals) =
            Subscriber::open(store.settings(), role, vec![pattern], settings.capacity).await?;
        let gaps = Gaps::new(on_gap);
        Ok(Self { store, settings, subscriber, signals, gaps, progress, throttle })
    }

    /// Runs until `stop`; what was heard before is fired first.
    pub async fn run(mut self, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        let lanes: Vec<_> = (0..LANES).map(|_| self.open_lane(&tasks)).collect();
        tasks.close();
        self.hear(&lanes, &stop).await;
        drop(lanes);
        tasks.wait().await;
        self.subscriber.close().await;
        self.progress.retire();
    }

    fn open_lane(&self, tasks: &TaskTracker) -> mpsc::Sender<Named> {
        let (sender, named) = mpsc::channel(self.settings.capacity.div_ceil(LANES));
        let (store, gaps, throttle) = (self.store.clone(), self.gaps.clone(), Arc::clone(&self.throttle));
        tasks.spawn(Lane { store, gaps, throttle, named }.run());
        sender
    }

    async fn hear(&mut self, lanes: &[mpsc::Sender<Named>], stop: &CancellationToken) {
        let mut state = State::default();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                signal = self.signals.recv() => match signal {
                    Some(signal) => self.take(signal, &mut state, lanes),
                    None => return,
                },
                _ = tick.tick() => self.tell(&mut state),
            }
        }
    }

    fn take(&self, signal: Signal, state: &mut State, lanes: &[mpsc::Sender<Named>]) {
        let role = Role::Notification.as_str();
        match signal {
            Signal::Event { name, key, .. } if name == "expired" => self.name(&key, state, lanes),
            Signal::Up => {
                state.up = true;
                Metric::SubscriptionUp.set(1.0, &[role]);
                self.progress.succeed();
                self.gaps.declare(GapReason::Reconnect);
                if state.was_down {
                    Metric::Reconnects.count(1, &[role]);
                    if let Some(pass) = self.throttle.pass("subscribed again", Instant::now()) {
                        tracing::info!("subscribed again; sweeping for what was missed{pass}");
                    }
                }
            }
            Signal::Down => {
                state.up = false;
                state.was_down = true;
                Metric::SubscriptionUp.set(0.0, &[role]);
                if let Some(pass) = self.throttle.pass("subscription broke", Instant::now()) {
                    tracing::warn!("the subscription broke; sweeps carry on alone until it is back{pass}");
                }
            }
            Signal::Lost { count, .. } => {
                Metric::NotificationsDropped.count(count, &[]);
                self.gaps.declare(GapReason::Lag);
            }
            // One node that comes or goes is heard by the words about all of them.
            Signal::Opened(_) | Signal::Closed(_) | Signal::Event { .. } | Signal::Message { .. } => {}
        }
    }

    fn name(&self, key: &Bytes, state: &mut State, lanes: &[mpsc::Sender<Named>]) {
        let parsed = self.store.keyspace().parse_timer_key(key);
        let ours = parsed
            .filter(|(queue, ..)| self.settings.queues.is_empty() || self.settings.queues.contains(queue));
        let Some((queue, partition, id)) = ours else {
            result(NotificationResult::Ignored, 1);
            return;
        };
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let lane = &lanes[hasher.finish() as usize % lanes.len()];
        if lane.try_send(Named { queue, partition, id }).is_err() {
            state.dropped += 1;
        }
    }

    /// Reports once a tick: a storm that overflows the lanes is one gap, not thousands.
    fn tell(&self, state: &mut State) {
        if state.up {
            self.progress.succeed();
        } else {
            self.progress.fail("subscription_down");
        }
        if state.dropped > 0 {
            Metric::NotificationsDropped.count(std::mem::take(&mut state.dropped), &[]);
            self.gaps.declare(GapReason::Overflow);
        }
    }
}

/// What the listener knows of its subscription.
#[derive(Default)]
struct State {
    up: bool,
    was_down: bool,
    /// Notifications that found their lane full since the last tick.
    dropped: u64,
}
