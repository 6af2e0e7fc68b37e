//! Looking at the index of watched keys. Its members are any bytes: whoever reads them decides what is a key.

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::watch::Captured;
use overdue_protocol::{Partition, Reply};

use crate::order::Route;
use crate::timers::due_of;
use crate::{Result, Store, script};

impl Store {
    /// How many watched keys there are whose end is known.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn watched_depth(&self, partition: &Partition) -> Result<u64> {
        self.count("count watched keys", "ZCARD", vec![Value::Bytes(partition.watched())]).await
    }

    /// How many watched keys are due at `now_ms` (server's clock) and not settled yet.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn watched_overdue_count(&self, partition: &Partition, now_ms: u64) -> Result<u64> {
        let before = Value::from(format!("({now_ms}"));
        let args = vec![Value::Bytes(partition.watched()), Value::from("-inf"), before];
        self.count("count due watched keys", "ZCOUNT", args).await
    }

    /// A page of members and their due ms in the order of (due ms, member), as [`Store::index_page`].
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn watched_page(
        &self,
        partition: &Partition,
        after: Option<(u64, Bytes)>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(Bytes, u64)>> {
        self.page("list watched keys", partition.watched(), after, before, limit).await
    }

    /// The due ms of each of these members, in their order; `None` for those that are not there.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn watched_dues(&self, partition: &Partition, members: &[Bytes]) -> Result<Vec<Option<u64>>> {
        if members.is_empty() {
            return Ok(vec![]);
        }
        let mut args = vec![Value::Bytes(partition.watched())];
        args.extend(members.iter().cloned().map(Value::Bytes));
        let scores = self.command("look up watched keys", "ZMSCORE", args, Route::Key(0)).await?;
        let scores = scores.into_array().unwrap_or_default();
        Ok(scores.iter().map(|score| (*score != Reply::Nil).then(|| due_of(score))).collect())
    }

    /// What the last look at a watched key captured, by its member; `None` for nothing.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn captured(&self, partition: &Partition, member: &Bytes) -> Result<Option<Captured>> {
        let doing = "look up a captured value";
        let found = self.read(doing, &script::FIELD, vec![partition.last()], vec![member.clone()]).await?;
        let raw = found.into_iter().next().and_then(Reply::into_bytes);
        Ok(raw.and_then(|raw| Captured::unpack(&raw)))
    }

    /// Removes members that are no keys; answers how many were there.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn remove_watched(&self, partition: &Partition, members: &[Bytes]) -> Result<u32> {
        if members.is_empty() {
            return Ok(0);
        }
        let mut args = vec![Value::Bytes(partition.watched())];
        args.extend(members.iter().cloned().map(Value::Bytes));
        Ok(self.count("remove what is no watched key", "ZREM", args).await? as u32)
    }
}
