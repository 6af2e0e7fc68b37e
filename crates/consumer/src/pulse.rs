//! Keeps the runtime awake beside a handler that blocks its thread.
//!
//! Of a runtime's threads one waits for sockets and timers for all of them. When that one begins a task that blocks, and the
//! others are asleep, nobody takes its place: leases are not renewed, nothing is acknowledged, a stop is not heard, however
//! many threads are free. A task from outside wakes one of them, and it looks after the sockets from then on.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

/// The longest that everything may stand still.
const EVERY: Duration = Duration::from_millis(100);

/// A thread that wakes the runtime now and then, until this is dropped.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// Never sent to: its end is the sign.
    _end: Option<Sender<()>>,
}

impl Pulse {
    /// Begins, in the context of a runtime. One with a single thread has nobody to wake.
    pub(crate) fn start() -> Self {
        let runtime = Handle::current();
        if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return Self { _end: None };
        }
        let (end, ended) = channel();
        let beat = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                runtime.spawn(async {});
            }
        };
        if let Err(error) = thread::Builder::new().name("overdue-pulse".into()).spawn(beat) {
            tracing::warn!(%error, "no thread for the pulse: a handler that blocks its thread may hold up all others");
        }
        Self { _end: Some(end) }
    }
}
