//! Looking at streams and groups, without reading for a group. A stream that is not there is empty.

use std::collections::HashMap;

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::entry::EntryId;
use overdue_protocol::{GroupName, Malformed, Partition, RawEntry, Reply};

use crate::order::Route;
use crate::timers::LONGEST_PAGE;
use crate::{Error, ErrorKind, Result, Store};

/// A group of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// Its name. Foreign groups may have any.
    pub name: String,
    /// How many consumers it has.
    pub consumers: u64,
    /// How many entries are delivered and not acknowledged.
    pub pending: u64,
    /// The last entry delivered to it.
    pub last_delivered: EntryId,
    /// How many entries it was ever given; `None` when Redis does not know, or is older than 7.
    pub entries_read: Option<u64>,
    /// How many entries it was not given yet; `None` when Redis does not know, or is older than 7.
    pub lag: Option<u64>,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerInfo {
    /// Its name.
    pub name: String,
    /// How many entries it holds.
    pub pending: u64,
    /// Milliseconds since it last asked for something.
    pub idle_ms: u64,
}

/// An entry that is delivered and not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Which entry.
    pub id: EntryId,
    /// Who holds it.
    pub consumer: String,
    /// Milliseconds since it was delivered or its lease renewed.
    pub idle_ms: u64,
    /// How often it was delivered, as Redis counts.
    pub deliveries: u64,
}

