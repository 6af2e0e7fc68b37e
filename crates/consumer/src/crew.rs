//! What all loops of one consumer share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use overdue_protocol::{GroupName, QueueName};
use overdue_store::Store;
use overdue_telemetry::Throttle;
use rand::RngExt;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::counts::Counts;
use crate::options::Options;

pub(crate) struct Crew {
    pub(crate) store: Store,
    pub(crate) queue: QueueName,
    pub(crate) group: GroupName,
    /// The consumer's name in its group, and the process's among the members.
    pub(crate) name: String,
    pub(crate) options: Options,
    /// One for each handler that may run: a reader holds as many as it asks entries for.
    pub(crate) permits: Semaphore,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) throttle: Throttle,
    /// Nothing new is read or claimed any more.
    pub(crate) stop: CancellationToken,
    /// The queue is paused.
    pub(crate) paused: AtomicBool,
    /// How many partitions are at work.
    pub(crate) partitions: AtomicUsize,
}

impl Crew {
    pub(crate) fn new(store: Store, queue: QueueName, group: GroupName, options: Options) -> Self {
        Self {
            name: unique_name(options.name.as_deref()),
            permits: Semaphore::new(options.concurrency),
            clock: Clock::default(),
            counts: Counts::new(&queue, &group),
            throttle: Throttle::default(),
            stop: CancellationToken::new(),
            paused: AtomicBool::new(false),
            partitions: AtomicUsize::new(0),
            store,
            queue,
            group,
            options,
        }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) fn partitions(&self) -> usize {
        self.partitions.load(Ordering::Relaxed)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// One line for a fault that may repeat: at most one a second and 20 a minute of each kind.
    pub(crate) fn warn(&self, kind: &'static str, text: impl std::fmt::Display) {
        if let Some(pass) = self.throttle.pass(kind, Instant::now()) {
            tracing::warn!(queue = %self.queue, group = %self.group, "{text}{pass}");
        }
    }

    /// Waits, but not past the stop.
    pub(crate) async fn wait(&self, time: std::time::Duration) {
        let _ = self.stop.run_until_cancelled(tokio::time::sleep(time)).await;
    }
}

/// Permits on loan; what is not spent goes back.
pub(crate) struct Seats<'a> {
    permits: &'a Semaphore,
    free: usize,
}

impl<'a> Seats<'a> {
    /// Takes over permits that were taken out of the semaphore.
    pub(crate) fn new(permits: &'a Semaphore, free: usize) -> Self {
        Self { permits, free }
    }

    pub(crate) fn free(&self) -> usize {
        self.free
    }

    /// So many were given to handlers, which bring them back.
    pub(crate) fn spend(&mut self, n: usize) {
        self.free = self.free.saturating_sub(n);
    }
}

impl Drop for Seats<'_> {
    fn drop(&mut self) {
        self.permits.add_permits(self.free);
    }
}

/// `<host>:<pid>:<8 hex digits>`.
fn unique_name(host: Option<&str>) -> String {
    let host = host.map_or_else(host_name, str::to_owned);
    format!("{host}:{}:{:08x}", std::process::id(), rand::rng().random::<u32>())
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}
