//! A connection of its own for one blocked reader.

use std::time::Duration;

use bytes::Bytes;
use fred::interfaces::ClientInterface;
use fred::types::ClientUnblockFlag;
use fred::types::Value;
use overdue_protocol::entry::EntryId;
use overdue_protocol::{GroupName, RawEntry};
use overdue_telemetry::label::ConnectionRole;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::frame;
use crate::order::{Order, Route};
use crate::way::Way;
use crate::{Result, Settings};

/// How long after the end of its block a read may still answer.
const GRACE: Duration = Duration::from_secs(2);

/// A connection that one task reads with. No other command is sent on it.
pub struct Reader {
    connection: Connection,
}

impl Reader {
    /// Connects; fails as [`crate::Store::connect`] does.
    ///
    /// # Errors
    /// Within about `settings.connect_deadline`.
    pub async fn open(settings: &Settings, role: &str) -> Result<Self> {
        let connection = Connection::open(settings, role, ConnectionRole::Reader).await?.impatient();
        Ok(Self { connection })
    }

    /// Reads up to `count` new entries for a group (XREADGROUP `>`), waiting up to `block` for the first.
    ///
    /// Answers within `block` + 2 s; a server that does not is left. Not cancel-safe: a read that is dropped may have
    /// been given entries that nobody sees. Await it; to end it early, call [`Reader::unblock`] from another task.
    /// After any error, look for entries that are pending for the own name.
    ///
    /// # Errors
    /// `NoGroup` when group or stream are gone, or went while waiting; `OutcomeUnknown` when the answer was lost.
    pub async fn read(
        &self,
        stream: &Bytes,
        group: &GroupName,
        consumer: &str,
        count: usize,
        block: Duration,
    ) -> Result<Vec<RawEntry>> {
        let mut args: Vec<Value> =
            vec!["GROUP".into(), group.as_str().to_owned().into(), consumer.to_owned().into()];
        page(&mut args, count, block);
        let place = args.len() + 1;
        args.extend(["STREAMS".into(), Value::Bytes(stream.clone()), ">".into()]);
        self.send(&format!("read as {group}"), "XREADGROUP", args, place, block).await
    }

    /// Reads entries behind `after` without a group (XREAD), waiting up to `block` for the first. Changes nothing.
    ///
    /// # Errors
    /// As [`crate::Store::run`].
    pub async fn follow(
        &self,
        stream: &Bytes,
        after: &EntryId,
        count: usize,
        block: Duration,
    ) -> Result<Vec<RawEntry>> {
        let mut args = Vec::with_capacity(7);
        page(&mut args, count, block);
        let place = args.len() + 1;
        args.extend(["STREAMS".into(), Value::Bytes(stream.clone()), Value::Bytes(after.to_bytes())]);
        self.send("follow a stream", "XREAD", args, place, block).await
    }

    async fn send(
        &self,
        doing: &str,
        name: &'static str,
        args: Vec<Value>,
        place: usize,
        block: Duration,
    ) -> Result<Vec<RawEntry>> {
        let order = Order::new(name, args, Route::Blocking(place), block + GRACE);
        let answer = self.connection.send(&order).await.and_then(frame::entries_of_read);
        answer.map_err(|fault| fault.during(doing, &self.connection.place))
    }

    /// Ends the read that is blocked now, if any; it answers what it has, most often nothing.
    ///
    /// A read that begins later is not touched: set a flag, and call this until the reading task has ended.
    pub async fn unblock(&self) {
        let client = &self.connection.client;
        let unblock = async {
            if self.connection.is_cluster() {
                // Only the library knows which node is meant.
                let _ = client.unblock_self(Some(ClientUnblockFlag::Timeout)).await;
                return;
            }
            // Not by `unblock_self`: one that comes a moment before the server began to block makes the library
            // believe for the whole block that nothing is blocked.
            for id in client.connection_ids().into_values() {
                let _ = client.client_unblock::<i64, _>(id, Some(ClientUnblockFlag::Timeout)).await;
            }
        };
        // Refused when nothing is blocked at this moment: nothing to do then.
        let _ = timeout(Duration::from_secs(1), unblock).await;
    }

    /// Closes the connection, politely for at most a second; a blocked read ends first.
    pub async fn close(&self) {
        self.unblock().await;
        self.connection.close().await;
    }
}

fn page(args: &mut Vec<Value>, count: usize, block: Duration) {
    args.extend(["COUNT".into(), Value::Integer(i64::try_from(count).unwrap_or(i64::MAX).max(1))]);
    // BLOCK 0 would mean for ever.
    let millis = i64::try_from(block.as_millis()).unwrap_or(i64::MAX);
    if millis > 0 {
        args.extend(["BLOCK".into(), Value::Integer(millis)]);
    }
}
