//! The commands that wait for work.

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use overdue_store::Backoff;
use overdue_telemetry::Throttle;
use tokio::task::JoinSet;

use super::worker::Worker;
use crate::child::Groups;

/// No more than timeouts are handled at once.
#[derive(Debug)]
pub(super) struct Crew {
    command: Vec<OsString>,
    groups: Groups,
    state: Mutex<State>,
    throttle: Throttle,
}

#[derive(Default)]
struct State {
    /// The last that came back is the first to go: the others may sleep.
    idle: Vec<Worker>,
    /// Nobody comes back any more.
    closed: bool,
    backoff: Backoff,
    /// When the next may be started, after one was lost.
    not_before: Option<Instant>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("idle", &self.idle.len()).field("closed", &self.closed).finish()
    }
}

impl Crew {
    pub(super) fn new(command: Vec<OsString>, groups: Groups) -> Self {
        Self { command, groups, state: Mutex::default(), throttle: Throttle::default() }
    }

    /// One that waits for a line. A new one is not started before the back-off allows it.
    ///
    /// # Errors
    /// It can't be started; a sentence for people.
    pub(super) async fn take(&self) -> Result<Worker, String> {
        loop {
            let Some(mut worker) = self.state().idle.pop() else { break };
            if worker.is_waiting().await {
                return Ok(worker);
            }
            tracing::debug!(
                "a command of the pipe has left, or said what nobody asked for: another takes its place"
            );
            self.groups.beside(worker.retire());
        }
        let not_before = self.state().not_before;
        if let Some(at) = not_before {
            tokio::time::sleep_until(at.into()).await;
        }
        Worker::start(&self.command, &self.groups).map_err(|error| {
            self.back_off();
            format!("cannot run {}: {error}", self.command[0].display())
        })
    }

    /// It has answered.
    pub(super) fn give_back(&self, worker: Worker) {
        let mut state = self.state();
        state.backoff.reset();
        state.not_before = None;
        if state.closed {
            self.groups.beside(worker.retire());
        } else {
            state.idle.push(worker);
        }
    }

    /// One has died, or had to be ended.
    pub(super) fn lost(&self, reason: &str) {
        self.back_off();
        if let Some(pass) = self.throttle.pass("lost", Instant::now()) {
            tracing::warn!("lost a command of the pipe: {reason}{pass}");
        }
    }

    /// Lets all go, and whoever comes back.
    pub(super) async fn close(&self) {
        let idle = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.idle)
        };
        let retiring: JoinSet<()> = idle.into_iter().map(Worker::retire).collect();
        retiring.join_all().await;
    }

    fn back_off(&self) {
        let mut state = self.state();
        let wait = state.backoff.next_wait();
        state.not_before = Some(Instant::now() + wait);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
