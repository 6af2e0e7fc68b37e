//! The subscriptions of a cluster: one for each primary, following the topology.
//!
//! Notifications are local to a node, and an idle subscription never meets a redirection: so [`Nodes`] asks for the
//! topology.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::link::Link;
use super::login::Login;
use super::outlet::{Outlet, Part};
use crate::endpoint::Endpoint;
use crate::{Node, Nodes, Result, Settings};

/// How often it is looked whether a node has moved; that there are others now is known at once.
const LOOK: Duration = Duration::from_secs(2);

/// The primaries and their links.
pub(super) struct Primaries {
    settings: Settings,
    tls: Option<TlsConnector>,
    role: String,
    /// Of notifications, which every node sends only of its own keys.
    events: Vec<Bytes>,
    /// Of messages, which reach every node.
    messages: Vec<Bytes>,
    outlet: Outlet,
    nodes: Nodes,
    links: BTreeMap<Part, (Wish, Link)>,
}

/// What is to be subscribed, and where.
#[derive(PartialEq, Eq)]
struct Wish {
    node: Node,
    at: Endpoint,
    patterns: Vec<Bytes>,
}

impl Primaries {
    /// Connects to every primary and waits for the confirmation of each.
    pub(super) async fn open(
        settings: &Settings,
        tls: Option<TlsConnector>,
        role: &str,
        patterns: Vec<Bytes>,
        outlet: Outlet,
    ) -> Result<Self> {
        let nodes = Nodes::open(settings, role, &BTreeSet::from([0])).await?;
        let (events, messages) = patterns.into_iter().partition(|pattern| pattern.starts_with(b"__key"));
        let (settings, role) = (settings.clone(), role.to_owned());
        let links = BTreeMap::new();
        let mut primaries = Self { settings, tls, role, events, messages, outlet, nodes, links };
        primaries.follow();
        for (_, link) in primaries.links.values_mut() {
            link.first_attempt().await?;
        }
        Ok(primaries)
    }

    /// Follows the topology until it is told to stop.
    pub(super) async fn keep(mut self, stopped: CancellationToken) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut feeds = self.nodes.feeds();
        loop {
            tokio::select! {
                () = stopped.cancelled() => break,
                _ = look.tick() => {}
                // Without anybody who follows the topology the ticks go on.
                Ok(()) = feeds.changed() => {}
            }
            self.follow();
        }
        self.links.clear();
        self.nodes.close().await;
    }

    /// Begins what is missing and ends what is too much.
    fn follow(&mut self) {
        let wishes = self.wishes(self.nodes.places());
        // All are known before the first is open: so nothing is up too early.
        self.outlet.expect(wishes.keys());
        self.links.retain(|part, (wish, _)| wishes.get(part) == Some(wish));
        for (part, wish) in wishes {
            if !self.links.contains_key(&part) {
                let login = Login::new(wish.at.clone(), self.tls.clone(), &self.role);
                let voice = self.outlet.voice(&part, &wish.node);
                let link = Link::start(login, voice, wish.patterns.clone(), self.settings.connect_deadline);
                self.links.insert(part, (wish, link));
            }
        }
    }

    /// Events of all primaries; messages of one, by a link of its own: when that one goes, no events are missed.
    fn wishes(&self, places: Vec<(Node, Endpoint)>) -> BTreeMap<Part, Wish> {
        let now = self.links.get(&Part::Messages).map(|(wish, _)| &wish.node);
        let speaker = places.iter().find(|(node, _)| Some(node) == now).or(places.first()).cloned();
        let wish =
            |(node, at): (Node, Endpoint), patterns: &[Bytes]| Wish { node, at, patterns: patterns.to_vec() };
        let messages = speaker.map(|place| (Part::Messages, wish(place, &self.messages)));
        let events = places.into_iter().map(|place| (Part::Node(place.0.clone()), wish(place, &self.events)));
        events.chain(messages).filter(|(_, wish)| !wish.patterns.is_empty()).collect()
    }
}
