//! Timers that are all due at one instant, which is still ahead when the last of them is armed.

use std::time::Duration;

use overdue::{Raw, When};
use serde::Serialize;

use super::rig::{Asked, Rig, per_s};
use crate::exit::{Exit, Failure};
use crate::stage::{arm, now_us, sleep_until_ms};

/// How often arming may end too late; each time it gets twice as long.
const TRIES: u32 = 4;

/// Timers that are armed.
pub(super) struct AtOnce {
    pub(super) rig: Rig,
    timers: u32,
    due_ms: u64,
}

/// What came of them.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Figures {
    /// Timeouts a second, from due to the last acknowledgement.
    pub(super) per_s: u64,
    /// Processor time of Redis for each timeout, without arming it.
    pub(super) redis_us: f64,
    /// The same of relay and consumers.
    pub(super) our_us: Option<f64>,
    /// What Redis was asked: scripts, and reads of the stream.
    pub(super) scripts: u64,
    pub(super) reads: u64,
}

impl AtOnce {
    /// Opens a rig and arms them, due after `lead`. When arming takes longer: again, on another rig, with twice the time.
    pub(super) async fn arm(
        open: impl AsyncFn() -> Result<Rig, Failure>,
        timers: u32,
        payload_bytes: usize,
        mut lead: Duration,
    ) -> Result<Self, Failure> {
        let payload = Raw::new(vec![b'x'; payload_bytes]);
        for _ in 0..TRIES {
            let rig = open().await?;
            let due_ms = now_us() / 1_000 + u64::try_from(lead.as_millis()).unwrap_or(u64::MAX);
            let timer = |n| rig.queue.timer(format!("timer-{n}")).at(When::UnixMs(due_ms)).payload(&payload);
            arm(&rig.queue, (0..timers).map(timer)).await?;
            if now_us() < due_ms * 1_000 {
                return Ok(Self { rig, timers, due_ms });
            }
            lead *= 2;
        }
        let what = format!("arming {timers} timers takes longer than {:?} here: try fewer", lead / 2);
        Err(Failure::new(Exit::CheckFailed, what))
    }

    /// Waits from just before they are due until all are acknowledged, `deadline` at most.
    pub(super) async fn fire(&mut self, deadline: Duration) -> Result<Figures, Failure> {
        let (rig, n) = (&mut self.rig, u64::from(self.timers));
        sleep_until_ms(self.due_ms - 20).await;
        let (before, asked) = (rig.cpu().await?, Asked::so_far(&rig.stage).await?);
        let done_us = rig.await_done(n, deadline).await?;
        let (redis_us, our_us) = rig.cpu().await?.each(before, n);
        let Asked { scripts, reads } = Asked::so_far(&rig.stage).await?.since(asked);
        let per_s = per_s(n, done_us.saturating_sub(self.due_ms * 1_000));
        Ok(Figures { per_s, redis_us, our_us, scripts, reads })
    }
}
