//! What the server says about itself.

use std::collections::BTreeMap;
use std::time::Duration;

use fred::types::Value;
use overdue_protocol::Reply;

use crate::connection::Connection;
use crate::order::{Order, Route};
use crate::way::Way;
use crate::{ErrorKind, Result, Store};

/// The parts of INFO that `doctor` and the metrics look at; on a cluster, of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerInfo {
    /// `redis_version`, or `valkey_version` where there is one.
    pub version: String,
    /// Whether it is a Valkey.
    pub valkey: bool,
    /// `standalone`, `sentinel` or `cluster`.
    pub mode: String,
    /// `master` or `slave`, as Redis says it.
    pub role: String,
    /// The operating system.
    pub os: String,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Bytes; 0 means no limit.
    pub maxmemory: u64,
    /// What it does at `maxmemory`.
    pub maxmemory_policy: String,
    /// Bytes in use.
    pub used_memory: u64,
    /// Whether the append-only file is on.
    pub aof_enabled: bool,
    /// Unix seconds of the last snapshot.
    pub rdb_last_save: u64,
    /// Whether the last snapshot succeeded.
    pub rdb_last_ok: bool,
    /// How many replicas are connected.
    pub connected_replicas: u64,
    /// How many clients are connected.
    pub connected_clients: u64,
    /// CPU used since its start, user and system, microseconds.
    pub cpu_us: u64,
    /// Every line of INFO, by name.
    pub lines: BTreeMap<String, String>,
}

impl Store {
    /// Asks the server about itself (INFO). Values that it does not tell are 0 or empty.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn server(&self) -> Result<ServerInfo> {
        let lines = self.info("ask the server about itself", "default").await?;
        let text = |name: &str| lines.get(name).cloned().unwrap_or_default();
        let number = |name: &str| lines.get(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        let seconds = |name: &str| lines.get(name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
        let valkey = lines.contains_key("valkey_version");
        Ok(ServerInfo {
            version: if valkey { text("valkey_version") } else { text("redis_version") },
            valkey,
            mode: text("redis_mode"),
            role: text("role"),
            os: text("os"),
            uptime_s: number("uptime_in_seconds"),
            maxmemory: number("maxmemory"),
            maxmemory_policy: text("maxmemory_policy"),
            used_memory: number("used_memory"),
            aof_enabled: number("aof_enabled") == 1,
            rdb_last_save: number("rdb_last_save_time"),
            rdb_last_ok: text("rdb_last_bgsave_status") == "ok",
            connected_replicas: number("connected_slaves"),
            connected_clients: number("connected_clients"),
            cpu_us: ((seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1e6) as u64,
            lines,
        })
    }

    /// The lines of INFO by name, of one section or `default`.
    pub(crate) async fn info(&self, doing: &str, section: &'static str) -> Result<BTreeMap<String, String>> {
        self.connection().info(doing, section, self.settings().command_deadline).await
    }

    /// A configuration value, or `None` when Redis does not tell us (managed services, ACL, unknown name); on a
    /// cluster, of one node.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn config_get(&self, name: &str) -> Result<Option<String>> {
        self.connection().config_get(name, self.settings().command_deadline).await
    }
}

/// For a server or one node of a cluster; on a connection to a whole cluster, any node answers.
impl Connection {
    /// The lines of INFO by name, of one section or `default`.
    pub(crate) async fn info(
        &self,
        doing: &str,
        section: &str,
        deadline: Duration,
    ) -> Result<BTreeMap<String, String>> {
        let args = vec![Value::from(section.to_owned())];
        let reply = self.ask(doing, &Order::new("INFO", args, Route::Any, deadline)).await?;
        let lines = reply.as_str().unwrap_or_default().lines().filter_map(|line| line.split_once(':'));
        Ok(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A configuration value, or `None` when the server does not tell us.
    pub(crate) async fn config_get(&self, name: &str, deadline: Duration) -> Result<Option<String>> {
        let args = vec!["GET".into(), Value::from(name.to_owned())];
        let order = Order::new("CONFIG", args, Route::Any, deadline);
        match self.ask("read the server's configuration", &order).await {
            Ok(reply) => Ok(reply.into_array().and_then(|pair| pair.get(1)?.as_str().map(str::to_owned))),
            Err(error) if error.kind() == ErrorKind::Refused => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets a configuration value; false when the server does not let us.
    pub(crate) async fn config_set(&self, name: &str, value: &str, deadline: Duration) -> Result<bool> {
        let args = vec!["SET".into(), Value::from(name.to_owned()), Value::from(value.to_owned())];
        let order = Order::new("CONFIG", args, Route::Any, deadline);
        match self.ask("change the server's configuration", &order).await {
            Ok(reply) => Ok(matches!(reply, Reply::Bytes(_))),
            Err(error) if error.kind() == ErrorKind::Refused => Ok(false),
            Err(error) => Err(error),
        }
    }
}
