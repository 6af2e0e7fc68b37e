//! Many keys that are due at one instant are read a little before it: then there is nothing to do but touch them.
//!
//! What was read may be old by then. A touch says how a key is whatever was thought of it, and the turn goes on with what
//! the index has at that time.

use bytes::Bytes;
use overdue_protocol::call::DueKeys;

/// Fewer are read at their due: for them a second page is not worth its while.
const MANY: u64 = 64;
/// How long before its due a crowd is read, milliseconds.
pub(super) const AHEAD_MS: u64 = 10;

/// The crowd that is due next.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    due_ms: u64,
    members: Vec<(Bytes, u64)>,
}

/// What is to be done about a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is none, or it has been read.
    Nothing,
    /// It is to be read at this, unix milliseconds.
    Await(u64),
    /// It is to be read now.
    Read,
}

impl Crowd {
    /// What is to be done after the last page of a turn.
    pub(super) fn step(&self, page: &DueKeys, now_ms: u64) -> Step {
        let Some(due_ms) = page.next_due_ms.filter(|_| page.crowd >= MANY) else { return Step::Nothing };
        if self.due_ms == due_ms && !self.members.is_empty() {
            return Step::Nothing;
        }
        let read_ms = due_ms.saturating_sub(AHEAD_MS);
        if now_ms < read_ms { Step::Await(read_ms) } else { Step::Read }
    }

    /// It was read.
    pub(super) fn keep(&mut self, due_ms: u64, members: Vec<(Bytes, u64)>) {
        *self = Self { due_ms, members };
    }

    /// Those that are due, as a page; `None` before that.
    pub(super) fn take(&mut self, now_ms: u64) -> Option<DueKeys> {
        if self.members.is_empty() || self.due_ms >= now_ms {
            return None;
        }
        let mut members = std::mem::take(&mut self.members);
        members.retain(|(_, due_ms)| *due_ms < now_ms);
        Some(DueKeys { now_ms, next_due_ms: None, crowd: 0, members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(next_due_ms: Option<u64>, crowd: u64) -> DueKeys {
        DueKeys { now_ms: 0, next_due_ms, crowd, members: vec![] }
    }

    #[test]
    fn only_a_crowd_is_read_before_its_due_and_once() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.step(&page(Some(1_000), MANY - 1), 995), Step::Nothing);
        assert_eq!(crowd.step(&page(None, 0), 995), Step::Nothing);
        assert_eq!(crowd.step(&page(Some(1_000), MANY), 989), Step::Await(990));
        assert_eq!(crowd.step(&page(Some(1_000), MANY), 990), Step::Read);
        crowd.keep(1_000, vec![(Bytes::new(), 1_000)]);
        assert_eq!(crowd.step(&page(Some(1_000), MANY), 995), Step::Nothing);
        assert_eq!(crowd.step(&page(Some(998), MANY), 995), Step::Read, "another, before it");
    }

    #[test]
    fn nothing_is_nudged_before_its_millisecond_is_over_nor_twice() {
        let mut crowd = Crowd::default();
        crowd.keep(1_000, (1_000..1_005).map(|due_ms| (Bytes::new(), due_ms)).collect());
        assert_eq!(crowd.take(1_000), None);
        let dues = |page: DueKeys| Vec::from_iter(page.members.into_iter().map(|(_, due_ms)| due_ms));
        assert_eq!(crowd.take(1_002).map(dues), Some(vec![1_000, 1_001]), "the index has the others");
        assert_eq!(crowd.take(1_010), None);
    }
}
