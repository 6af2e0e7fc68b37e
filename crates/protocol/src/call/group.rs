//! Groups come and go, consumers go (PROTOCOL.md sections 3, 7 and 8).

use bytes::Bytes;

use super::{Call, number, text};
use crate::answer::{Answer, Malformed};
use crate::key::Partition;
use crate::name::GroupName;
use crate::reply::Reply;
use crate::script::{self, Script};

/// Where a new group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum From {
    /// With everything that is in the stream.
    #[default]
    Oldest,
    /// With what fires from now on.
    New,
}

/// Creates a group if it is not there, and writes its base for the books.
#[derive(Clone, Debug)]
pub struct Join {
    /// Where.
    pub partition: Partition,
    /// The group.
    pub group: GroupName,
    /// Where it begins.
    pub from: From,
}

/// The answer of [`Join`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It was created and had no part in the books.
    Created,
    /// It was created and had been there before: the stream or the group was removed behind our back.
    Recreated,
    /// It was there.
    Exists,
}

impl Call for Join {
    type Answer = Joined;

    fn script(&self) -> &'static Script {
        &script::JOIN
    }

    fn what(&self) -> String {
        format!("join group {} of {}/{}", self.group, self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.partition.stream(), self.partition.retry_index(), self.partition.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        let from = match self.from {
            From::Oldest => "0",
            From::New => "$",
        };
        vec![text(self.group.as_str()), text(from)]
    }

    fn answer(&self, reply: Reply) -> Result<Joined, Malformed> {
        match Answer::open(reply)?.word() {
            Some("CREATED") => Ok(Joined::Created),
            Some("RECREATED") => Ok(Joined::Recreated),
            Some("EXISTS") => Ok(Joined::Exists),
            _ => Err(Malformed("join answered an unknown word")),
        }
    }
}

/// Removes a group with its waiting retries and its part of the books; call again while there is a cursor.
#[derive(Clone, Debug)]
pub struct Drop {
    /// Where.
    pub partition: Partition,
    /// The group.
    pub group: GroupName,
    /// Where the call before stopped.
    pub cursor: Option<Bytes>,
}

/// The answer of [`Drop`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Whether the group was there.
    pub existed: bool,
    /// Waiting retries removed by this call.
    pub retries: u64,
    /// Where to go on; until it is `None` the group still stands.
    pub cursor: Option<Bytes>,
}

impl Call for Drop {
    type Answer = Dropped;

    fn script(&self) -> &'static Script {
        &script::DROP
    }

    fn what(&self) -> String {
        format!("drop group {} of {}/{}", self.group, self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.stream(), p.retry_index(), p.retry_timers(), p.tally()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![text(self.group.as_str()), self.cursor.clone().unwrap_or_else(|| text("0"))]
    }

    fn answer(&self, reply: Reply) -> Result<Dropped, Malformed> {
        let mut answer = Answer::open(reply)?;
        Ok(Dropped {
            existed: answer.count()? == 1,
            retries: answer.u64()?,
            cursor: Some(answer.bytes()?).filter(|cursor| cursor != "0"),
        })
    }
}

/// Removes a consumer from its group, if it has nothing pending.
#[derive(Clone, Debug)]
pub struct Retire {
    /// Where.
    pub partition: Partition,
    /// The group.
    pub group: GroupName,
    /// The consumer.
    pub consumer: Bytes,
    /// Only if it has been idle for so many milliseconds.
    pub min_idle_ms: u64,
}

/// The answer of [`Retire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// It is removed.
    Retired,
    /// It was not there.
    Absent,
    /// It has entries pending: it stays.
    Pending,
    /// It was at work lately: it stays.
    Busy,
}

impl Call for Retire {
    type Answer = Retired;

    fn script(&self) -> &'static Script {
        &script::RETIRE
    }

    fn what(&self) -> String {
        format!(
            "retire a consumer of group {} of {}/{}",
            self.group,
            self.partition.queue(),
            self.partition.number()
        )
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.partition.stream()]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![text(self.group.as_str()), self.consumer.clone(), number(self.min_idle_ms)]
    }

    fn answer(&self, reply: Reply) -> Result<Retired, Malformed> {
        match Answer::open(reply)?.word() {
            Some("RETIRED") => Ok(Retired::Retired),
            Some("ABSENT") => Ok(Retired::Absent),
            Some("PENDING") => Ok(Retired::Pending),
            Some("BUSY") => Ok(Retired::Busy),
            _ => Err(Malformed("retire answered an unknown word")),
        }
    }
}
