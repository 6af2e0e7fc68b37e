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

mod direct;
mod page;

use direct::Direct;

/// How long after the end of its block a read may still answer.
const GRACE: Duration = Duration::from_secs(2);

/// A connection that one task reads with. No other command is sent on it.
pub struct Reader {
    over: Over,
}

enum Over {
    Server(Box<Direct>),
    /// Only the library knows which node is meant.
    Cluster(Connection),
}

impl Reader {
    /// Connects; fails as [`crate::Store::connect`] does.
    ///
    /// # Errors
    /// Within about `settings.connect_deadline`.
    pub async fn open(settings: &Settings, role: &str) -> Result<Self> {
        let (at, tls) = settings.endpoint()?;
        if at.is_cluster() {
            let connection = Connection::open(settings, role, ConnectionRole::Reader).await?.impatient();
            return Ok(Self { over: Over::Cluster(connection) });
        }
        let place = at.to_string();
        let direct = Direct::open(settings, at, tls, role).await;
        let direct = direct.map_err(|fault| fault.during("connect", &place))?;
        Ok(Self { over: Over::Server(Box::new(direct)) })
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
        let mut words = vec![word("GROUP"), word(group.as_str()), word(consumer)];
        page(&mut words, count, block);
        words.extend([word("STREAMS"), stream.clone(), word(">")]);
        self.send(&format!("read as {group}"), "XREADGROUP", words, block).await
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
        let mut words = Vec::with_capacity(7);
        page(&mut words, count, block);
        words.extend([word("STREAMS"), stream.clone(), after.to_bytes()]);
        self.send("follow a stream", "XREAD", words, block).await
    }

    /// The key stands before the last of the words.
    async fn send(
        &self,
        doing: &str,
        name: &'static str,
        words: Vec<Bytes>,
        block: Duration,
    ) -> Result<Vec<RawEntry>> {
        let deadline = block + GRACE;
        match &self.over {
            Over::Server(direct) => {
                let words: Vec<&[u8]> =
                    [name.as_bytes()].into_iter().chain(words.iter().map(AsRef::as_ref)).collect();
                let entries = direct.read(name, &words, deadline).await;
                entries.map_err(|fault| fault.during(doing, direct.place()))
            }
            Over::Cluster(connection) => {
                let place = words.len() - 2;
                let args = words.into_iter().map(Value::Bytes).collect();
                let order = Order::new(name, args, Route::Blocking(place), deadline);
                let answer = connection.send(&order).await.and_then(frame::entries_of_read);
                answer.map_err(|fault| fault.during(doing, &connection.place))
            }
        }
    }

    /// Ends the read that is blocked now, if any; it answers what it has, most often nothing.
    ///
    /// A read that begins later is not touched: set a flag, and call this until the reading task has ended.
    pub async fn unblock(&self) {
        let unblock = async {
            match &self.over {
                Over::Server(direct) => direct.unblock().await,
                Over::Cluster(connection) => {
                    let _ = connection.client.unblock_self(Some(ClientUnblockFlag::Timeout)).await;
                }
            }
        };
        // Refused when nothing is blocked at this moment: nothing to do then.
        let _ = timeout(Duration::from_secs(1), unblock).await;
    }

    /// Closes the connection, politely for at most a second; a blocked read ends first.
    pub async fn close(&self) {
        self.unblock().await;
        match &self.over {
            Over::Server(direct) => direct.close().await,
            Over::Cluster(connection) => connection.close().await,
        }
    }
}

fn word(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn page(words: &mut Vec<Bytes>, count: usize, block: Duration) {
    words.extend([word("COUNT"), word(&count.max(1).to_string())]);
    // BLOCK 0 would mean for ever.
    let millis = block.as_millis();
    if millis > 0 {
        words.extend([word("BLOCK"), word(&millis.to_string())]);
    }
}
