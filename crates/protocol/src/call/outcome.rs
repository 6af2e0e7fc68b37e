//! What a consumer says of delivered timeouts (PROTOCOL.md section 3).

use bytes::Bytes;

use super::{Call, number, text};
use crate::answer::{Answer, Malformed};
use crate::entry::EntryId;
use crate::key::Partition;
use crate::name::GroupName;
use crate::reply::Reply;
use crate::script::{self, Script};

/// A consumer at work on one partition.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Where.
    pub partition: Partition,
    /// Its group.
    pub group: GroupName,
    /// Its name.
    pub consumer: Bytes,
}

impl Standing {
    pub(super) fn what(&self, verb: &str, count: usize) -> String {
        format!(
            "{verb} {count} timeout(s) of group {} in {}/{}",
            self.group,
            self.partition.queue(),
            self.partition.number()
        )
    }

    pub(super) fn who(&self) -> Vec<Bytes> {
        vec![text(self.group.as_str()), self.consumer.clone()]
    }
}

/// One entry to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompleteItem {
    /// Done; it is for every group.
    Done(EntryId),
    /// Done; it is addressed to this group, so that it can be deleted.
    DoneOurs(EntryId),
    /// Addressed to another group: passed over unseen, not counted.
    Passed(EntryId),
}

/// Acknowledges entries, and deletes those that nobody else needs. Not fenced: who finishes first wins.
#[derive(Clone, Debug)]
pub struct Complete {
    /// Who says so.
    pub by: Standing,
    /// The entries; at most 1,000.
    pub items: Vec<CompleteItem>,
    /// The most finished timeouts that the partition's history keeps; 0 for none.
    pub history: u32,
}

/// The answer of [`Complete`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// How many were acknowledged by this call.
    pub done: u64,
    /// Positions, from 0, of those that were not pending any more: lost.
    pub lost: Vec<usize>,
}

impl Call for Complete {
    type Answer = Completed;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::COMPLETE
    }

    fn what(&self) -> String {
        self.by.what("acknowledge", self.items.len())
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.by.partition;
        let mut keys = vec![p.stream(), p.tally()];
        if self.history > 0 {
            keys.push(p.history());
        }
        keys
    }

    fn args(&self) -> Vec<Bytes> {
        let mut args = Vec::with_capacity(3 + self.items.len() * 2);
        args.extend(self.by.who());
        args.push(number(self.history));
        for item in &self.items {
            let (id, flag) = match item {
                CompleteItem::Done(id) => (id, "all"),
                CompleteItem::DoneOurs(id) => (id, "ours"),
                CompleteItem::Passed(id) => (id, "other"),
            };
            args.extend([id.to_bytes(), Bytes::from_static(flag.as_bytes())]);
        }
        args
    }

    fn answer(&self, reply: Reply) -> Result<Completed, Malformed> {
        let mut answer = Answer::open(reply)?;
        let done = answer.count()?;
        answer.side_error()?;
        let mut lost = Vec::new();
        while !answer.is_empty() {
            lost.push(answer.u64()? as usize - 1);
        }
        Ok(Completed { done, lost })
    }
}

/// What became of each entry of a fenced call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// As asked.
    Ok,
    /// It is not pending for this consumer: nothing was written.
    Lost,
    /// It was pending, but somebody deleted the entry: acknowledged, nothing else to do.
    Gone,
}

fn words(reply: Reply, count: usize) -> Result<Vec<Words>, Malformed> {
    let mut answer = Answer::open(reply)?;
    answer.count()?;
    answer.side_error()?;
    (0..count)
        .map(|_| match answer.text()?.as_str() {
            "OK" => Ok(Words::Ok),
            "LOST" => Ok(Words::Lost),
            "GONE" => Ok(Words::Gone),
            _ => Err(Malformed("a fenced script answered an unknown word")),
        })
        .collect()
}

/// One entry to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryItem {
    /// The entry.
    pub entry: EntryId,
    /// How long after the server's now, in milliseconds.
    pub delay_ms: u64,
}

