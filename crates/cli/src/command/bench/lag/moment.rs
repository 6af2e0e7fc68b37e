//! The instant at which all are due.

use std::time::Duration;

use super::OF;
use crate::exit::{Exit, Failure};
use crate::stage::now_us;

/// How long before that instant all are written or armed.
const LEAD_MS: u64 = 2_000;
/// So many come before, a few ms apart, and are not measured: a consumer reads small pages until it knows how large
/// entries are.
pub(super) const FIRST: u32 = 100;

/// When all are due.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// Unix ms.
    pub(super) due_ms: u64,
}

impl Moment {
    /// Far enough ahead to write all before.
    pub(super) fn soon() -> Self {
        Self { due_ms: now_us() / 1_000 + LEAD_MS }
    }

    /// How long until then.
    pub(super) fn wait(self) -> Duration {
        Duration::from_micros((self.due_ms * 1_000).saturating_sub(now_us()))
    }

    /// Whether it was still ahead when all were written: what was written too late measures nothing.
    pub(super) fn still_ahead(self) -> Result<(), Failure> {
        if !self.wait().is_zero() {
            return Ok(());
        }
        let what = format!(
            "writing {OF} takes longer than {LEAD_MS} ms here: try again when the machine has less to do"
        );
        Err(Failure::new(Exit::CheckFailed, what))
    }

    /// The names of all that are due now, and before them a few that are not measured, one after the other; each with
    /// its due time.
    pub(super) fn all(self, prefix: &str) -> Vec<(String, u64)> {
        let Self { due_ms } = self;
        let first = |n| (format!("{prefix}first-{n}"), due_ms - LEAD_MS / 2 + u64::from(n) * 5);
        let now = |n| (format!("{prefix}{n}:{due_ms}"), due_ms);
        (0..FIRST).map(first).chain((0..OF).map(now)).collect()
    }
}
