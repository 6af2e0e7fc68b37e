//! Fire what is due (PROTOCOL.md section 3).

use bytes::Bytes;

use super::{Call, number};
use crate::answer::{Answer, Malformed};
use crate::key::Partition;
use crate::name::TimerId;
use crate::reply::Reply;
use crate::script::{self, Script};

/// The most timers a page holds.
pub const PAGE: u32 = 256;
/// The most payload a page holds, in bytes; a page holds always at least one timer.
pub const PAGE_BYTES: u32 = 1024 * 1024;

/// Fires one page of what is due from the index.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Where.
    pub partition: Partition,
    /// The most timers.
    pub limit: u32,
    /// Only what has been due for so many milliseconds.
    pub grace_ms: u64,
    /// The name of this process: for stepping back.
    pub sweeper: Bytes,
}

/// What a sweep did and saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// How many it fired.
    pub fired: u32,
    /// The server's now, unix milliseconds.
    pub now_ms: u64,
    /// The next deadline in the index.
    pub next_due_ms: Option<u64>,
    /// More is due already.
    pub more: bool,
    /// Another process fired here within the last 100 ms.
    pub another: bool,
    /// How many had no record, or a wrong one.
    pub flawed: u32,
    /// The deadlines of what was fired, unix milliseconds.
    pub dues_ms: Vec<u64>,
}

impl Call for Sweep {
    type Answer = Swept;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::SWEEP
    }

    fn what(&self) -> String {
        format!("sweep {}/{}", self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.index(), p.timers(), p.stream(), p.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![number(self.limit), number(PAGE_BYTES), number(self.grace_ms), self.sweeper.clone()]
    }

    fn answer(&self, reply: Reply) -> Result<Swept, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.side_error()?;
        Ok(Swept {
            fired: answer.count()? as u32,
            now_ms: answer.u64()?,
            next_due_ms: Some(answer.u64()?).filter(|&due| due > 0),
            more: answer.u64()? == 1,
            another: answer.u64()? == 1,
            flawed: answer.u64()? as u32,
            dues_ms: answer.text()?.split(',').filter_map(|due| due.parse().ok()).collect(),
        })
    }
}

/// Fires one page of what is due from the retry index.
#[derive(Clone, Debug)]
pub struct SweepRetries {
    /// Where.
    pub partition: Partition,
    /// The most retries.
    pub limit: u32,
}

/// What a sweep of the retry index did and saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptRetries {
    /// How many it put back into the stream.
    pub fired: u32,
    /// The server's now, unix milliseconds.
    pub now_ms: u64,
    /// When the next retry is due.
    pub next_due_ms: Option<u64>,
    /// More is due already.
    pub more: bool,
    /// How many had no record, or a wrong one.
    pub flawed: u32,
    /// How many went to the dead letters because their group is gone.
    pub group_gone: u32,
}

impl Call for SweepRetries {
    type Answer = SweptRetries;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::SWEEP_RETRIES
    }

    fn what(&self) -> String {
        format!("sweep the retries of {}/{}", self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.retry_index(), p.retry_timers(), p.stream(), p.dead(), p.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![number(self.limit), number(PAGE_BYTES)]
    }

    fn answer(&self, reply: Reply) -> Result<SweptRetries, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.side_error()?;
        Ok(SweptRetries {
            fired: answer.count()? as u32,
            now_ms: answer.u64()?,
            next_due_ms: Some(answer.u64()?).filter(|&due| due > 0),
            more: answer.u64()? == 1,
            flawed: answer.u64()? as u32,
            group_gone: answer.u64()? as u32,
        })
    }
}

/// Fires the given ids if they are due: a notification named them.
#[derive(Clone, Debug)]
pub struct Fire {
    /// Where.
    pub partition: Partition,
    /// The ids; at most 1,000.
    pub ids: Vec<TimerId>,
}

/// What became of one named id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiredWord {
    /// It fired; its deadline, unix milliseconds.
    Fired(u64),
    /// It is not armed: swept already, cancelled, or never ours.
    Gone,
    /// It is not due; its deadline, unix milliseconds.
    Early(u64),
    /// The page was full of payload: not looked at.
    More,
}

/// The answer of [`Fire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The server's now, unix milliseconds.
    pub now_ms: u64,
    /// How many had no record, or a wrong one.
    pub flawed: u32,
    /// One for each id, in the order given.
    pub words: Vec<FiredWord>,
}

impl Call for Fire {
    type Answer = Fired;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::FIRE
    }

    fn what(&self) -> String {
        format!(
            "fire {} named timer(s) in {}/{}",
            self.ids.len(),
            self.partition.queue(),
            self.partition.number()
        )
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.index(), p.timers(), p.stream(), p.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        let mut args = vec![number(PAGE_BYTES)];
        args.extend(self.ids.iter().map(|id| id.as_bytes().clone()));
        args
    }

    fn answer(&self, reply: Reply) -> Result<Fired, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.side_error()?;
        let (now_ms, flawed) = (answer.u64()?, answer.u64()? as u32);
        let mut words = Vec::with_capacity(self.ids.len());
        for _ in &self.ids {
            let word = answer.text()?;
            let due = answer.u64()?;
            words.push(match word.as_str() {
                "FIRED" => FiredWord::Fired(due),
                "GONE" => FiredWord::Gone,
                "EARLY" => FiredWord::Early(due),
                "MORE" => FiredWord::More,
                _ => return Err(Malformed("fire answered an unknown word")),
            });
        }
        Ok(Fired { now_ms, flawed, words })
    }
}
