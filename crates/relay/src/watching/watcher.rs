//! The watcher: what it consists of, its start and its end.

use std::sync::Arc;
use std::time::Duration;

use overdue_store::{Result, Signal, Subscriber};
use overdue_telemetry::Health;
use overdue_telemetry::label::{Loop, Role};
use overdue_watch::{Looker, Mets};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::context::Context;
use super::feeds::{Feeds, ScanNow};
use super::follower::Follower;
use super::lane::Lane;
use super::met::Met;
use super::patterns;
use super::queue::Queue;
use super::reader::Reader;
use super::settings::WatchSettings;
use crate::gaps::Gaps;

/// Batches under way at once. More lanes make smaller batches, which cost Redis more.
const LANES: usize = 2;
/// Fires have so many times the room of looks: a look can be made later, an event is the only proof.
const ROOM_FOR_FIRES: usize = 4;
/// The subscription must be up, and a lane must settle, within these; or the process is not ready.
const BOUND_WATCH: Duration = Duration::from_secs(5);
const BOUND_SETTLE: Duration = Duration::from_secs(10);

/// Watches the keys of the rules. It holds a verified subscription and is ready to run.
pub struct Watcher {
    context: Context,
    subscriber: Subscriber,
    signals: mpsc::Receiver<Signal>,
    queues: Vec<Arc<Queue>>,
    /// In a cluster, for each of the queues another one.
    detours: Vec<Arc<Queue>>,
}

impl Watcher {
    /// Subscribes to what the rules need. `on_gap` is called whenever notifications may have been missed; it must not
    /// block.
    ///
    /// # Errors
    /// Redis does not answer, or refuses the subscription.
    pub async fn start(
        looker: Looker,
        settings: WatchSettings,
        health: Health,
        on_gap: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        let store = looker.store();
        let patterns = patterns::of(looker.rules(), settings.mode, store.keyspace());
        let (role, capacity) = (Role::Watch.as_str(), settings.capacity);
        let (subscriber, signals) = Subscriber::open(store.settings(), role, patterns, capacity).await?;
        let looks = capacity.div_ceil(LANES);
        let queue = || Arc::new(Queue::new(ROOM_FOR_FIRES * looks, looks));
        let queues: Vec<_> = (0..LANES).map(|_| queue()).collect();
        let detours: Vec<_> = queues.iter().filter(|_| store.is_cluster()).map(|_| queue()).collect();
        let all = queues.iter().chain(&detours).cloned().collect();
        let context = Context {
            looker,
            settings: Arc::new(settings),
            health,
            feeds: Feeds::default(),
            met: Arc::new(Met::new(all)),
            gaps: Gaps::new(on_gap),
            throttle: Arc::default(),
        };
        Ok(Self { context, subscriber, signals, queues, detours })
    }

    /// How far what is heard is settled, for each feed.
    #[must_use]
    pub fn mets(&self) -> Mets {
        self.context.met.mets()
    }

    /// A handle for whoever wants a SCAN.
    #[must_use]
    pub fn scan_now(&self) -> ScanNow {
        ScanNow(self.context.feeds.clone())
    }

    /// Runs until `stop`; what was heard before is settled first, if Redis answers.
    pub async fn run(self, stop: CancellationToken) {
        let Self { context, subscriber, signals, queues, detours } = self;
        let stop = stop.child_token();
        let tasks = TaskTracker::new();
        let run = |name: &str, queue: &Arc<Queue>, detour: Option<&Arc<Queue>>| {
            let progress = context.health.register(Loop::Settle, name, BOUND_SETTLE);
            let (context, queue, detour) = (context.clone(), Arc::clone(queue), detour.cloned());
            tasks.spawn(Lane { context, queue, progress, stop: stop.clone(), detour }.run())
        };
        let lanes: Vec<_> = (0..)
            .zip(&queues)
            .map(|(number, queue)| run(&number.to_string(), queue, detours.get(number)))
            .collect();
        for (number, detour) in detours.iter().enumerate() {
            run(&format!("{number} detour"), detour, None);
        }
        tasks.spawn(Follower { context: context.clone(), tasks: tasks.clone() }.run(stop.clone()));
        let progress = context.health.register(Loop::Watch, "", BOUND_WATCH);
        Reader::new(context, signals, queues.clone(), progress).run(&stop).await;
        // It ends too when the subscription does, and then all ends: whoever started this sees it.
        stop.cancel();
        queues.iter().for_each(|queue| queue.close());
        // Lanes put into them until they end.
        for lane in lanes {
            let _ = lane.await;
        }
        detours.iter().for_each(|queue| queue.close());
        tasks.close();
        tasks.wait().await;
        subscriber.close().await;
    }
}
