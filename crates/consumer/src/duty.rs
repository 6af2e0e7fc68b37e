//! What holds for the timeouts of one route: the terms of its handler, and whether what it works with can be reached.

use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::call::PAGE_BYTES;
use overdue_protocol::{Effect, Partition};
use overdue_telemetry::label::HandledResult;

use crate::outcome::{Outcome, cut};
use crate::reach::Reach;
use crate::station::Act;
use crate::terms::Settled;

pub(crate) struct Duty {
    pub(crate) terms: Settled,
    pub(crate) reach: Arc<Reach>,
}

/// Effects on their way: what is needed to judge again if they can't be applied.
pub(crate) struct Applying {
    pub(crate) effects: Arc<[Effect]>,
    pub(crate) attempt: u32,
    pub(crate) duty: Arc<Duty>,
}

impl Duty {
    /// What an outcome means at this attempt. Whether it says something of the route is the caller's to see to.
    pub(crate) fn judge(
        self: &Arc<Self>,
        outcome: Outcome,
        attempt: u32,
        at: &Partition,
    ) -> (Act, HandledResult) {
        match outcome {
            Outcome::Done => (Act::Done, HandledResult::Done),
            Outcome::DoneWith(effects) if effects.is_empty() => (Act::Done, HandledResult::Done),
            Outcome::DoneWith(effects) => match effects.beside(at) {
                Ok(effects) => {
                    let applying = Applying { effects, attempt, duty: self.clone() };
                    (Act::Apply(applying), HandledResult::Done)
                }
                Err(reason) => self.again(None, reason, attempt),
            },
            Outcome::Retry { reason } => self.again(None, reason, attempt),
            Outcome::RetryAfter { wait, reason } => self.again(Some(wait), reason, attempt),
            Outcome::Postpone { wait, .. } => (Act::Release(wait), HandledResult::Postponed),
            Outcome::Unreachable { .. } | Outcome::Halt { .. } | Outcome::Release => {
                (Act::Release(Duration::ZERO), HandledResult::Released)
            }
            Outcome::Reject { reason } => (Act::Bury("rejected", cut(reason)), HandledResult::Reject),
        }
    }

    /// It failed: another attempt, or a dead letter after the last.
    pub(crate) fn again(&self, wait: Option<Duration>, reason: String, attempt: u32) -> (Act, HandledResult) {
        if attempt >= self.terms.attempts {
            return (Act::Bury("attempts", cut(reason)), HandledResult::Exhausted);
        }
        (Act::Retry(wait.unwrap_or_else(|| self.terms.policy.wait(attempt))), HandledResult::Retry)
    }
}

impl Applying {
    /// What they count in a call, which may hold 1 MiB and 1,000 effects.
    pub(crate) fn weight(&self) -> usize {
        let least = PAGE_BYTES as usize / 1000;
        self.effects.iter().map(|effect| effect.size().max(least)).sum()
    }
}

impl std::fmt::Debug for Applying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Applying").field(&self.effects).finish()
    }
}
