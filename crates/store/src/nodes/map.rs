//! Who serves which slot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overdue_protocol::partition::slot;

use super::peer::Peer;
use crate::endpoint::Endpoint;
use crate::topology::Primary;
use crate::{Feed, Node};

/// The hash slots of a cluster.
const SLOTS: usize = 16_384;
/// Numbers tried as hash tags. Some dozens are enough for nodes with many slots, this for one with a single slot.
const TAGS: u32 = 1_000_000;

/// The nodes of one moment.
#[derive(Default)]
pub(super) struct Map {
    peers: BTreeMap<Node, Arc<Peer>>,
    /// What the cluster said; empty for a single server.
    primaries: Vec<Primary>,
    /// The place in `primaries` of each slot's owner.
    owners: Vec<Option<u16>>,
    tags: BTreeMap<Node, u32>,
}

impl Map {
    /// One server serves everything.
    pub(super) fn of_server(peer: Peer) -> Self {
        Self { peers: [(peer.node().clone(), Arc::new(peer))].into(), ..Self::default() }
    }

    /// The primaries of a cluster; nodes of `old` that are where they were keep their connections.
    pub(super) fn of_cluster(primaries: Vec<Primary>, old: &Self, at: &Endpoint, dbs: &BTreeSet<u8>) -> Self {
        let peer = |primary: &Primary| {
            let at = primary.endpoint(at);
            let kept = old.peers.get(&primary.node).filter(|peer| *peer.at() == at);
            kept.cloned().unwrap_or_else(|| Arc::new(Peer::new(primary.node.clone(), at, dbs)))
        };
        let peers = primaries.iter().map(|primary| (primary.node.clone(), peer(primary))).collect();
        let mut owners = vec![None; SLOTS];
        for (place, primary) in (0..).zip(&primaries) {
            for range in &primary.slots {
                let (first, last) = (usize::from(*range.start()), usize::from(*range.end()).min(SLOTS - 1));
                owners.get_mut(first..=last).into_iter().flatten().for_each(|slot| *slot = Some(place));
            }
        }
        let tags = tags(&primaries, &owners);
        Self { peers, primaries, owners, tags }
    }

    /// Whether this is a single server.
    pub(super) fn is_server(&self) -> bool {
        self.owners.is_empty()
    }

    /// Whether the cluster said the same then.
    pub(super) fn is_of(&self, primaries: &[Primary]) -> bool {
        self.primaries == primaries
    }

    /// All nodes.
    pub(super) fn peers(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.peers.values()
    }

    /// A node by name.
    pub(super) fn peer(&self, node: &Node) -> Option<&Arc<Peer>> {
        self.peers.get(node)
    }

    /// Whether the very same connections are in use here.
    pub(super) fn holds(&self, peer: &Arc<Peer>) -> bool {
        self.peers.get(peer.node()).is_some_and(|held| Arc::ptr_eq(held, peer))
    }

    /// The node that serves a key.
    pub(super) fn owner(&self, key: &[u8]) -> Option<&Arc<Peer>> {
        if self.is_server() {
            return self.peers.values().next();
        }
        self.server_of(slot(key))
    }

    /// The node of a cluster that serves a slot.
    pub(super) fn server_of(&self, slot: u16) -> Option<&Arc<Peer>> {
        let place = (*self.owners.get(usize::from(slot))?)?;
        self.peers.get(&self.primaries.get(usize::from(place))?.node)
    }

    /// A number whose slot the node serves.
    pub(super) fn tag(&self, node: &Node) -> u32 {
        self.tags.get(node).copied().unwrap_or_default()
    }

    /// Every node with every database.
    pub(super) fn feeds(&self, dbs: &BTreeSet<u8>) -> BTreeSet<Feed> {
        let of = |node: &Node| dbs.iter().map(|&db| Feed { node: node.clone(), db }).collect::<Vec<_>>();
        self.peers.keys().flat_map(of).collect()
    }
}

/// The least number for each node that lies in a slot of its own.
fn tags(primaries: &[Primary], owners: &[Option<u16>]) -> BTreeMap<Node, u32> {
    let mut tags = BTreeMap::new();
    let wanted = primaries.iter().filter(|primary| !primary.slots.is_empty()).count();
    for number in 0..TAGS {
        if tags.len() == wanted {
            break;
        }
        let owner = owners[usize::from(slot(number.to_string().as_bytes()))];
        if let Some(primary) = owner.and_then(|place| primaries.get(usize::from(place))) {
            tags.entry(primary.node.clone()).or_insert(number);
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primary(id: &str, port: u16, slots: &[std::ops::RangeInclusive<u16>]) -> Primary {
        Primary { node: Node::of_cluster(id), host: "h".into(), port, slots: slots.to_vec() }
    }

    fn map(primaries: Vec<Primary>, old: &Map) -> Map {
        let at = Endpoint::parse("redis-cluster://u:secret@h:1").unwrap();
        Map::of_cluster(primaries, old, &at, &BTreeSet::from([0]))
    }

    #[test]
    fn keys_and_tags_lead_to_the_node_that_serves_their_slot() {
        // Keys with one hash tag share its slot: 12182 is that of "foo".
        let only = primary("b", 2, &[12_182..=12_182]);
        let map = map(
            vec![primary("a", 1, &[0..=9_999]), only, primary("c", 3, &[10_000..=12_181])],
            &Map::default(),
        );
        let owner = |key: &[u8]| map.owner(key).map(|peer| peer.node().to_string());
        assert_eq!(owner(b"x{foo}\xff").as_deref(), Some("b"));
        for id in ["a", "b", "c"] {
            let tag = map.tag(&Node::of_cluster(id)).to_string();
            assert_eq!(owner(tag.as_bytes()).as_deref(), Some(id));
            assert_eq!(owner(format!("overdue:{{{tag}}}:guard").as_bytes()).as_deref(), Some(id));
        }
        let unserved = (0..).map(|n: u32| n.to_string()).find(|tag| slot(tag.as_bytes()) > 12_182).unwrap();
        assert_eq!(owner(unserved.as_bytes()), None);
        assert_eq!(map.tag(&Node::server()), 0);
    }

    #[test]
    fn a_node_keeps_its_connections_while_it_is_where_it_was() {
        let old = map(vec![primary("a", 1, &[0..=99]), primary("b", 2, &[100..=16_383])], &Map::default());
        let new = map(vec![primary("a", 1, &[0..=16_383]), primary("b", 3, &[])], &old);
        let held: Vec<bool> = old.peers().map(|peer| new.holds(peer)).collect();
        assert_eq!(held, [true, false]);
        assert_eq!(new.feeds(&BTreeSet::from([0])).len(), 2);
    }
}
