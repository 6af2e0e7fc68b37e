//! A Redis Cluster of three primaries.

use std::thread;

use crate::Redis;
use crate::patience::eventually_blocking;
use crate::redis::{Options, Value};

/// The hash slots of a cluster.
const SLOTS: usize = 16_384;

/// Three primaries that share all slots evenly. There are no replicas.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Redis>,
}

impl Cluster {
    /// Starts the nodes, makes them meet and waits until each says `cluster_state:ok` (some 2 to 4 s).
    ///
    /// # Panics
    /// It does not come up.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&Options::default())
    }

    /// As [`Cluster::start`], with `options` for each node.
    ///
    /// # Panics
    /// It does not come up.
    #[must_use]
    pub fn with(options: &Options) -> Self {
        let options = options.clone().line("cluster-enabled yes").line("cluster-node-timeout 2000");
        let nodes: Vec<_> = thread::scope(|scope| {
            let starting: Vec<_> = (0..3).map(|_| scope.spawn(|| Redis::with(options.clone()))).collect();
            starting.into_iter().map(|node| node.join().expect("a node starts")).collect()
        });
        for (i, node) in nodes.iter().enumerate() {
            // Epochs that differ from the start: nodes need not settle a conflict first.
            node.call(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
            let own = i * SLOTS / nodes.len()..(i + 1) * SLOTS / nodes.len();
            // ADDSLOTSRANGE is newer than Redis 6.2.
            let add = ["CLUSTER".to_owned(), "ADDSLOTS".to_owned()].into_iter();
            node.call(&add.chain(own.map(|slot| slot.to_string())).collect::<Vec<_>>());
            node.call(&["CLUSTER", "MEET", "127.0.0.1", &nodes[0].port().to_string()]);
        }
        let cluster = Self { nodes };
        cluster.await_ok();
        cluster
    }

    /// Waits until every node knows all nodes and says `cluster_state:ok`.
    ///
    /// # Panics
    /// It does not come true in time.
    pub fn await_ok(&self) {
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len());
        for node in &self.nodes {
            eventually_blocking("the cluster is up", || {
                let info = node.call(&["CLUSTER", "INFO"]).text();
                let ok = ["cluster_state:ok\r", "cluster_slots_ok:16384\r", &known]
                    .iter()
                    .all(|s| info.contains(s));
                if ok { Ok(()) } else { Err(info) }
            });
        }
    }

    /// `redis-cluster://127.0.0.1:<port>,...`, naming every node.
    #[must_use]
    pub fn url(&self) -> String {
        let addrs: Vec<_> = self.nodes.iter().map(|node| node.addr().to_string()).collect();
        format!("redis-cluster://{}", addrs.join(","))
    }

    /// The nodes, in the order of their slots.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The node that owns the slot of `key` at this moment.
    ///
    /// # Panics
    /// Nobody owns it.
    #[must_use]
    pub fn node_of(&self, key: &[u8]) -> &Redis {
        let slot = self.nodes[0].call(&[b"CLUSTER".as_slice(), b"KEYSLOT", key]).int();
        let ranges = self.nodes[0].call(&["CLUSTER", "SLOTS"]);
        let number = |value: Option<&Value>| value.and_then(Value::int);
        let holds = |range: &&Value| {
            let range = range.items();
            number(range.first()) <= slot && slot <= number(range.get(1))
        };
        let range = ranges.items().iter().find(holds).expect("every slot has an owner");
        let port = number(range.items()[2].items().get(1));
        self.nodes.iter().find(|node| Some(i64::from(node.port())) == port).expect("the owner is one of ours")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_node_that_takes_it() {
        let cluster = Cluster::start();
        let mut ports = std::collections::BTreeSet::new();
        for i in 0..30 {
            let key = format!("overdue:{{orders:{i}}}:index");
            let node = cluster.node_of(key.as_bytes());
            node.call(&["ZADD", &key, "1", "a"]);
            ports.insert(node.port());
        }
        assert_eq!(ports.len(), 3);
    }
}
