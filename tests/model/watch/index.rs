//! What the index knows of the key, and `settle` and `forget`, which change it.

use crate::watch::rules::{Ahead, Debt, Identity, OnUnproven, Order, Removal, Rules};
use crate::watch::truth::Truth;
use crate::watch::world::{Pos, SECOND};

/// A due in the index, and (only for the truth) whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Score {
    pub(crate) due: u8,
    pub(crate) life: u8,
}

/// What a touch saw.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Seen {
    Due { due: u8, life: u8 },
    Forever,
    Gone,
    Proven { life: u8 },
}

/// What the events of a batch say of the key's going away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Removed {
    No,
    Yes,
    /// After this marker; only where `Removal::Placed` asks for it.
    After(Pos),
}

/// What `settle` answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    Ok,
    Wait,
    Gone,
    Stale,
    Old,
    Fired,
    Dup,
    Paid,
    Done,
    Dropped,
    Unproven,
}

/// TIME when the script runs: in ticks for dues, and as a position.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    pub(crate) now: u8,
    pub(crate) time: Pos,
}

/// `watched`, `looked`, `fired` (names and debts) and the horizon.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Index {
    pub(crate) score: Option<Score>,
    pub(crate) looked: Option<Pos>,
    pub(crate) names: Vec<Pos>,
    pub(crate) debts: Vec<Pos>,
    pub(crate) horizon: Option<Pos>,
    /// Of `Identity::Window` alone: the key fired a moment ago.
    pub(crate) recent: bool,
}

impl Index {
    /// A kept position as it compares with `other`.
    fn kept(at: Option<Pos>, other: Pos, clock: Clock, rules: &Rules) -> Option<Pos> {
        let is_ahead = |at: Pos| at > clock.time + SECOND;
        match rules.ahead {
            Ahead::Later => at,
            Ahead::Earlier if is_ahead(other) => at.map(|at| if is_ahead(at) { at } else { Pos::MAX }),
            Ahead::None | Ahead::Earlier => at.filter(|at| !is_ahead(*at)),
        }
    }

    /// Whether what is known is not older than `at`.
    fn is_looked(&self, at: Pos, clock: Clock, rules: &Rules) -> bool {
        Self::kept(self.looked, at, clock, rules).is_some_and(|looked| looked >= at)
    }

    fn is_forgotten(&self, at: Pos, clock: Clock) -> bool {
        self.horizon.is_some_and(|horizon| horizon <= clock.time + SECOND && at <= horizon)
    }

    fn is_due(&self, clock: Clock) -> bool {
        self.score.is_some_and(|score| score.due <= clock.now)
    }

    /// Whether there is a due for an expiry that is not above the horizon. The script compares the due with the name,
    /// which is a time; here the truth knows whose due it is.
    fn is_due_for_old(&self, life: u8, clock: Clock, rules: &Rules) -> bool {
        let is_its_own = self.score.is_some_and(|score| score.life <= life);
        self.is_due(clock) && (is_its_own || !rules.old_fires_for_old)
    }

    /// E and P: the expiry of `life`, by its name.
    pub(crate) fn fire(
        &mut self,
        name: Pos,
        life: u8,
        clock: Clock,
        rules: &Rules,
        truth: &mut Truth,
    ) -> Word {
        let has_fired = match rules.identity {
            Identity::Position => self.names.contains(&name),
            Identity::Watermark => self.names.first().is_some_and(|mark| name <= *mark),
            Identity::Window => self.recent,
            Identity::Due => !self.is_due(clock),
        };
        if has_fired {
            return Word::Dup;
        }
        let is_later_life = self.is_looked(name, clock, rules);
        if self.is_forgotten(name, clock) && (is_later_life || !self.is_due_for_old(life, clock, rules)) {
            truth.old(life);
            return Word::Old;
        }
        match rules.identity {
            Identity::Position => {
                self.names.push(name);
                self.names.sort_unstable();
            }
            Identity::Watermark => self.names = vec![name],
            Identity::Window => self.recent = true,
            Identity::Due => {}
        }
        let pays = |debt: &Pos| Self::kept(Some(*debt), name, clock, rules).is_some_and(|debt| name <= debt);
        if let Some(paid) = self.debts.iter().position(pays) {
            self.debts.remove(paid);
            truth.paid(life);
            return Word::Paid;
        }
        truth.fired(life);
        match rules.order {
            Order::Position if is_later_life => {}
            Order::CompareAndSet if !self.is_due(clock) => {}
            _ => self.score = None,
        }
        if !is_later_life {
            self.looked = Some(name);
        }
        Word::Fired
    }

    /// Whether a look or a barrier comes too late. `before` is the due before its touch, for compare-and-set.
    fn is_stale(&self, at: Pos, before: Option<u8>, clock: Clock, rules: &Rules) -> bool {
        match rules.order {
            Order::Position => self.is_looked(at, clock, rules),
            Order::CompareAndSet => self.score.map(|score| score.due) != before,
            Order::Arrival => false,
        }
    }

    /// L and R: what a touch at `at` saw.
    pub(crate) fn look(
        &mut self,
        at: Pos,
        (seen, removed, before): (Seen, Removed, Option<u8>),
        clock: Clock,
        rules: &Rules,
    ) -> Word {
        if self.is_stale(at, before, clock, rules) {
            return Word::Stale;
        }
        if self.is_forgotten(at, clock) {
            return Word::Old;
        }
        let removes = match (rules.removal, removed) {
            (Removal::Unasked, _) | (_, Removed::Yes) => true,
            (_, Removed::No) => false,
            // A look at that very marker is still the older one.
            (_, Removed::After(marker)) => !self.is_looked(marker + 1, clock, rules),
        };
        self.score = match seen {
            Seen::Due { due, life } => Some(Score { due, life }),
            Seen::Gone if !removes => return Word::Wait,
            _ => None,
        };
        self.looked = Some(at);
        Word::Ok
    }

    /// U and D: gone at `at`, and what was said before is answered, or has been waited for.
    pub(crate) fn unproven(
        &mut self,
        at: Pos,
        before: Option<u8>,
        clock: Clock,
        rules: &Rules,
        truth: &mut Truth,
    ) -> Word {
        if self.is_stale(at, before, clock, rules) {
            return Word::Stale;
        }
        if self.is_forgotten(at, clock) && rules.old_is_nudged_again {
            return Word::Old;
        }
        let Some(score) = self.score else { return Word::Done };
        if score.due > clock.now {
            return Word::Gone;
        }
        (self.score, self.looked) = (None, Some(at));
        if rules.on_unproven == OnUnproven::Drop {
            truth.guessed();
            return Word::Dropped;
        }
        match rules.debt {
            Debt::None => {}
            Debt::Newest => self.debts = vec![at],
            Debt::Each => self.debts.push(at),
        }
        truth.unproven(score.life);
        Word::Unproven
    }

    /// Forgets what stands at or below `upto`.
    pub(crate) fn forget(&mut self, upto: Pos, clock: Clock) {
        let all = self.names.iter().chain(&self.debts).chain(&self.looked);
        let highest = all.filter(|at| **at <= upto).max().copied();
        self.names.retain(|at| *at > upto);
        self.debts.retain(|at| *at > upto);
        self.looked = self.looked.filter(|at| *at > upto);
        self.horizon = self.horizon.filter(|horizon| *horizon <= clock.time + SECOND).max(highest);
    }
}
