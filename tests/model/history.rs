//! One history: each step is done on the server and on the reference, and their answers must agree.

use overdue_tests::Stage;

use crate::operation::Op;
use crate::reference::Reference;

/// The server and the reference.
pub(crate) struct History<'a> {
    pub(crate) stage: &'a mut Stage,
    pub(crate) is: Reference,
    /// How many timers were armed: each payload is another.
    pub(crate) armed: u32,
}

impl<'a> History<'a> {
    /// From an empty server on.
    pub(crate) fn new(stage: &'a mut Stage) -> Self {
        stage.wire.call(&["FLUSHALL"]).unwrap();
        let mut history = Self { stage, is: Reference::default(), armed: 0 };
        history.lay_out_effects();
        history
    }

    /// One step.
    pub(crate) fn step(&mut self, op: &Op) {
        match op {
            Op::Schedule(items) => self.schedule(items),
            Op::Cancel(items) => self.cancel(items),
            Op::Fire(names) => self.fire(names),
            Op::Sweep(limit) => self.sweep(*limit),
            Op::SweepRetries(limit) => self.sweep_retries(*limit),
            Op::Join(group, new) => self.join(*group, *new),
            Op::Destroy(group) => self.destroy(*group),
            Op::Drop(group) => self.drop_group(*group),
            Op::Read(group, consumer, count) => self.read(*group, *consumer, *count),
            Op::Claim(group, consumer) => self.claim(*group, *consumer),
            Op::Finish(group, consumer, outcome, picks) => self.finish(*group, *consumer, *outcome, picks),
            Op::Reclaim(group, limit, attempts) => self.reclaim(*group, *limit, *attempts),
            Op::Acknowledge(group, picks) => self.acknowledge(*group, picks),
            Op::Replay(picks) => self.replay(picks),
            Op::DiscardRetries(picks) => self.discard_retries(picks),
            Op::DiscardEntries(group, picks) => self.discard_entries(*group, picks),
            Op::Trim => {
                self.is.trim();
                assert_eq!(self.stage.trim().length, self.is.stream.len() as u64);
            }
        }
    }
}
