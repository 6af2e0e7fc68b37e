//! Keep the house: trim, replay, discard (PROTOCOL.md sections 3 and 8).

use bytes::Bytes;

use super::{Call, number, text};
use crate::answer::{Answer, Malformed};
use crate::entry::EntryId;
use crate::key::Partition;
use crate::name::GroupName;
use crate::reply::Reply;
use crate::script::{self, Script};

/// Deletes what every group has finished, and dead letters beyond their bounds.
#[derive(Clone, Debug)]
pub struct Trim {
    /// Where.
    pub partition: Partition,
    /// The most dead letters to keep.
    pub dead_max: u64,
    /// How long to keep a dead letter, in milliseconds.
    pub dead_max_age_ms: u64,
}

/// The answer of [`Trim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Entries deleted from the stream.
    pub deleted: u64,
    /// Entries left in the stream.
    pub length: u64,
    /// There is more to delete.
    pub more: bool,
    /// Dead letters removed.
    pub dead_deleted: u64,
}

impl Call for Trim {
    type Answer = Trimmed;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::TRIM
    }

    fn what(&self) -> String {
        format!("trim {}/{}", self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.partition.stream(), self.partition.dead(), self.partition.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![number(self.dead_max), number(self.dead_max_age_ms)]
    }

    fn answer(&self, reply: Reply) -> Result<Trimmed, Malformed> {
        let mut answer = Answer::open(reply)?;
        let deleted = answer.count()?;
        answer.side_error()?;
        Ok(Trimmed { deleted, length: answer.u64()?, more: answer.u64()? == 1, dead_deleted: answer.u64()? })
    }
}

/// Puts dead letters back into the stream, each addressed to its group, attempt 1, same generation.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Where.
    pub partition: Partition,
    /// The dead letters; at most 256, and 1 MiB of payload.
    pub letters: Vec<EntryId>,
}

/// What became of one dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It is back in the stream.
    Ok,
    /// It is gone.
    Absent,
    /// It has no id, generation, due or payload to put back.
    Bad,
    /// Its group is gone; it comes back when a consumer of that group starts.
    NoGroup,
}

impl Call for Replay {
    type Answer = Vec<Replayed>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::REPLAY
    }

    fn what(&self) -> String {
        format!(
            "replay {} dead letter(s) of {}/{}",
            self.letters.len(),
            self.partition.queue(),
            self.partition.number()
        )
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.partition.stream(), self.partition.dead(), self.partition.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        self.letters.iter().map(|id| id.to_bytes()).collect()
    }

    fn answer(&self, reply: Reply) -> Result<Vec<Replayed>, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.count()?;
        answer.side_error()?;
        self.letters
            .iter()
            .map(|_| match answer.text()?.as_str() {
                "OK" => Ok(Replayed::Ok),
                "ABSENT" => Ok(Replayed::Absent),
                "BAD" => Ok(Replayed::Bad),
                "NOGROUP" => Ok(Replayed::NoGroup),
                _ => Err(Malformed("replay answered an unknown word")),
            })
            .collect()
    }
}

/// One thing to take out by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscardItem {
    /// A waiting retry, by its member.
    Retry(Bytes),
    /// A fired timeout, for one group.
    Entry(EntryId, GroupName),
}

/// Takes waiting retries and fired timeouts out by hand.
#[derive(Clone, Debug)]
pub struct Discard {
    /// Where.
    pub partition: Partition,
    /// What; at most 256.
    pub items: Vec<DiscardItem>,
}

/// What became of one thing to take out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// It is taken out.
    Ok,
    /// It is not there (any more).
    Absent,
    /// Other groups still need the entry and this one has not read it: it stays.
    Unread,
}

impl Call for Discard {
    type Answer = Vec<Discarded>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::DISCARD
    }

    fn what(&self) -> String {
        format!(
            "discard {} timeout(s) of {}/{}",
            self.items.len(),
            self.partition.queue(),
            self.partition.number()
        )
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.stream(), p.retry_index(), p.retry_timers(), p.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        let item = |item: &DiscardItem| match item {
            DiscardItem::Retry(member) => [text("retry"), member.clone(), Bytes::new()],
            DiscardItem::Entry(id, group) => [text("entry"), id.to_bytes(), text(group.as_str())],
        };
        self.items.iter().flat_map(item).collect()
    }

    fn answer(&self, reply: Reply) -> Result<Vec<Discarded>, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.count()?;
        answer.side_error()?;
        self.items
            .iter()
            .map(|_| match answer.text()?.as_str() {
                "OK" => Ok(Discarded::Ok),
                "ABSENT" => Ok(Discarded::Absent),
                "UNREAD" => Ok(Discarded::Unread),
                _ => Err(Malformed("discard answered an unknown word")),
            })
            .collect()
    }
}
