//! What all loops of one consumer share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use overdue_protocol::{GroupName, QueueName};
use overdue_store::{Error, Store};
use overdue_telemetry::Throttle;
use rand::RngExt;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::away::Absence;
use crate::clock::Clock;
use crate::counts::Counts;
use crate::options::Options;
use crate::reach::{Reaches, ReadOn};

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
    pub(crate) absence: Absence,
    /// Whether what the handlers work with can be reached.
    pub(crate) reaches: Reaches,
    /// Nothing new is read or claimed any more.
    pub(crate) stop: CancellationToken,
    /// The queue is paused.
    pub(crate) paused: AtomicBool,
    /// How many finished timeouts the history of each partition keeps.
    pub(crate) history: AtomicU32,
    /// How many partitions are at work.
    pub(crate) partitions: AtomicUsize,
}

impl Crew {
    pub(crate) fn new(
        store: Store,
        queue: QueueName,
        group: GroupName,
        options: Options,
        reaches: Reaches,
    ) -> Self {
        Self {
            name: unique_name(options.name.as_deref()),
            permits: Semaphore::new(options.concurrency),
            clock: Clock::default(),
            counts: Counts::new(&queue, &group),
            throttle: Throttle::default(),
            absence: Absence::default(),
            reaches,
            stop: CancellationToken::new(),
            paused: AtomicBool::new(false),
            history: AtomicU32::new(0),
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

    /// How much may be read now.
    pub(crate) fn read_on(&self) -> ReadOn {
        if self.paused.load(Ordering::Relaxed) { ReadOn::Nothing } else { self.reaches.read_on() }
    }

    /// One line for a fault that may repeat: at most one a second and 20 a minute of each kind.
    pub(crate) fn warn(&self, kind: &'static str, text: impl std::fmt::Display) {
        if let Some(pass) = self.throttle.pass(kind, Instant::now()) {
            tracing::warn!(queue = %self.queue, group = %self.group, "{text}{pass}");
        }
    }

    /// A fault of a loop that goes on trying. That Redis does not answer is said once, not by each loop.
    pub(crate) fn fault(&self, kind: &'static str, error: &Error) {
        if Absence::is_one(error.kind()) {
            self.unanswered(error);
        } else {
            self.warn(kind, format_args!("{error}; it is tried again"));
        }
    }

    /// Redis did not answer.
    pub(crate) fn unanswered(&self, why: &dyn std::fmt::Display) {
        match self.absence.failed(Instant::now()) {
            Some(away) => tracing::warn!(
                queue = %self.queue, group = %self.group, ?away,
                "Redis does not answer; all is tried again, and outcomes are kept until they are said: {why}"
            ),
            None => tracing::debug!(queue = %self.queue, group = %self.group, "Redis does not answer: {why}"),
        }
    }

    /// Redis has answered.
    pub(crate) fn answered(&self) {
        if let Some(away) = self.absence.answered(Instant::now()) {
            tracing::info!(queue = %self.queue, group = %self.group, ?away, "Redis answers again");
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
