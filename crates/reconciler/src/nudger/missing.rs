//! Keys that have passed the barrier: what is in the index all the same is missing, and its rule decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use overdue_store::{Feed, Result};
use overdue_telemetry::label::UnprovenResult;
use overdue_watch::{Cause, Fire};
use tokio::time::Instant;

use super::barrier::{Group, Waiting};
use super::metrics::Metrics;
use super::pass::{NudgePass, State};

impl NudgePass {
    /// Settles what need not wait any more. Answers how many fired.
    pub(super) async fn pass_barrier(&self, state: &mut State) -> Result<u32> {
        let mut fired = 0;
        loop {
            let groups = state.barrier.pass(&self.watching.mets.borrow(), Instant::now());
            if groups.is_empty() {
                return Ok(fired);
            }
            match self.settle(&groups, &state.metrics).await {
                Ok(count) => fired += count,
                Err(error) => {
                    state.barrier.put_back(groups);
                    return Err(error);
                }
            }
            state.barrier.release(&groups);
            state.place.less(groups.iter().map(|group| group.keys.len() as u32).sum());
            state.metrics.waiting.set(state.barrier.len() as u64);
        }
    }

    async fn settle(&self, groups: &[Group], metrics: &Metrics) -> Result<u32> {
        let all = || groups.iter().flat_map(|group| group.keys.iter().map(move |waiting| (group, waiting)));
        let members: Vec<Bytes> = all().map(|(_, waiting)| waiting.key.member()).collect();
        let dues = self.store.watched_dues(&self.partition, &members).await?;
        // What a notification or another relay has settled is not there any more, or is due at another time.
        let still = all().zip(dues).filter(|((_, waiting), due_ms)| *due_ms == Some(waiting.due_ms));
        let missing: Vec<(&Group, &Waiting)> = still.map(|(one, _)| one).collect();
        metrics.settled(UnprovenResult::Known, (members.len() - missing.len()) as u64);
        // Before the first of them fires: are there so many that their database was flushed?
        let mut signs: BTreeMap<&Feed, (u64, Vec<u64>)> = BTreeMap::new();
        for (group, waiting) in &missing {
            let (position, dues_ms) = signs.entry(&group.feed).or_default();
            *position = group.position.max(*position);
            dues_ms.push(waiting.due_ms);
        }
        groups.iter().for_each(|group| self.vigil.nudged(&group.feed, group.keys.len() as u64, 0));
        let mut flushed: BTreeSet<&Feed> = BTreeSet::new();
        for (feed, (position, dues_ms)) in signs {
            if self.vigil.is_flushed(feed, &dues_ms, position).await {
                flushed.insert(feed);
            }
        }
        let fire = |(group, waiting): &(&Group, &Waiting)| Fire {
            key: waiting.key.clone(),
            rule: Arc::clone(&waiting.rule),
            position: group.position,
            cause: if flushed.contains(&group.feed) { Cause::Flushed } else { Cause::Unproven },
        };
        let outcomes = self.watching.looker.fire(missing.iter().map(fire).collect()).await?;
        for ((group, _), outcome) in missing.iter().zip(&outcomes) {
            metrics.unproven(outcome, flushed.contains(&group.feed));
        }
        Ok(outcomes.iter().filter(|outcome| outcome.word.is_fired()).count() as u32)
    }
}
