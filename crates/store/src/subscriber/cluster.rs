//! The subscriptions of a cluster: one for each primary, following the topology.
//!
//! Notifications are local to a node, and one client for all nodes would stand still when one of them is down. The
//! library learns of a changed topology only from redirections, which an idle subscription never meets: so it is asked.

use std::collections::BTreeMap;
use std::time::Duration;

use fred::types::config::TlsConfig;
use overdue_protocol::Reply;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::board::Word;
use super::link::{Link, Outlet, is_event};
use crate::connection::Connection;
use crate::dial::{self, Purpose};
use crate::endpoint::{Endpoint, Place};
use crate::order::{Order, Route};
use crate::{Error, ErrorKind, Result, Settings};

/// How often the topology is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// The shortest time between two log lines about what is missing.
const SILENCE: Duration = Duration::from_secs(5);

/// The primaries and their links.
pub(super) struct Nodes {
    settings: Settings,
    at: Endpoint,
    tls: Option<TlsConfig>,
    role: String,
    patterns: Vec<String>,
    outlet: Outlet,
    topology: Connection,
    /// By address; with the patterns that each has.
    links: BTreeMap<(String, u16), (Vec<String>, Option<Link>)>,
}

impl Nodes {
    /// Connects to every primary and waits for the confirmation of each.
    pub(super) async fn open(
        settings: &Settings,
        at: Endpoint,
        tls: Option<TlsConfig>,
        role: &str,
        patterns: Vec<String>,
        outlet: Outlet,
    ) -> Result<Self> {
        let client = dial::client(settings, &at, tls.clone(), Purpose::Commands);
        let topology = Connection::start(client, settings, &at, Some(role)).await?;
        let (settings, role) = (settings.clone(), role.to_owned());
        let mut nodes = Self { settings, at, tls, role, patterns, outlet, topology, links: BTreeMap::new() };
        match nodes.follow().await? {
            Some(error) => Err(error),
            None => Ok(nodes),
        }
    }

    /// Follows the topology until it is told to stop.
    pub(super) async fn keep(mut self, stopped: CancellationToken) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said: Option<Instant> = None;
        loop {
            tokio::select! {
                () = stopped.cancelled() => break,
                _ = look.tick() => {}
            }
            match self.follow().await {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => {
                    if said.is_none_or(|at| at.elapsed() > SILENCE) {
                        warn!(%error, "not every primary has its subscription");
                        said = Some(Instant::now());
                    }
                }
            }
        }
        for (_, link) in std::mem::take(&mut self.links).into_values() {
            if let Some(link) = link {
                link.close().await;
            }
        }
        self.topology.close().await;
    }

    /// Opens what is missing and closes what is too much; answers the last link that could not be opened.
    async fn follow(&mut self) -> Result<Option<Error>> {
        let wanted = self.wanted().await?;
        let known: Vec<_> = self.links.keys().cloned().collect();
        for node in known {
            if wanted.get(&node) != self.links.get(&node).map(|(patterns, _)| patterns) {
                self.close(&node).await;
            }
        }
        let missing =
            wanted.into_iter().filter(|(node, _)| !matches!(self.links.get(node), Some((_, Some(_)))));
        let missing: Vec<_> = missing.collect();
        for (node, _) in &missing {
            // All are known before the first is up: without a link a node counts as down.
            let _ = self.outlet.words.send(Word::Down(self.at_node(node).to_string())).await;
        }
        let mut failed = None;
        for (node, patterns) in missing {
            let at = self.at_node(&node);
            let open = Link::open(
                &self.settings,
                &at,
                self.tls.clone(),
                &self.role,
                patterns.clone(),
                self.outlet.clone(),
            );
            let link = match open.await {
                Ok(link) => Some(link),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            };
            self.links.insert(node, (patterns, link));
        }
        Ok(failed)
    }

    async fn close(&mut self, node: &(String, u16)) {
        match self.links.remove(node) {
            Some((_, Some(link))) => link.close().await,
            Some((_, None)) => {
                let _ = self.outlet.words.send(Word::Gone(self.at_node(node).to_string())).await;
            }
            None => {}
        }
    }

    fn at_node(&self, (host, port): &(String, u16)) -> Endpoint {
        Endpoint { place: Place::One { host: host.clone(), port: *port }, ..self.at.clone() }
    }

    /// Which primary gets which patterns: notifications of all, messages of the first. A message reaches every node.
    async fn wanted(&self) -> Result<BTreeMap<(String, u16), Vec<String>>> {
        let doing = "look at the cluster";
        let slots = Order { name: "CLUSTER", args: vec!["SLOTS".into()], route: Route::Any, deadline: LOOK };
        let slots = self.topology.ask(doing, &slots).await?.into_array().unwrap_or_default();
        let mut primaries: Vec<_> = slots.into_iter().filter_map(|slot| self.primary(slot)).collect();
        primaries.sort();
        primaries.dedup();
        if primaries.is_empty() {
            return Err(Error::new(
                ErrorKind::Unavailable,
                doing,
                "it has no primary with slots: is it set up?",
            ));
        }
        let (events, messages): (Vec<_>, Vec<_>) = self.patterns.iter().cloned().partition(|p| is_event(p));
        let of = |i| if i == 0 { [&events[..], &messages[..]].concat() } else { events.clone() };
        let wanted = primaries.into_iter().enumerate().map(|(i, node)| (node, of(i)));
        Ok(wanted.filter(|(_, patterns)| !patterns.is_empty()).collect())
    }

    /// `[first slot, last slot, [host, port, ...], ...]`; a host that the server does not know is the one of the URL.
    fn primary(&self, slot: Reply) -> Option<(String, u16)> {
        let primary = slot.into_array()?.into_iter().nth(2)?.into_array()?;
        let port = primary.get(1)?.as_u64().and_then(|port| u16::try_from(port).ok())?;
        let host = primary.first()?.as_str().unwrap_or_default();
        let known = match &self.at.place {
            Place::Cluster { hosts } if host.is_empty() || host == "?" => hosts.first()?.0.clone(),
            _ => host.to_owned(),
        };
        Some((known, port))
    }
}
