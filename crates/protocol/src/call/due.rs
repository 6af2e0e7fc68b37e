//! Watched keys that are due, and forgetting what is old of them (PROTOCOL.md section 5).

use bytes::Bytes;

use super::{Call, number};
use crate::answer::{Answer, Malformed};
use crate::key::Partition;
use crate::reply::Reply;
use crate::script::{self, Script};

/// Reads a page of watched keys that are due, in the order of their deadlines.
#[derive(Clone, Debug)]
pub struct DuePage {
    /// Where.
    pub partition: Partition,
    /// The most keys.
    pub limit: u32,
    /// How many of those that are due to pass over.
    pub offset: u32,
    /// Those too that are due within so many milliseconds. Without, one that is due in this very millisecond is not:
    /// Redis expires it when that is over.
    pub ahead_ms: u64,
}

/// A page of watched keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueKeys {
    /// The server's now, unix milliseconds.
    pub now_ms: u64,
    /// The deadline of the first key behind the page, unix milliseconds: there is more when it is due. A page ends at
    /// 1 MiB of names too.
    pub next_due_ms: Option<u64>,
    /// Members of `watched` and their deadlines. A member that is no [`WatchedKey`] is foreign.
    pub members: Vec<(Bytes, u64)>,
}

impl Call for DuePage {
    type Answer = DueKeys;

    fn script(&self) -> &'static Script {
        &script::DUE
    }

    fn what(&self) -> String {
        format!("read due watched keys of {}/{}", self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.partition.watched()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![number(self.limit), number(self.offset), number(self.ahead_ms)]
    }

    fn answer(&self, reply: Reply) -> Result<DueKeys, Malformed> {
        let mut answer = Answer::open(reply)?;
        let now_ms = answer.u64()?;
        let next_due_ms = Some(answer.u64()?).filter(|&due| due > 0);
        let mut members = vec![];
        while !answer.is_empty() {
            members.push((answer.bytes()?, answer.u64()?));
        }
        Ok(DueKeys { now_ms, next_due_ms, members })
    }
}

/// Forgets names and looks that nothing under way can need.
#[derive(Clone, Debug)]
pub struct Forget {
    /// Where.
    pub partition: Partition,
    /// Up to this position, microseconds.
    pub upto: u64,
    /// About so many of each at most.
    pub limit: u32,
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgot {
    /// How many.
    pub removed: u32,
    /// There is more.
    pub more: bool,
    /// Positions up to this may be forgotten now, microseconds.
    pub horizon: u64,
}

impl Call for Forget {
    type Answer = Forgot;

    fn script(&self) -> &'static Script {
        &script::FORGET
    }

    fn what(&self) -> String {
        format!("forget old names of {}/{}", self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.looked(), p.fired(), p.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![number(self.upto), number(self.limit)]
    }

    fn answer(&self, reply: Reply) -> Result<Forgot, Malformed> {
        let mut answer = Answer::open(reply)?;
        let removed = answer.count()? as u32;
        Ok(Forgot { removed, more: answer.u64()? == 1, horizon: answer.u64()? })
    }
}
