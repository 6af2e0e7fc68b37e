//! A Redis Cluster of three primaries, and a replica of the first where one is wanted.

use std::thread;

use crate::Redis;
use crate::patience::eventually_blocking;
use crate::redis::{Options, Value};

/// The hash slots of a cluster.
const SLOTS: usize = 16_384;

/// How many of the nodes begin as primaries.
const PRIMARIES: usize = 3;

/// Three primaries that share all slots evenly.
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
        Self::of(PRIMARIES, options)
    }

    /// As [`Cluster::with`], and one node more: a replica of the first, in step with it.
    ///
    /// # Panics
    /// It does not come up.
    #[must_use]
    pub fn with_replica(options: &Options) -> Self {
        let options = options.clone().line("repl-diskless-sync yes").line("repl-diskless-sync-delay 0");
        let cluster = Self::of(PRIMARIES + 1, &options);
        let [primary, .., replica] = cluster.nodes() else { unreachable!("there are four nodes") };
        replica.call(&["CLUSTER", "REPLICATE", &primary.call(&["CLUSTER", "MYID"]).text()]);
        eventually_blocking("the replica is in step", || {
            replica.info("replication").get("master_link_status").is_some_and(|status| status == "up")
        });
        let known = format!("{}@", replica.port());
        for node in cluster.nodes() {
            eventually_blocking("every node knows the replica", || {
                let nodes = node.call(&["CLUSTER", "NODES"]).text();
                let is = nodes.lines().any(|line| line.contains(&known) && line.contains("slave"));
                if is { Ok(()) } else { Err(nodes) }
            });
        }
        cluster
    }

    fn of(number: usize, options: &Options) -> Self {
        let options = options.clone().line("cluster-enabled yes").line("cluster-node-timeout 2000");
        let nodes: Vec<_> = thread::scope(|scope| {
            let starting: Vec<_> =
                (0..number).map(|_| scope.spawn(|| Redis::with(options.clone()))).collect();
            starting.into_iter().map(|node| node.join().expect("a node starts")).collect()
        });
        for (i, node) in nodes.iter().enumerate() {
            // Epochs that differ from the start: nodes need not settle a conflict first.
            node.call(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
            if i < PRIMARIES {
                let own = i * SLOTS / PRIMARIES..(i + 1) * SLOTS / PRIMARIES;
                // ADDSLOTSRANGE is newer than Redis 6.2.
                let add = ["CLUSTER".to_owned(), "ADDSLOTS".to_owned()].into_iter();
                node.call(&add.chain(own.map(|slot| slot.to_string())).collect::<Vec<_>>());
            }
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

    /// The nodes, in the order of the slots that they began with; a replica comes last.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The node that owns the slot of `key` at this moment.
    ///
    /// # Panics
    /// Nobody owns it, or no node runs.
    #[must_use]
    pub fn node_of(&self, key: &[u8]) -> &Redis {
        let asked = self.nodes.iter().find(|node| node.pid().is_some()).expect("a node runs");
        let slot = asked.call(&[b"CLUSTER".as_slice(), b"KEYSLOT", key]).int();
        let ranges = asked.call(&["CLUSTER", "SLOTS"]);
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
    fn a_replica_takes_over_what_its_primary_served() {
        let cluster = Cluster::with_replica(&Options::default());
        let (primary, replica) = (cluster.nodes()[0].port(), &cluster.nodes()[3]);
        let serves = |key: &String| cluster.node_of(key.as_bytes()).port();
        let key = (0..100).map(|i| i.to_string()).find(|key| serves(key) == primary).unwrap();
        replica.call(&["CLUSTER", "FAILOVER"]);
        eventually_blocking("the replica serves the key", || serves(&key) == replica.port());
    }

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
