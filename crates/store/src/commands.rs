//! The command connections of a store: one to the server, or one to each primary of a cluster.
//!
//! The library's client for a whole cluster stands still, for all of it, while one of the primaries is down. So each
//! primary has a client of its own, and whoever serves a slot is known here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use overdue_telemetry::label::ConnectionRole;
use tokio::sync::watch;

use crate::connection::Connection;
use crate::order::Order;
use crate::way::{Sending, Way};
use crate::{Nodes, Result, Settings};

/// Where commands go.
pub(crate) struct Commands {
    /// The address for errors, without password.
    pub(crate) place: String,
    to: To,
}

enum To {
    Server(Connection),
    Cluster(Nodes),
}

impl Commands {
    /// Connects; fails fast and says why. A node of a cluster that is down is no failure while another answers.
    pub(crate) async fn open(settings: &Settings, role: &str) -> Result<Self> {
        let (at, _) = settings.endpoint()?;
        let to = if at.is_cluster() {
            To::Cluster(Nodes::open(settings, role, &BTreeSet::from([0])).await?)
        } else {
            To::Server(Connection::open(settings, role, ConnectionRole::Command).await?)
        };
        Ok(Self { place: at.to_string(), to })
    }

    /// Whether this is a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.to, To::Cluster(_))
    }

    /// Counts connections made, the first included.
    pub(crate) fn made(&self) -> watch::Receiver<u64> {
        match &self.to {
            To::Server(connection) => connection.made(),
            To::Cluster(nodes) => nodes.made(),
        }
    }

    /// The lines of INFO by name, of one section or `default`; on a cluster, of one node.
    pub(crate) async fn info(
        &self,
        doing: &str,
        section: &str,
        deadline: Duration,
    ) -> Result<BTreeMap<String, String>> {
        match &self.to {
            To::Server(connection) => connection.info(doing, section, deadline).await,
            To::Cluster(nodes) => nodes.any_line().await?.info(doing, section, deadline).await,
        }
    }

    /// A configuration value, or `None` when Redis does not tell us; on a cluster, of one node.
    pub(crate) async fn config_get(&self, name: &str, deadline: Duration) -> Result<Option<String>> {
        match &self.to {
            To::Server(connection) => connection.config_get(name, deadline).await,
            To::Cluster(nodes) => nodes.any_line().await?.config_get(name, deadline).await,
        }
    }

    /// Ends the connections: politely for a second, then for good.
    pub(crate) async fn close(&self) {
        match &self.to {
            To::Server(connection) => connection.close().await,
            To::Cluster(nodes) => nodes.close().await,
        }
    }
}

impl Way for Commands {
    fn place(&self) -> &str {
        &self.place
    }

    fn send<'a>(&'a self, order: &'a Order) -> Sending<'a> {
        match &self.to {
            To::Server(connection) => connection.send(order),
            To::Cluster(nodes) => Box::pin(nodes.dispatch(order)),
        }
    }
}
