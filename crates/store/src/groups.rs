//! What is behind with a group, and who of it has left.

use std::time::Duration;

use overdue_protocol::call::{Retire, Retired};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{GroupName, Malformed, Partition, Reply};

use crate::script;
use crate::{Error, Result, Store};

/// The oldest that a group has not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The group. Foreign groups may have any name.
    pub group: String,
    /// The oldest entry that it holds.
    pub held: Option<EntryId>,
    /// The first entry that it was not given yet.
    pub unread: Option<EntryId>,
}

impl Unfinished {
    /// When the older of the two entered the stream, unix milliseconds. The server's clock may have been stepped since.
    #[must_use]
    pub fn since_ms(&self) -> Option<u64> {
        [self.held, self.unread].into_iter().flatten().map(|id| id.ms).min()
    }
}

impl Store {
    /// The oldest that each group of a partition's stream has not finished.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn unfinished(&self, partition: &Partition) -> Result<Vec<Unfinished>> {
        let doing = format!("look up the oldest entries of {}/{}", partition.queue(), partition.number());
        let flat = self.read(&doing, &script::WAITING, vec![partition.stream()], vec![]).await?;
        let read = |row: &[Reply]| {
            let text =
                |reply: &Reply| reply.clone().into_bytes().map(|b| String::from_utf8_lossy(&b).into_owned());
            let [group, held, unread] = row else { return None };
            let (held, unread) = (text(held)?, text(unread)?);
            Some(Unfinished { group: text(group)?, held: held.parse().ok(), unread: unread.parse().ok() })
        };
        let groups = flat.chunks(3).map(read).collect::<Option<_>>();
        groups.ok_or_else(|| Error::malformed(doing, Malformed("store/waiting has an unknown shape")))
    }

    /// Removes the consumers of a group that hold nothing and have asked for nothing for `idle`; answers their names.
    /// The one called `but` stays.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn retire_idle(
        &self,
        partition: &Partition,
        group: &GroupName,
        idle: Duration,
        but: &str,
    ) -> Result<Vec<String>> {
        let min_idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        let mut retired = vec![];
        for one in self.consumers(partition, group).await? {
            if one.pending > 0 || one.idle_ms < min_idle_ms || one.name == but {
                continue;
            }
            let (partition, group) = (partition.clone(), group.clone());
            let retire = Retire { partition, group, consumer: one.name.clone().into(), min_idle_ms };
            if self.run(&retire).await? == Retired::Retired {
                retired.push(one.name);
            }
        }
        Ok(retired)
    }
}
