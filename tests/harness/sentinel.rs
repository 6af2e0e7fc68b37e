//! A primary, its replica and a Sentinel that watches them.

use crate::Redis;
use crate::patience::eventually_blocking;
use crate::redis::{Options, Value};

/// The name under which the Sentinel knows the primary.
pub const SERVICE: &str = "mymaster";

/// The three servers. The Sentinel decides alone (quorum 1), 1 s after a primary falls silent.
#[derive(Debug)]
pub struct Sentinel {
    nodes: [Redis; 2],
    sentinel: Redis,
}

impl Sentinel {
    /// Starts them and waits until the replica is in step and the Sentinel knows it.
    ///
    /// # Panics
    /// They don't come up.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&Options::default())
    }

    /// As [`Sentinel::start`], with `options` for the primary and its replica.
    ///
    /// # Panics
    /// They don't come up.
    #[must_use]
    pub fn with(options: &Options) -> Self {
        let options = options.clone().line("repl-diskless-sync yes").line("repl-diskless-sync-delay 0");
        let primary = Redis::with(options.clone());
        let replica = Redis::with(options.line(format!("replicaof 127.0.0.1 {}", primary.port())));
        eventually_blocking("the replica is in step", || {
            replica.info("replication").get("master_link_status").is_some_and(|status| status == "up")
        });
        let watch = Options { sentinel: true, ..Options::default() }
            .line(format!("sentinel monitor {SERVICE} 127.0.0.1 {} 1", primary.port()))
            .line(format!("sentinel down-after-milliseconds {SERVICE} 1000"))
            .line(format!("sentinel failover-timeout {SERVICE} 5000"));
        let all = Self { nodes: [primary, replica], sentinel: Redis::with(watch) };
        eventually_blocking("the Sentinel knows the replica", || {
            let master = all.sentinel.call(&["SENTINEL", "MASTER", SERVICE]);
            let state: Vec<_> = master.items().iter().map(Value::text).collect();
            let known = state.windows(2).any(|pair| pair == ["num-slaves", "1"]);
            if known { Ok(()) } else { Err(state) }
        });
        all
    }

    /// `redis-sentinel://127.0.0.1:<port>/mymaster`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis-sentinel://{}/{SERVICE}", self.sentinel.addr())
    }

    /// The server that the Sentinel calls the primary at this moment.
    ///
    /// # Panics
    /// It names none of ours.
    #[must_use]
    pub fn primary(&self) -> &Redis {
        let addr = self.sentinel.call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]);
        let port = addr.items().get(1).and_then(Value::int);
        self.nodes
            .iter()
            .find(|node| Some(i64::from(node.port())) == port)
            .expect("the primary is one of ours")
    }

    /// The primary and the replica of the start, whatever they are now.
    #[must_use]
    pub fn nodes(&self) -> &[Redis; 2] {
        &self.nodes
    }

    /// The Sentinel itself.
    #[must_use]
    pub fn sentinel(&self) -> &Redis {
        &self.sentinel
    }

    /// Has the Sentinel promote the replica, and waits until it names the new primary.
    ///
    /// # Panics
    /// It does not happen in time.
    pub fn failover(&self) {
        let old = self.primary().port();
        // It needs a second to learn that the replica is good enough: NOGOODSLAVE until then.
        let asked = || self.sentinel.command(&["SENTINEL", "FAILOVER", SERVICE]);
        eventually_blocking("the Sentinel begins a failover", asked);
        eventually_blocking("the Sentinel names another primary", || self.primary().port() != old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_promotes_the_replica() {
        let all = Sentinel::start();
        all.primary().call(&["SET", "a", "1"]);
        eventually_blocking("the replica has it", || all.nodes()[1].count(&["EXISTS", "a"]) == 1);
        all.failover();
        assert_eq!(all.primary().port(), all.nodes()[1].port());
        assert_eq!(all.primary().count(&["GET", "a"]), 1);
    }
}
