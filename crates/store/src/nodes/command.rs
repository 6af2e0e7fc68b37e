//! Plain commands to one node.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::{Malformed, Reply};
use tokio::time::Instant;

use super::Nodes;
use crate::connection::Connection;
use crate::order::{Order, Route};
use crate::way::Way;
use crate::{Error, Feed, Node, Result};

impl Nodes {
    /// One step of SCAN: the next cursor, 0 at the end, and names that match `pattern`. SCAN expires what it meets.
    ///
    /// # Errors
    /// As [`crate::Store::run`]; `Unavailable` when the node is no primary now.
    pub async fn scan(
        &self,
        feed: &Feed,
        cursor: u64,
        pattern: &[u8],
        count: u32,
    ) -> Result<(u64, Vec<Bytes>)> {
        let doing = format!("scan the keys of {feed}");
        let args = vec![
            Value::from(cursor.to_string()),
            "MATCH".into(),
            Value::Bytes(Bytes::copy_from_slice(pattern)),
            "COUNT".into(),
            Value::Integer(count.max(1).into()),
        ];
        let reply = self.send(&doing, feed, "SCAN", args).await?;
        let strange = || Error::malformed(&doing, Malformed("SCAN did not answer a cursor and names"));
        let mut parts = reply.into_array().ok_or_else(strange)?.into_iter();
        // A cursor may be any 64 bits: not every one of them is a score.
        let cursor = parts.next().and_then(|cursor| cursor.as_str()?.parse().ok()).ok_or_else(strange)?;
        let names = parts.next().and_then(Reply::into_array).ok_or_else(strange)?;
        Ok((cursor, names.into_iter().filter_map(Reply::into_bytes).collect()))
    }

    /// Writes a key without a value that ends after `ttl_ms` milliseconds, in a slot of the node (see [`Nodes::tag`]).
    ///
    /// # Errors
    /// As [`Nodes::scan`].
    pub async fn plant(&self, feed: &Feed, key: &Bytes, ttl_ms: u64) -> Result<()> {
        let ttl = Value::from(ttl_ms.max(1).to_string());
        let args = vec![Value::Bytes(key.clone()), Value::Bytes(Bytes::new()), "PX".into(), ttl];
        self.send(&format!("write a canary to {feed}"), feed, "SET", args).await.map(drop)
    }

    /// A configuration value of a node, or `None` when it does not tell us (managed services, ACL, unknown name).
    ///
    /// # Errors
    /// As [`Nodes::scan`].
    pub async fn config_get(&self, node: &Node, name: &str) -> Result<Option<String>> {
        self.line("read a node's configuration", node).await?.config_get(name, self.inner().deadline()).await
    }

    /// Sets a configuration value of a node; false when it does not let us.
    ///
    /// # Errors
    /// As [`Nodes::scan`].
    pub async fn config_set(&self, node: &Node, name: &str, value: &str) -> Result<bool> {
        let line = self.line("change a node's configuration", node).await?;
        line.config_set(name, value, self.inner().deadline()).await
    }

    /// The lines of a node's INFO by name, of one section or `default`.
    ///
    /// # Errors
    /// As [`Nodes::scan`].
    pub async fn info(&self, node: &Node, section: &str) -> Result<BTreeMap<String, String>> {
        let doing = "ask a node about itself";
        self.line(doing, node).await?.info(doing, section, self.inner().deadline()).await
    }

    async fn line(&self, doing: &str, node: &Node) -> Result<Arc<Connection>> {
        let inner = self.inner();
        inner.peer(doing, node)?.any_line(&inner.dial, inner.deadline()).await
    }

    async fn send(&self, doing: &str, feed: &Feed, name: &'static str, args: Vec<Value>) -> Result<Reply> {
        let inner = self.inner();
        let until = Instant::now() + inner.deadline();
        let peer = inner.peer(doing, &feed.node)?;
        let line = peer.line(&inner.dial, feed.db, inner.deadline()).await?;
        let order = Order::new(name, args, Route::Any, until - Instant::now());
        let reply = line.send(&order).await.and_then(crate::frame::reply);
        reply.map_err(|fault| inner.blame(doing, &peer, fault))
    }
}
