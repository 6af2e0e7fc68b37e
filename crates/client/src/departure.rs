//! What goes out of a lane together: at most one call to arm and one to disarm.

use std::collections::HashSet;

use overdue_protocol::TimerId;
use overdue_protocol::call::{CancelItem, PAGE, PAGE_BYTES, ScheduleItem};
use tokio::time::Instant;

use crate::carrier::Carrier;
use crate::lane::{Answers, Item, Job, Load};
use crate::page::Outcome;

/// Whether a page takes `items` more with so many bytes; it takes always one.
pub(crate) fn fits(items: usize, bytes: usize, more_items: usize, more_bytes: usize) -> bool {
    items == 0 || (items + more_items <= PAGE as usize && bytes + more_bytes <= PAGE_BYTES as usize)
}

/// The loads of one kind that go out in one call.
struct Batch<I: Item> {
    items: Vec<I>,
    until: Vec<Instant>,
    bytes: usize,
    ids: Option<HashSet<TimerId>>,
    answers: Vec<(usize, Answers<I::Answer>)>,
}

impl<I: Item> Batch<I> {
    fn new() -> Self {
        Self { items: vec![], until: vec![], bytes: 0, ids: None, answers: vec![] }
    }

    /// Takes a load, or gives it back when the page is full.
    fn add(&mut self, load: Load<I>) -> Result<(), Load<I>> {
        let bytes = load.items.iter().map(I::bytes).sum();
        if !fits(self.items.len(), self.bytes, load.items.len(), bytes) {
            return Err(load);
        }
        self.bytes += bytes;
        self.until.resize(self.until.len() + load.items.len(), load.until);
        if let Some(ids) = &mut self.ids {
            ids.extend(load.items.iter().map(|item| item.id().clone()));
        }
        self.answers.push((load.items.len(), load.answer));
        self.items.extend(load.items);
        Ok(())
    }

    /// Whether any of `items` is for a timer that this batch is for too.
    fn meets<O: Item>(&mut self, items: &[O]) -> bool {
        if self.items.is_empty() {
            return false;
        }
        let ours = &self.items;
        let ids = self.ids.get_or_insert_with(|| ours.iter().map(|item| item.id().clone()).collect());
        items.iter().any(|item| ids.contains(item.id()))
    }

    /// Hands the answers to those who wait for them.
    fn answer(answers: Vec<(usize, Answers<I::Answer>)>, outcomes: Vec<Outcome<I::Answer>>) {
        let mut outcomes = outcomes.into_iter();
        for (count, answer) in answers {
            // Who waits no more does not want to know.
            let _ = answer.send(outcomes.by_ref().take(count).collect());
        }
    }
}

/// What goes out together: no id is in both batches.
pub(crate) struct Departure {
    arm: Batch<ScheduleItem>,
    disarm: Batch<CancelItem>,
}

impl Departure {
    pub(crate) fn new() -> Self {
        Self { arm: Batch::new(), disarm: Batch::new() }
    }

    /// Takes a job, or gives it back: it goes out next.
    pub(crate) fn add(&mut self, job: Job) -> Result<(), Job> {
        match job {
            Job::Arm(load) if self.disarm.meets(&load.items) => Err(Job::Arm(load)),
            Job::Arm(load) => self.arm.add(load).map_err(Job::Arm),
            Job::Disarm(load) if self.arm.meets(&load.items) => Err(Job::Disarm(load)),
            Job::Disarm(load) => self.disarm.add(load).map_err(Job::Disarm),
        }
    }

    /// Sends both calls, and hands out the answers.
    pub(crate) async fn go(self, carrier: &Carrier) {
        let Departure { arm, disarm } = self;
        let arming = async {
            let outcomes = carrier.arm(arm.items, arm.until, None).await;
            Batch::<ScheduleItem>::answer(arm.answers, outcomes);
        };
        let disarming = async {
            let outcomes = carrier.disarm(disarm.items, disarm.until).await;
            Batch::<CancelItem>::answer(disarm.answers, outcomes);
        };
        tokio::join!(arming, disarming);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use overdue_protocol::call::{Mode, When};
    use tokio::sync::oneshot;

    use super::*;

    fn arm(ids: &[&str], bytes: usize) -> Job {
        let item = |id: &&str| ScheduleItem {
            id: TimerId::try_from(*id).unwrap(),
            when: When::In(1),
            mode: Mode::Upsert,
            payload: vec![0; bytes].into(),
            call: "".into(),
            extras: "".into(),
            keyed: false,
        };
        let until = Instant::now() + Duration::from_secs(5);
        Job::Arm(Load { items: ids.iter().map(item).collect(), until, answer: oneshot::channel().0 })
    }

    fn disarm(id: &str) -> Job {
        let items = vec![CancelItem { id: TimerId::try_from(id).unwrap(), generation: None }];
        Job::Disarm(Load { items, until: Instant::now(), answer: oneshot::channel().0 })
    }

    #[test]
    fn a_timer_is_never_armed_and_disarmed_in_calls_that_go_out_together() {
        let mut departure = Departure::new();
        assert!(departure.add(arm(&["a", "b"], 0)).is_ok());
        assert!(departure.add(disarm("c")).is_ok());
        assert!(departure.add(disarm("b")).is_err());
        assert!(departure.add(arm(&["d"], 0)).is_ok());
        assert!(departure.add(disarm("d")).is_err());
        assert!(departure.add(arm(&["c"], 0)).is_err());
        assert!(departure.add(arm(&["a"], 0)).is_ok());
    }

    #[test]
    fn a_page_is_full_by_bytes_or_by_number_and_takes_always_one() {
        let mut departure = Departure::new();
        assert!(departure.add(arm(&["a"], 2 << 20)).is_ok());
        assert!(departure.add(arm(&["b"], 0)).is_err());
        let mut departure = Departure::new();
        for _ in 0..PAGE {
            assert!(departure.add(arm(&["a"], 4096)).is_ok());
        }
        assert!(departure.add(arm(&["a"], 0)).is_err());
    }
}
