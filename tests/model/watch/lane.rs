//! What a relay does with a batch, a nudge and a scan.

use crate::watch::index::{Removed, Seen, Word};
use crate::watch::node::Key;
use crate::watch::relay::{Lane, Nudge};
use crate::watch::rules::Order;
use crate::watch::world::{Pos, World};

impl World {
    /// A batch: all its fires in one settle, then one touch if the key is to be looked at, then one settle.
    pub(crate) fn take(&mut self, number: usize, many: usize, lost: bool) {
        let unnamed = self.relays[number].take(many, &self.setting.rules);
        self.lose(number, &unnamed);
        match self.relays[number].lane {
            Lane::Fire { .. } => self.settle_fires(number, lost),
            Lane::Touch { .. } => self.touch_for_look(number, lost),
            Lane::Idle | Lane::Settle { .. } => self.relays[number].answered(),
        }
    }

    pub(crate) fn settle_fires(&mut self, number: usize, lost: bool) {
        let Lane::Fire { fires, look } = self.relays[number].lane.clone() else { return };
        for (name, life) in fires {
            self.fire(name, life);
        }
        match look {
            _ if lost => self.left.repeats = self.left.repeats.saturating_sub(1),
            Some(removed) => self.relays[number].lane = Lane::Touch { removed },
            None => self.relays[number].answered(),
        }
    }

    pub(crate) fn touch_for_look(&mut self, number: usize, lost: bool) {
        let Lane::Touch { removed } = self.relays[number].lane else { return };
        let before = self.before();
        let (at, seen) = self.touch();
        if lost {
            self.left.lost = self.left.lost.saturating_sub(1);
        } else {
            self.relays[number].lane = Lane::Settle { removed, at, seen, before };
        }
    }

    pub(crate) fn settle_look(&mut self, number: usize, lost: bool) {
        let Lane::Settle { removed, at, seen, before } = self.relays[number].lane else { return };
        let word = self.look(at, (seen, removed, before));
        if lost {
            self.left.repeats -= 1;
        } else if self.is_done_again(word) {
            self.relays[number].lane = Lane::Touch { removed };
        } else {
            self.relays[number].answered();
        }
    }

    /// A nudge: the touch of a key whose due in the index is reached.
    pub(crate) fn nudge(&mut self, number: usize, lost: bool) {
        let before = self.before();
        let (at, seen) = self.touch();
        if lost {
            self.left.lost -= 1;
        } else {
            let waits = seen == Seen::Gone && self.setting.rules.barrier;
            self.relays[number].nudge = Nudge::Held { at, seen, before, is_scan: false, waits };
        }
    }

    /// SCAN finds the key if it is there, and that is a look.
    pub(crate) fn scan(&mut self, number: usize) {
        if !std::mem::take(&mut self.relays[number].owes_scan) {
            self.left.scans -= 1;
        }
        if self.node.key != Key::Absent {
            let before = self.before();
            let (at, seen) = self.touch();
            self.relays[number].nudge = Nudge::Held { at, seen, before, is_scan: true, waits: false };
        }
    }

    /// What a nudge or a scan saw is settled.
    pub(crate) fn decide(&mut self, number: usize, lost: bool) {
        let Nudge::Held { at, seen, before, is_scan, .. } = self.relays[number].nudge else { return };
        let word = if seen == Seen::Gone && !is_scan {
            self.index.unproven(at, before, self.clock(), &self.setting.rules, &mut self.truth)
        } else {
            self.look(at, (seen, Removed::No, before))
        };
        self.word = Some(word);
        if lost {
            self.left.repeats -= 1;
            return;
        }
        self.relays[number].nudge = Nudge::Idle;
        self.relays[number].owes_scan |= is_scan && self.is_done_again(word);
    }

    fn fire(&mut self, name: Pos, life: u8) -> Word {
        let word = self.index.fire(name, life, self.clock(), &self.setting.rules, &mut self.truth);
        self.word = Some(word);
        word
    }

    /// What a touch proves is fired, by the name that its event will have; everything else is a look.
    fn look(&mut self, at: Pos, (seen, removed, before): (Seen, Removed, Option<u8>)) -> Word {
        if let Seen::Proven { life } = seen {
            return self.fire(at + 1, life);
        }
        let word = self.index.look(at, (seen, removed, before), self.clock(), &self.setting.rules);
        self.word = Some(word);
        word
    }

    fn is_done_again(&self, word: Word) -> bool {
        word == Word::Old || word == Word::Stale && self.setting.rules.order == Order::CompareAndSet
    }

    /// The due before a touch: only compare-and-set asks for it.
    fn before(&self) -> Option<u8> {
        let is_asked = self.setting.rules.order == Order::CompareAndSet;
        self.index.score.filter(|_| is_asked).map(|score| score.due)
    }
}
