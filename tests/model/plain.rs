//! Steps of plain groups: what their consumers acknowledge, and what is taken back from them.

use overdue_protocol::call::{Reclaim, Reclaimed};

use crate::history::History;
use crate::operation::GROUPS;
use crate::reference::Entry;

impl History<'_> {
    pub(crate) fn acknowledge(&mut self, number: usize, picks: &[u8]) {
        // An ordinary group must not: its books would miss them.
        if self.is.groups[number].is_none() || !self.is.plain[number] {
            return;
        }
        let entries = self.pick(number, picks);
        let group = self.is.groups[number].as_mut().unwrap();
        group.pending.retain(|at, _| !entries.contains(at));
        self.stage.xack(GROUPS[number], &entries);
    }

    pub(crate) fn reclaim(&mut self, number: usize, limit: u32, attempts: u32) {
        let Some(group) = &mut self.is.groups[number] else { return };
        self.is.plain[number] = true;
        let page: Vec<_> = group.pending.keys().take(limit as usize).copied().collect();
        let (mut retried, mut dead) = (vec![], vec![]);
        for at in &page {
            match self.is.stream.get(at).cloned() {
                Some(entry) if entry.group.is_none_or(|to| to == number) => {
                    self.is.finish(number, *at);
                    if entry.timeout.attempt >= attempts {
                        dead.push(Entry { group: Some(number), ..entry });
                    } else {
                        retried.push(entry.timeout);
                    }
                }
                _ => {
                    self.is.groups[number].as_mut().unwrap().pending.remove(at);
                }
            }
        }
        let before = self.stage.wire.now_ms();
        let call = Reclaim { limit, attempts, ..self.stage.to_reclaim(GROUPS[number]) };
        let expected = Reclaimed {
            retried: retried.len() as u64,
            buried: dead.len() as u64,
            more: page.len() == limit as usize,
        };
        assert_eq!(self.stage.wire.run(&call).unwrap(), expected);
        self.waits(number, retried, before, 0, 1);
        self.died(dead);
    }
}
