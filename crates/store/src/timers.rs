//! Looking at what is armed. Nothing here changes anything.

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::{Malformed, Partition, Record, Reply, TimerId};

use crate::order::Route;
use crate::script;
use crate::{Error, Result, Store};

/// No page is longer, whatever is asked for.
pub(crate) const LONGEST_PAGE: usize = 1_000;

impl Store {
    /// How many timers are armed.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn depth(&self, partition: &Partition) -> Result<u64> {
        self.count("count timers", "ZCARD", vec![Value::Bytes(partition.index())]).await
    }

    /// A page of armed timers in the order of (due ms, id): those behind the cursor `after`, due before `before`, at
    /// most `limit` (1,000 at most). Members that are no ids are left out.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn index_page(
        &self,
        partition: &Partition,
        after: Option<(u64, TimerId)>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(TimerId, u64)>> {
        let after = after.map(|(due, id)| (due, id.into_bytes()));
        let page = self.page("list timers", partition.index(), after, before, limit).await?;
        Ok(page.into_iter().filter_map(|(id, due)| Some((TimerId::new(id).ok()?, due))).collect())
    }

    /// An armed timer's due ms and record; the record is `None` when it is missing or no record.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn record(&self, partition: &Partition, id: &TimerId) -> Result<Option<(u64, Option<Record>)>> {
        let keys = vec![partition.index(), partition.timers()];
        self.scored("look up a timer", keys, id.as_bytes().clone()).await
    }

    /// A waiting retry's "not before" and record, by its member, as [`Store::record`].
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn retry_record(
        &self,
        partition: &Partition,
        member: &Bytes,
    ) -> Result<Option<(u64, Option<Record>)>> {
        let keys = vec![partition.retry_index(), partition.retry_timers()];
        self.scored("look up a retry", keys, member.clone()).await
    }

    async fn scored(
        &self,
        doing: &str,
        keys: Vec<Bytes>,
        member: Bytes,
    ) -> Result<Option<(u64, Option<Record>)>> {
        let found = self.read(doing, &script::RECORD, keys, vec![member]).await?;
        let mut found = found.into_iter();
        let Some(score) = found.next() else { return Ok(None) };
        let record = found.next().and_then(Reply::into_bytes).and_then(|raw| Record::decode(&raw));
        Ok(Some((due_of(&score), record)))
    }

    /// The earliest due ms, or `None` when nothing is armed.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn head(&self, partition: &Partition) -> Result<Option<u64>> {
        self.first("look up the earliest timer", partition.index()).await
    }

    /// How many timers are due at `now_ms` (server's clock) and not fired yet.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn overdue_count(&self, partition: &Partition, now_ms: u64) -> Result<u64> {
        let args =
            vec![Value::Bytes(partition.index()), Value::from("-inf"), Value::from(now_ms.to_string())];
        self.count("count due timers", "ZCOUNT", args).await
    }

    /// How many retries wait.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn retry_depth(&self, partition: &Partition) -> Result<u64> {
        self.count("count retries", "ZCARD", vec![Value::Bytes(partition.retry_index())]).await
    }

    /// The earliest "not before" of a waiting retry, unix ms, or `None`.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn retry_head(&self, partition: &Partition) -> Result<Option<u64>> {
        self.first("look up the earliest retry", partition.retry_index()).await
    }

    /// A page of waiting retries, as [`Store::index_page`]; members are `<group>/<id>/<generation>`.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn retry_page(
        &self,
        partition: &Partition,
        after: Option<(u64, Bytes)>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(Bytes, u64)>> {
        self.page("list retries", partition.retry_index(), after, before, limit).await
    }

    /// How long a key has to live, milliseconds; `None` for good, or when it is not there.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn ttl_ms(&self, key: &Bytes) -> Result<Option<u64>> {
        let reply =
            self.command("ask for a TTL", "PTTL", vec![Value::Bytes(key.clone())], Route::Key(0)).await?;
        // -1: none; -2: no such key.
        Ok(reply.as_u64())
    }

    pub(crate) async fn count(&self, doing: &str, name: &'static str, args: Vec<Value>) -> Result<u64> {
        let reply = self.command(doing, name, args, Route::Key(0)).await?;
        reply.as_u64().ok_or_else(|| Error::malformed(doing, Malformed("a count is not a number")))
    }

    async fn first(&self, doing: &str, key: Bytes) -> Result<Option<u64>> {
        Ok(self.page(doing, key, None, None, 1).await?.first().map(|(_, due)| *due))
    }

    pub(crate) async fn page(
        &self,
        doing: &str,
        key: Bytes,
        after: Option<(u64, Bytes)>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(Bytes, u64)>> {
        let number = |n: u64| Bytes::from(n.to_string());
        let (score, member) =
            after.map_or((Bytes::new(), Bytes::new()), |(due, member)| (number(due), member));
        let limit = number(limit.min(LONGEST_PAGE) as u64);
        let args = vec![score, member, before.map_or(Bytes::new(), number), limit];
        let mut flat = self.read(doing, &script::PAGE, vec![key], args).await?.into_iter();
        let mut page = Vec::with_capacity(flat.len() / 2);
        while let (Some(member), Some(score)) = (flat.next(), flat.next()) {
            let due = due_of(&score);
            page.push((
                member
                    .into_bytes()
                    .ok_or_else(|| Error::malformed(doing, Malformed("a member is no string")))?,
                due,
            ));
        }
        Ok(page)
    }
}

/// A score as ms. One that no script of ours writes (negative, a fraction, infinite) is shown as the nearest.
pub(crate) fn due_of(score: &Reply) -> u64 {
    let near =
        || score.as_str().and_then(|text| text.parse::<f64>().ok()).map_or(0, |n| n.clamp(0.0, 9e15) as u64);
    score.as_u64().unwrap_or_else(near)
}
