//! Who serves which slots of a cluster, as CLUSTER SLOTS tells it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use overdue_protocol::Reply;

use crate::connection::Connection;
use crate::endpoint::{Endpoint, Place};
use crate::order::{Order, Route};
use crate::way::Way;
use crate::{Error, ErrorKind, Node, Result};

const DOING: &str = "look at the cluster";

/// A primary that serves slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Primary {
    pub(crate) node: Node,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// In order; together all that it serves.
    pub(crate) slots: Vec<RangeInclusive<u16>>,
}

impl Primary {
    /// Where to connect to, everything else as in `at`.
    pub(crate) fn endpoint(&self, at: &Endpoint) -> Endpoint {
        Endpoint { place: Place::One { host: self.host.clone(), port: self.port }, ..at.clone() }
    }
}

/// Asks a cluster for its primaries, in the order of their ids; never none.
///
/// # Errors
/// As [`crate::Store::run`]; `Unavailable` when nobody serves any slot.
pub(crate) async fn look(connection: &Connection, at: &Endpoint, deadline: Duration) -> Result<Vec<Primary>> {
    let slots = Order::new("CLUSTER", vec!["SLOTS".into()], Route::Any, deadline);
    let primaries = read(connection.ask(DOING, &slots).await?, at);
    if primaries.is_empty() {
        let text = "it has no primary with slots: is it set up?";
        return Err(Error::new(ErrorKind::Unavailable, DOING, text));
    }
    Ok(primaries)
}

/// Reads the answer of CLUSTER SLOTS: for each range `[first, last, [host, port, id, ...], replicas ...]`.
fn read(slots: Reply, at: &Endpoint) -> Vec<Primary> {
    let mut primaries: BTreeMap<Node, Primary> = BTreeMap::new();
    for range in slots.into_array().unwrap_or_default() {
        let Some((node, host, port, slots)) = read_range(range) else { continue };
        let host = match &at.place {
            // A server that does not know its own name is where we found it.
            Place::Cluster { hosts } if host.is_empty() || host == "?" => {
                hosts.first().map(|(host, _)| host.clone())
            }
            _ => Some(host),
        };
        let primary = Primary { node: node.clone(), host: host.unwrap_or_default(), port, slots: vec![] };
        primaries.entry(node).or_insert(primary).slots.push(slots);
    }
    let mut primaries: Vec<_> = primaries.into_values().collect();
    primaries.iter_mut().for_each(|primary| primary.slots.sort_by_key(|range| *range.start()));
    primaries
}

fn read_range(range: Reply) -> Option<(Node, String, u16, RangeInclusive<u16>)> {
    let mut parts = range.into_array()?.into_iter();
    let mut number = || parts.next()?.as_u64().and_then(|number| u16::try_from(number).ok());
    let (first, last) = (number()?, number()?);
    let primary = parts.next()?.into_array()?;
    let port = primary.get(1)?.as_u64().and_then(|port| u16::try_from(port).ok())?;
    let host = primary.first()?.as_str().unwrap_or_default().to_owned();
    let node = Node::of_cluster(primary.get(2)?.as_str()?);
    Some((node, host, port, first..=last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, host: &str, port: i64, id: &str) -> Reply {
        let bytes = |text: &str| Reply::Bytes(text.to_owned().into());
        let host = if host.is_empty() { Reply::Nil } else { bytes(host) };
        let primary = Reply::Array(vec![host, Reply::Int(port), bytes(id), Reply::Array(vec![])]);
        let replica = Reply::Array(vec![bytes("r"), Reply::Int(1), bytes("replica")]);
        Reply::Array(vec![Reply::Int(first), Reply::Int(last), primary, replica])
    }

    #[test]
    fn ranges_of_one_primary_come_together_and_replicas_are_passed_over() {
        let at = Endpoint::parse("redis-cluster://seed:7000,other:7001").unwrap();
        let reply = Reply::Array(vec![
            range(9000, 16383, "a", 1, "id-b"),
            range(0, 99, "", 2, "id-a"),
            range(200, 8999, "a", 1, "id-b"),
            range(100, 199, "?", 2, "id-a"),
            Reply::Array(vec![Reply::Int(1)]),
        ]);
        let primaries = read(reply, &at);
        let shown: Vec<_> = primaries.iter().map(|p| (p.node.as_str(), p.host.as_str(), p.port)).collect();
        assert_eq!(shown, [("id-a", "seed", 2), ("id-b", "a", 1)]);
        assert_eq!(primaries[0].slots, [0..=99, 100..=199]);
        assert_eq!(primaries[1].slots, [200..=8999, 9000..=16383]);
        assert_eq!(primaries[1].endpoint(&at).to_string(), "redis://a:1/");
        assert_eq!(read(Reply::Nil, &at), []);
    }
}
