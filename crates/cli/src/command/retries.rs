//! Reads the waiting retries of a partition in pages, by when they are due.

use bytes::Bytes;
use overdue_protocol::Partition;
use overdue_protocol::retry::RetryMember;
use overdue_store::{Result, Store};

use super::place::PAGE;

/// A retry that waits.
pub(crate) struct Retry {
    /// As it stands in the index.
    pub(crate) member: Bytes,
    /// What that means; members that are no retries are left out.
    pub(crate) of: RetryMember,
    /// Not before, unix ms.
    pub(crate) due_ms: u64,
}

/// The retries of one partition.
pub(crate) struct Retries<'a> {
    store: &'a Store,
    partition: &'a Partition,
    after: Option<(u64, Bytes)>,
    ended: bool,
}

impl<'a> Retries<'a> {
    pub(crate) fn of(store: &'a Store, partition: &'a Partition) -> Self {
        Self { store, partition, after: None, ended: false }
    }

    /// The next page, which may hold no retries; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Retry>>> {
        if self.ended {
            return Ok(None);
        }
        let page = self.store.retry_page(self.partition, self.after.take(), None, PAGE).await?;
        self.ended = page.len() < PAGE;
        self.after = page.last().map(|(member, due_ms)| (*due_ms, member.clone()));
        let retry = |(member, due_ms)| Some(Retry { of: RetryMember::decode(&member)?, member, due_ms });
        Ok(Some(page.into_iter().filter_map(retry).collect()))
    }
}
