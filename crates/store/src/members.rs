//! Who is alive (PROTOCOL.md section 1).

use std::collections::BTreeMap;

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::Reply;
use overdue_protocol::member::Member;

use crate::order::Route;
use crate::script;
use crate::{Result, Store};

/// An entry that was not written for this long is of a process that is gone.
const GONE_MS: u64 = 60_000;

impl Store {
    /// Writes a process down as alive.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn beat(&self, name: &str, member: &Member) -> Result<()> {
        let args = vec![
            Value::Bytes(self.keyspace().members()),
            Value::from(name.to_owned()),
            Value::Bytes(Bytes::from(member.encode())),
        ];
        self.command("write this process down", "HSET", args, Route::Key(0)).await.map(|_| ())
    }

    /// Takes a process off the list.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn leave(&self, name: &str) -> Result<()> {
        let args = vec![Value::Bytes(self.keyspace().members()), Value::from(name.to_owned())];
        self.command("take a process off the list", "HDEL", args, Route::Key(0)).await.map(|_| ())
    }

    /// Every process on the list, by name; entries that cannot be read are left out.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn members(&self) -> Result<BTreeMap<String, Member>> {
        let flat =
            self.read("list the processes", &script::HASH, vec![self.keyspace().members()], vec![]).await?;
        let mut members = BTreeMap::new();
        let mut flat = flat.into_iter().filter_map(Reply::into_bytes);
        while let (Some(name), Some(raw)) = (flat.next(), flat.next()) {
            if let (Ok(name), Ok(member)) = (String::from_utf8(name.to_vec()), Member::decode(&raw)) {
                members.insert(name, member);
            }
        }
        Ok(members)
    }

    /// Removes the processes that were not seen for 60 s; answers how many. One that comes back writes itself again.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn members_prune(&self) -> Result<u64> {
        let now = self.time_ms().await?;
        let gone = |member: &Member| member.seen + GONE_MS < now;
        let mut args = vec![Value::Bytes(self.keyspace().members())];
        args.extend(
            self.members().await?.into_iter().filter(|(_, m)| gone(m)).map(|(name, _)| Value::from(name)),
        );
        if args.len() == 1 {
            return Ok(0);
        }
        let removed = self.command("remove processes that are gone", "HDEL", args, Route::Key(0)).await?;
        Ok(removed.as_u64().unwrap_or(0))
    }
}