/// Moves delivered timeouts to the retry index, each with its next attempt. Fenced.
#[derive(Clone, Debug)]
pub struct Retry {
    /// Who says so.
    pub by: Standing,
    /// The entries; at most 256.
    pub items: Vec<RetryItem>,
}

impl Call for Retry {
    type Answer = Vec<Words>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::RETRY
    }

    fn what(&self) -> String {
        self.by.what("retry", self.items.len())
    }

    fn keys(&self) -> Vec<Bytes> {
        requeue_keys(&self.by)
    }

    fn args(&self) -> Vec<Bytes> {
        requeue_args(&self.by, &self.items)
    }

    fn answer(&self, reply: Reply) -> Result<Vec<Words>, Malformed> {
        words(reply, self.items.len())
    }
}

fn requeue_keys(by: &Standing) -> Vec<Bytes> {
    let p = &by.partition;
    vec![p.stream(), p.retry_index(), p.retry_timers(), p.tally()]
}

fn requeue_args(by: &Standing, items: &[RetryItem]) -> Vec<Bytes> {
    let mut args = by.who();
    args.push(by.partition.wake());
    args.extend(items.iter().flat_map(|item| [item.entry.to_bytes(), number(item.delay_ms)]));
    args
}

/// Hands delivered timeouts back, each after a while (0: at once), with the same attempt. Fenced.
#[derive(Clone, Debug)]
pub struct Release {
    /// Who says so.
    pub by: Standing,
    /// The entries; at most 256.
    pub items: Vec<RetryItem>,
}

impl Call for Release {
    type Answer = Vec<Words>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::RELEASE
    }

    fn what(&self) -> String {
        self.by.what("release", self.items.len())
    }

    fn keys(&self) -> Vec<Bytes> {
        requeue_keys(&self.by)
    }

    fn args(&self) -> Vec<Bytes> {
        requeue_args(&self.by, &self.items)
    }

    fn answer(&self, reply: Reply) -> Result<Vec<Words>, Malformed> {
        words(reply, self.items.len())
    }
}

/// One entry to give up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuryItem {
    /// The entry.
    pub entry: EntryId,
    /// Why, as a word: `rejected`, `attempts`, `malformed` ...
    pub reason: &'static str,
    /// Why, in full; cut by the caller.
    pub detail: Bytes,
}

/// Moves delivered timeouts to the dead letters. Fenced.
#[derive(Clone, Debug)]
pub struct Bury {
    /// Who says so.
    pub by: Standing,
    /// The entries; at most 256.
    pub items: Vec<BuryItem>,
}

impl Call for Bury {
    type Answer = Vec<Words>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::BURY
    }

    fn what(&self) -> String {
        self.by.what("bury", self.items.len())
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.by.partition.stream(), self.by.partition.dead(), self.by.partition.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        let mut args = self.by.who();
        for item in &self.items {
            args.extend([
                item.entry.to_bytes(),
                Bytes::from_static(item.reason.as_bytes()),
                item.detail.clone(),
            ]);
        }
        args
    }

    fn answer(&self, reply: Reply) -> Result<Vec<Words>, Malformed> {
        words(reply, self.items.len())
    }
}

/// Renews the leases of entries in hand. Fenced.
#[derive(Clone, Debug)]
pub struct Renew {
    /// Who says so.
    pub by: Standing,
    /// The entries; at most 1,000.
    pub entries: Vec<EntryId>,
}

impl Call for Renew {
    /// Positions, from 0, of those that are not ours any more: lost.
    type Answer = Vec<usize>;

    fn script(&self) -> &'static Script {
        &script::RENEW
    }

    fn what(&self) -> String {
        self.by.what("renew", self.entries.len())
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.by.partition.stream()]
    }

    fn args(&self) -> Vec<Bytes> {
        let mut args = self.by.who();
        args.extend(self.entries.iter().map(|entry| entry.to_bytes()));
        args
    }

    fn answer(&self, reply: Reply) -> Result<Vec<usize>, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.count()?;
        let mut lost = Vec::new();
        while !answer.is_empty() {
            lost.push(answer.u64()? as usize - 1);
        }
        Ok(lost)
    }
}