impl Store {
    /// How many entries a stream has.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn length(&self, stream: &Bytes) -> Result<u64> {
        self.count("count entries", "XLEN", vec![Value::Bytes(stream.clone())]).await
    }

    /// The entries behind `after`, oldest first, at most `limit` (1,000 at most).
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn entries(
        &self,
        stream: &Bytes,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<RawEntry>> {
        self.range("XRANGE", stream, behind(after), "+".into(), limit).await
    }

    /// The last `limit` entries (1,000 at most), newest first.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn last_entries(&self, stream: &Bytes, limit: usize) -> Result<Vec<RawEntry>> {
        self.range("XREVRANGE", stream, "+".into(), "-".into(), limit).await
    }

    /// One entry, or `None`.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn entry(&self, stream: &Bytes, id: EntryId) -> Result<Option<RawEntry>> {
        Ok(self.range("XRANGE", stream, id.to_string(), id.to_string(), 1).await?.into_iter().next())
    }

    async fn range(
        &self,
        name: &'static str,
        stream: &Bytes,
        from: String,
        to: String,
        limit: usize,
    ) -> Result<Vec<RawEntry>> {
        let doing = "read entries";
        let limit = limit.clamp(1, LONGEST_PAGE).to_string();
        let args = vec![Value::Bytes(stream.clone()), from.into(), to.into(), "COUNT".into(), limit.into()];
        let entries = self.command(doing, name, args, Route::Key(0)).await?.into_array().unwrap_or_default();
        entries
            .into_iter()
            .map(RawEntry::from_reply)
            .collect::<std::result::Result<_, _>>()
            .map_err(|e| Error::malformed(doing, e))
    }

    /// The groups of a partition's stream.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn groups(&self, partition: &Partition) -> Result<Vec<GroupInfo>> {
        let doing = format!("list the groups of {}/{}", partition.queue(), partition.number());
        let args = vec!["GROUPS".into(), Value::Bytes(partition.stream())];
        let rows = self.rows(&doing, args).await?;
        let read = |row: &Row| {
            Some(GroupInfo {
                name: row.text("name")?,
                consumers: row.number("consumers")?,
                pending: row.number("pending")?,
                last_delivered: row.text("last-delivered-id")?.parse().ok()?,
                entries_read: row.number("entries-read"),
                lag: row.number("lag"),
            })
        };
        let groups = rows.iter().map(read).collect::<Option<_>>();
        groups.ok_or_else(|| Error::malformed(doing, Malformed("XINFO GROUPS has an unknown shape")))
    }

    /// The consumers of a group; empty when there is no such group.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn consumers(&self, partition: &Partition, group: &GroupName) -> Result<Vec<ConsumerInfo>> {
        let doing = format!("list the consumers of {group} in {}/{}", partition.queue(), partition.number());
        let group = Value::from(group.as_str().to_owned());
        let rows =
            self.rows(&doing, vec!["CONSUMERS".into(), Value::Bytes(partition.stream()), group]).await?;
        let read = |row: &Row| {
            let (name, pending, idle_ms) = (row.text("name")?, row.number("pending")?, row.number("idle")?);
            Some(ConsumerInfo { name, pending, idle_ms })
        };
        let consumers = rows.iter().map(read).collect::<Option<_>>();
        consumers.ok_or_else(|| Error::malformed(doing, Malformed("XINFO CONSUMERS has an unknown shape")))
    }

    async fn rows(&self, doing: &str, args: Vec<Value>) -> Result<Vec<Row>> {
        let rows = match self.command(doing, "XINFO", args, Route::Key(1)).await {
            Ok(rows) => rows,
            Err(error) if is_missing(&error) => return Ok(vec![]),
            Err(error) => return Err(error),
        };
        Ok(rows.into_array().unwrap_or_default().into_iter().map(Row::new).collect())
    }

    /// A page of what a group holds, behind entry `after`, at most `limit` (1,000 at most).
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn pending_page(
        &self,
        partition: &Partition,
        group: &GroupName,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<Pending>> {
        self.pending_range(partition, group, behind(after), "+".into(), limit).await
    }

    /// Who of a group holds an entry, or `None`.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn pending(
        &self,
        partition: &Partition,
        group: &GroupName,
        entry: EntryId,
    ) -> Result<Option<Pending>> {
        let only = entry.to_string();
        Ok(self.pending_range(partition, group, only.clone(), only, 1).await?.into_iter().next())
    }

    async fn pending_range(
        &self,
        partition: &Partition,
        group: &GroupName,
        from: String,
        to: String,
        limit: usize,
    ) -> Result<Vec<Pending>> {
        let doing = format!("list what {group} holds of {}/{}", partition.queue(), partition.number());
        let limit = limit.clamp(1, LONGEST_PAGE).to_string();
        let group = Value::from(group.as_str().to_owned());
        let args = vec![Value::Bytes(partition.stream()), group, from.into(), to.into(), limit.into()];
        let rows = match self.command(&doing, "XPENDING", args, Route::Key(0)).await {
            Ok(rows) => rows.into_array().unwrap_or_default(),
            Err(error) if is_missing(&error) => return Ok(vec![]),
            Err(error) => return Err(error),
        };
        let read = |row: Reply| {
            let row = row.into_array()?;
            Some(Pending {
                id: row.first()?.as_str()?.parse().ok()?,
                consumer: row.get(1)?.as_str()?.to_owned(),
                idle_ms: row.get(2)?.as_u64()?,
                deliveries: row.get(3)?.as_u64()?,
            })
        };
        let page = rows.into_iter().map(read).collect::<Option<_>>();
        page.ok_or_else(|| Error::malformed(doing, Malformed("XPENDING has an unknown shape")))
    }

    /// Deletes dead letters; answers how many were there.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn delete_dead(&self, partition: &Partition, ids: &[EntryId]) -> Result<u64> {
        if ids.is_empty() {
            return Ok(0);
        }
        let mut args = vec![Value::Bytes(partition.dead())];
        args.extend(ids.iter().map(|id| Value::Bytes(id.to_bytes())));
        self.count("delete dead letters", "XDEL", args).await
    }
}

fn behind(after: Option<EntryId>) -> String {
    after.map_or_else(|| "-".to_owned(), |id| format!("({id}"))
}

/// No stream, or no such group: what a fresh queue looks like.
fn is_missing(error: &crate::Error) -> bool {
    error.kind() == ErrorKind::NoGroup || error.to_string().contains("no such key")
}

/// One flat list of names and values, as XINFO answers it.
struct Row(HashMap<String, Reply>);

impl Row {
    fn new(reply: Reply) -> Self {
        let mut row = HashMap::new();
        let mut flat = reply.into_array().unwrap_or_default().into_iter();
        while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
            if let Some(name) = name.as_str() {
                row.insert(name.to_owned(), value);
            }
        }
        Self(row)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Reply::as_u64)
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Reply::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}
