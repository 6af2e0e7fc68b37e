//! Who sends notifications: a node, and one database of it.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// Asked for with each key.
static SERVER: LazyLock<Node> = LazyLock::new(|| Node(Arc::from("server")));

/// A server that sends the notifications of its own keys: the one server, or a primary of a cluster.
///
/// Behind Sentinel it is "the server" whoever is the primary: a failover is a gap, not another node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(Arc<str>);

impl Node {
    /// The one server of all set-ups but a cluster.
    #[must_use]
    pub fn server() -> Self {
        SERVER.clone()
    }

    /// A node of a cluster, by the id that it has there (CLUSTER MYID).
    #[must_use]
    pub fn of_cluster(id: &str) -> Self {
        Self(Arc::from(id))
    }

    /// `server`, or the id in the cluster.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The notifications of one database of one node: what has one order and one line of positions (PROTOCOL.md section 5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feed {
    /// The node.
    pub node: Node,
    /// The database; 0 on a cluster.
    pub db: u8,
}

impl fmt::Display for Feed {
    /// `node/db`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.node, self.db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_named_by_node_and_database() {
        assert_eq!(Feed { node: Node::server(), db: 3 }.to_string(), "server/3");
        assert_ne!(Node::of_cluster("07c37df"), Node::server());
    }
}
