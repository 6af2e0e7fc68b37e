//! Nudges: a watched key is touched at its due, so that it expires there and then (PROTOCOL.md section 5).
//!
//! For each partition of the rules' queues there is a loop like that of a sweep: [`pass`] reads a page of the keys that are
//! due and looks at them ([`look`]). A look that makes a key expire is the proof, and fires it. One that finds it gone
//! proves nothing: the key waits at the [`barrier`] until every notification from before the look is answered; if it is
//! in the index then, it is [`missing`], and its rule decides. [`vigil`] sees to it that a flushed database does not become thousands of false
//! timeouts, and [`forgetter`] that names and looks are not kept for ever.

mod barrier;
mod fate;
mod flush;
mod forgetter;
mod look;
mod metrics;
mod missing;
mod pass;
mod place;
mod stray;
mod vigil;
mod walk;

use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::Partition;
use overdue_protocol::watch::{Payload, Rule, WatchedKey};
use overdue_store::Feed;
use overdue_telemetry::label::Loop;
use overdue_watch::{Looker, Mets};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Shared;
use crate::nudger::pass::NudgePass;
use crate::nudger::vigil::Vigil;
use crate::sweeper::Sweeper;

/// A key whose value is wanted is looked at so long before its due, or a little earlier.
const CAPTURE_MS: u64 = 50;
/// How much earlier: so that one page does for those that are due one after the other.
const GATHER_MS: u64 = 20;
/// A nudge must have succeeded within this, or the process is not ready.
const NUDGE_BOUND: Duration = Duration::from_secs(5);
/// The same for what may be a little later.
const SLOW_BOUND: Duration = Duration::from_secs(15);
/// The same for forgetting, which waits for notifications.
const FORGET_BOUND: Duration = Duration::from_secs(60);

/// What a reconciler needs to nudge watched keys.
#[derive(Clone)]
pub struct Watching {
    /// Looks at them.
    pub looker: Looker,
    /// How far the notifications of each feed are answered.
    pub mets: Mets,
    /// Asks for a SCAN of a feed, after a flush of its database. It must not block.
    pub ask_scan: Arc<dyn Fn(&Feed) + Send + Sync>,
}

/// All loops over watched keys.
pub(crate) struct Nudgers {
    shared: Shared,
    watching: Watching,
    vigil: Arc<Vigil>,
    loops: Vec<Sweeper<NudgePass>>,
}

impl Nudgers {
    pub(crate) fn new(shared: &Shared, watching: Watching) -> Self {
        let vigil = Arc::new(Vigil::new(shared, &watching));
        let mut loops = vec![];
        for partition in watching.looker.partitions() {
            let mut rules = watching.looker.rules().all().iter();
            let captures = rules.any(|r| r.queue == *partition.queue() && r.payload == Payload::Value);
            let ahead_ms = if captures { CAPTURE_MS + GATHER_MS } else { 0 };
            let alarm = shared.alarms.register(&partition, wake_shift(ahead_ms));
            let name = format!("{}:{}", partition.queue(), partition.number());
            let progress = shared.health.register(Loop::Nudge, &name, NUDGE_BOUND);
            let pass = NudgePass::new(shared, &watching, &vigil, &partition, ahead_ms);
            loops.push(Sweeper::new(shared, &partition, pass, alarm, progress));
        }
        Self { shared: shared.clone(), watching, vigil, loops }
    }

    /// Runs until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        let health = &self.shared.health;
        tracing::info!(partitions = self.loops.len(), "nudging watched keys");
        tasks.spawn(self.vigil.run(health.register(Loop::Flush, "", SLOW_BOUND), stop.clone()));
        let progress = health.register(Loop::Forget, "", FORGET_BOUND);
        tasks.spawn(forgetter::run(self.shared.clone(), self.watching, progress, stop.clone()));
        for nudger in self.loops {
            tasks.spawn(nudger.run(stop.clone()));
        }
        tasks.close();
        tasks.wait().await;
    }
}

/// How long after a deadline its key is to be looked at, milliseconds. What is due in one millisecond has not expired
/// before that is over; values are captured before.
fn wake_shift(ahead_ms: u64) -> i64 {
    if ahead_ms > 0 { -(CAPTURE_MS as i64) } else { 1 }
}

/// The rule of a key, if it is one of ours and belongs into this partition.
fn rule_of<'a>(looker: &'a Looker, partition: &Partition, key: &WatchedKey) -> Option<&'a Arc<Rule>> {
    let rule = looker.rules().rule_for(key.db, &key.key)?;
    (looker.partition_of(rule, &key.key) == partition).then_some(rule)
}
