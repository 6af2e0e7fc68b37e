//! One connection to a private Redis, and the clock that Redis itself keeps for EVALSHA.

use bytes::Bytes;
use overdue_protocol::call::Call;
use overdue_protocol::{Reply, Script};
use overdue_sandbox::Connection;

use super::texts::Digests;
use crate::exit::{Exit, Failure};
use crate::stage::{cannot, wire};

/// One run of a script.
pub(super) struct Order {
    script: &'static Script,
    keys: Vec<Bytes>,
    args: Vec<Bytes>,
}

impl Order {
    pub(super) fn new(script: &'static Script, keys: Vec<Bytes>, args: Vec<Bytes>) -> Self {
        Self { script, keys, args }
    }
}

impl<C: Call> From<C> for Order {
    fn from(call: C) -> Self {
        Self::new(call.script(), call.keys(), call.args())
    }
}

/// Runs orders, and measures them.
pub(super) struct Lab<'a> {
    pub(super) redis: &'a mut Connection,
    pub(super) digests: &'a Digests,
}

impl Lab<'_> {
    /// Sends a command that is not measured.
    pub(super) fn command(&mut self, args: &[impl AsRef<[u8]>]) -> Result<Reply, Failure> {
        self.redis.call(args).map(wire::reply).map_err(cannot)
    }

    /// Runs one, and says what it answered.
    pub(super) fn send(&mut self, Order { script, keys, args }: Order) -> Result<Reply, Failure> {
        self.command(&wire::evalsha(self.digests[script.name].clone(), keys, args))
    }

    /// Runs all of them; each must say that it did as many as `did`.
    pub(super) fn run(&mut self, orders: impl IntoIterator<Item = Order>, did: usize) -> Result<(), Failure> {
        for order in orders {
            let name = order.script.name;
            let answer = self.send(order)?;
            let head = answer.clone().into_array().and_then(|parts| parts.first().and_then(Reply::as_u64));
            if head != Some(did as u64) {
                let what = format!("{name} answered {}, not {did}", brief(&answer));
                return Err(Failure::new(Exit::CheckFailed, what));
            }
        }
        Ok(())
    }

    /// The same, with what Redis spent in the scripts, microseconds.
    pub(super) fn measure(&mut self, orders: Vec<Order>, did: usize) -> Result<u64, Failure> {
        let before = self.spent()?;
        self.run(orders, did)?;
        Ok(self.spent()? - before)
    }

    /// What EVALSHA has taken so far, microseconds.
    fn spent(&mut self) -> Result<u64, Failure> {
        wire::stats(self.redis, "evalsha").map(|(_, us)| us).map_err(cannot)
    }
}

/// As much of an answer as an error needs.
fn brief(answer: &Reply) -> String {
    format!("{answer:?}").chars().take(300).collect()
}
