//! The loop over one index: sweep until nothing is due, then sleep precisely.

use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::Partition;
use overdue_store::{Backoff, Error, Result};
use overdue_telemetry::{Progress, Throttle};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Shared;
use crate::alarm::{Alarm, Alarms, Rung};
use crate::pass::{Pass, Seen};

/// The longest sleep: a lost wake message costs at most this.
const LOOK: Duration = Duration::from_secs(1);
/// The longest sleep while wake messages cannot be relied on.
const LOOK_BLIND: Duration = Duration::from_millis(10);
/// The shortest time between two turns: what falls due meanwhile shares one sweep.
const PACE: Duration = Duration::from_millis(2);
/// The longest step back before another process that fires here.
const STEP_BACK_US: u64 = 2_000;

/// One loop.
pub(crate) struct Sweeper<P> {
    pass: P,
    partition: Partition,
    alarms: Arc<Alarms>,
    alarm: Arc<Alarm>,
    progress: Progress,
    throttle: Arc<Throttle>,
    backoff: Backoff,
    steps_back: bool,
}

/// When to look again, and how the server's clock stood to ours.
struct Plan {
    at: Instant,
    server: Option<(u64, Instant)>,
}

impl<P: Pass> Sweeper<P> {
    pub(crate) fn new(
        shared: &Shared,
        partition: &Partition,
        pass: P,
        alarm: Arc<Alarm>,
        progress: Progress,
    ) -> Self {
        Self {
            pass,
            partition: partition.clone(),
            alarms: Arc::clone(&shared.alarms),
            alarm,
            progress,
            throttle: Arc::clone(&shared.throttle),
            backoff: Backoff::default(),
            steps_back: false,
        }
    }

    /// Runs until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let turn = Instant::now();
            let mut plan = match self.turn(&stop).await {
                Ok(seen) => self.plan(seen, Instant::now()),
                Err(error) => self.wait_out(&error),
            };
            plan.at = plan.at.max(turn + PACE);
            self.sleep(plan, turn + PACE, &stop).await;
        }
        self.progress.retire();
    }

    /// Sweeps until nothing is due.
    async fn turn(&mut self, stop: &CancellationToken) -> Result<Seen> {
        let mut seen = self.pass.sweep().await?;
        self.learn(seen);
        let mut calls = JoinSet::new();
        while seen.more && !stop.is_cancelled() || !calls.is_empty() {
            while seen.more && calls.len() < P::IN_FLIGHT {
                let pass = self.pass.clone();
                calls.spawn(async move { pass.sweep().await });
            }
            let Some(answer) = calls.join_next().await else { break };
            // A sweep does not panic; should it, the loop goes on and the panic is in the log.
            let Ok(answer) = answer else { break };
            let last = answer?;
            self.learn(last);
            seen = if last.now_ms >= seen.now_ms { last } else { seen };
        }
        Ok(seen)
    }

    fn learn(&mut self, seen: Seen) {
        self.progress.succeed();
        self.backoff.reset();
        if seen.fired > 0 {
            self.steps_back = false;
        } else if seen.another {
            self.steps_back = true;
        }
    }

    /// Only what another process took from us makes us step back, and only a little: a reconciler that
    /// was woken for nothing must not be late for it.
    fn plan(&self, seen: Seen, answered: Instant) -> Plan {
        let bound = if self.alarms.are_verified() { LOOK } else { LOOK_BLIND };
        let until_due =
            seen.next_due_ms.map_or(bound, |due| Duration::from_millis(due.saturating_sub(seen.now_ms)));
        let back = if self.steps_back { rand::random_range(0..=STEP_BACK_US) } else { 0 };
        let sleep = until_due.min(bound) + Duration::from_micros(back);
        Plan { at: answered + sleep, server: Some((seen.now_ms, answered)) }
    }

    fn wait_out(&mut self, error: &Error) -> Plan {
        self.progress.fail(error.kind().as_str());
        let wait = self.backoff.next_wait();
        let what = P::NAME;
        if let Some(pass) = self.throttle.pass(what, std::time::Instant::now()) {
            let queue = self.partition.queue();
            tracing::warn!(%queue, partition = self.partition.number(), %error, wait_ms = wait.as_millis() as u64, "{what} failed{pass}");
        }
        Plan { at: Instant::now() + wait, server: None }
    }

    /// Sleeps as planned; a wake message may bring the end forward, but not before `earliest`.
    async fn sleep(&self, mut plan: Plan, earliest: Instant, stop: &CancellationToken) {
        // While Redis fails us, the back-off stands.
        let mut may_stir = plan.server.is_some();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep_until(plan.at) => return,
                () = self.pass.stirred(), if may_stir => {
                    plan.at = plan.at.min(earliest);
                    may_stir = false;
                }
                rung = self.alarm.rung() => match (rung, plan.server) {
                    (_, None) => {}
                    (Rung::Now, Some(_)) => plan.at = plan.at.min(earliest),
                    (Rung::Due(due_ms), Some((now_ms, answered))) => {
                        let due = answered + Duration::from_millis(due_ms.saturating_sub(now_ms));
                        plan.at = plan.at.min(due.max(earliest));
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests;
