//! What a subscription tells its holder.

use bytes::Bytes;

use crate::Node;

/// One thing heard, or a word about the subscription itself.
///
/// What one node says comes in the order in which it said it: events, markers and messages alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Every node has confirmed every pattern. Whatever was published before this is a gap.
    Up,
    /// A node is missing: what it says is not heard until the next [`Signal::Up`].
    Down,
    /// The node has confirmed every pattern: what it says is heard from here on, and what it said before is a gap.
    Opened(Node),
    /// The node's subscription is broken, or the node is no longer part of the cluster.
    Closed(Node),
    /// So many things were heard of the node and dropped here, as the channel was full.
    Lost {
        /// The node.
        node: Node,
        /// How many events and messages.
        count: u64,
    },
    /// Something happened to a key: from `__keyevent@<db>__:<name>` or from `__keyspace@<db>__:<key>`.
    Event {
        /// The node that said it.
        node: Node,
        /// The database number.
        db: u8,
        /// What happened, in Redis' word: `expired`, `del`, ...
        name: Bytes,
        /// The key, byte for byte as the server named it.
        key: Bytes,
    },
    /// Something was published on any other channel that one of the patterns matches.
    Message {
        /// The channel.
        channel: Bytes,
        /// What was published.
        payload: Bytes,
    },
}
