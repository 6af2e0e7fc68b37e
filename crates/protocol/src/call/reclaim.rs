//! Leases of plain consumers, who know XREADGROUP and XACK only (PROTOCOL.md section 9).

use bytes::Bytes;

use super::{Call, number, text};
use crate::answer::{Answer, Malformed};
use crate::key::Partition;
use crate::name::GroupName;
use crate::reply::Reply;
use crate::script::{self, Script};

/// Moves entries of a plain group whose lease ran out to the retry index with their next attempt, or to the dead
/// letters after the last. The first call makes the group a plain one, and begins its part of the books anew.
#[derive(Clone, Debug)]
pub struct Reclaim {
    /// Where.
    pub partition: Partition,
    /// The group.
    pub group: GroupName,
    /// How long a consumer may hold an entry, in milliseconds.
    pub lease_ms: u64,
    /// After so many deliveries an entry is a dead letter; at least 1.
    pub attempts: u32,
    /// How long the first retry waits, in milliseconds; it doubles with each attempt.
    pub first_ms: u64,
    /// How long a retry waits at most, in milliseconds.
    pub most_ms: u64,
    /// What share of that it waits, 0.5 to 1: chosen by the caller at random, so that retries spread.
    pub chance: f64,
    /// The most entries; at most 256.
    pub limit: u32,
    /// The most payload, in bytes.
    pub bytes: u64,
}

/// The answer of [`Reclaim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reclaimed {
    /// Entries that wait for their next attempt now.
    pub retried: u64,
    /// Entries that are dead letters now.
    pub buried: u64,
    /// The page was full: there may be more.
    pub more: bool,
}

impl Call for Reclaim {
    type Answer = Reclaimed;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::RECLAIM
    }

    fn what(&self) -> String {
        format!(
            "take back what plain group {} of {}/{} did not acknowledge",
            self.group,
            self.partition.queue(),
            self.partition.number()
        )
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.stream(), p.retry_index(), p.retry_timers(), p.tally(), p.dead()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![
            text(self.group.as_str()),
            self.partition.wake(),
            number(self.lease_ms),
            number(self.attempts),
            number(self.first_ms),
            number(self.most_ms),
            text(&format!("{:.6}", self.chance.clamp(0.5, 1.0))),
            number(self.limit),
            number(self.bytes),
        ]
    }

    fn answer(&self, reply: Reply) -> Result<Reclaimed, Malformed> {
        let mut answer = Answer::open(reply)?;
        let retried = answer.count()?;
        answer.side_error()?;
        Ok(Reclaimed { retried, buried: answer.u64()?, more: answer.u64()? == 1 })
    }
}
