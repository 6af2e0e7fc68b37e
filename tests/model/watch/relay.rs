//! One relay: its subscription, its lane for the key, and its nudger.

use crate::watch::index::{Removed, Seen};
use crate::watch::rules::{Removal, Rules};
use crate::watch::world::Pos;

/// What a subscription brings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Item {
    /// A marker: a touch stands here.
    Marker(Pos),
    /// `expired`. Whose end it was, only the truth knows.
    Expired(u8),
    /// An event after which the key is looked at.
    Changed,
    /// One that says that the key went away.
    Removed,
    /// The client's own word: here the connection was lost.
    Closed,
}

/// How far the batch in hand is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Lane {
    Idle,
    /// Expiries are to be settled, each a name and a life; then the key may have to be looked at.
    Fire {
        fires: Vec<(Pos, u8)>,
        look: Option<Removed>,
    },
    /// The key is to be touched.
    Touch {
        removed: Removed,
    },
    /// What the touch saw is to be settled. `before` is the due before it, for compare-and-set.
    Settle {
        removed: Removed,
        at: Pos,
        seen: Seen,
        before: Option<u8>,
    },
}

/// What the nudger has in hand, or the scan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Nudge {
    Idle,
    /// `waits`: until `met` has come to `at`.
    Held {
        at: Pos,
        seen: Seen,
        before: Option<u8>,
        is_scan: bool,
        waits: bool,
    },
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Relay {
    pub(crate) lane: Lane,
    pub(crate) nudge: Nudge,
    /// Subscribed.
    pub(crate) up: bool,
    /// Said, and not taken yet: on its way, or in the client.
    pub(crate) queue: Vec<Item>,
    /// The last marker taken, and how often the key expired since.
    pub(crate) base: Option<Pos>,
    pub(crate) count: Pos,
    /// The last marker of the batch in hand.
    pub(crate) marker: Option<Pos>,
    /// Owed after a gap: a touch without keys, and then a scan.
    pub(crate) owes_mark: bool,
    pub(crate) owes_scan: bool,
}

impl Relay {
    pub(crate) fn new(base: Option<Pos>, up: bool) -> Self {
        Self {
            lane: Lane::Idle,
            nudge: Nudge::Idle,
            up,
            queue: vec![],
            base,
            count: 0,
            marker: None,
            owes_mark: false,
            owes_scan: false,
        }
    }

    /// Takes the first `many` as one batch. Answers the expiries that came in the gap: here they have no name.
    pub(crate) fn take(&mut self, many: usize, rules: &Rules) -> Vec<Item> {
        let (mut fires, mut look, mut unnamed) = (vec![], None, vec![]);
        let batch: Vec<Item> = self.queue.drain(..many).collect();
        for item in batch {
            match (item, self.base) {
                (Item::Marker(at), _) => {
                    (self.base, self.count, self.marker) = (Some(at), 0, Some(at));
                }
                (Item::Closed, _) => {
                    self.marker = None;
                    self.forget_base(rules);
                }
                (Item::Expired(life), Some(base)) => {
                    self.count += 1;
                    fires.push((base + self.count, life));
                }
                (Item::Expired(_), None) => {
                    unnamed.push(item);
                    look = look.or(Some(Removed::No));
                }
                (Item::Changed, _) => {
                    look = look.filter(|_| rules.removal != Removal::Last).or(Some(Removed::No));
                }
                (Item::Removed, base) => {
                    look = match (rules.removal, base) {
                        (Removal::Placed, None) => look.or(Some(Removed::No)),
                        (Removal::Placed, Some(base)) => Some(Removed::After(base)),
                        _ => Some(Removed::Yes),
                    };
                }
            }
        }
        self.lane = match look {
            Some(removed) if fires.is_empty() => Lane::Touch { removed },
            None if fires.is_empty() => Lane::Idle,
            look => Lane::Fire { fires, look },
        };
        unnamed
    }

    fn forget_base(&mut self, rules: &Rules) {
        if rules.base_forgotten {
            (self.base, self.count) = (None, 0);
        }
    }

    /// The batch in hand is answered: `met` comes to its last marker.
    pub(crate) fn answered(&mut self) {
        self.lane = Lane::Idle;
        if let Some(marker) = self.marker.take() {
            self.met(marker);
        }
    }

    /// What `met` has come to once need not wait again, even if a gap takes `met` away.
    fn met(&mut self, marker: Pos) {
        if let Nudge::Held { at, waits, .. } = &mut self.nudge {
            *waits &= marker < *at;
        }
    }

    /// Markers and cuts with nothing before them need no batch.
    pub(crate) fn meet(&mut self, rules: &Rules) {
        while let (Lane::Idle, Some(item)) = (&self.lane, self.queue.first()) {
            match *item {
                Item::Marker(at) => {
                    (self.base, self.count) = (Some(at), 0);
                    self.met(at);
                }
                Item::Closed => self.forget_base(rules),
                Item::Expired(_) | Item::Changed | Item::Removed => return,
            }
            self.queue.remove(0);
        }
    }

    /// Every position that is still under way here: expiries by their names, touches.
    pub(crate) fn under_way(&self, rules: &Rules) -> Vec<Pos> {
        let (mut base, mut count) = (self.base, self.count);
        let mut all = vec![];
        for item in &self.queue {
            match item {
                Item::Marker(at) => (base, count) = (Some(*at), 0),
                Item::Closed => base = base.filter(|_| !rules.base_forgotten),
                Item::Expired(_) => {
                    count += 1;
                    all.extend(base.map(|base| base + count));
                }
                Item::Removed if rules.removal == Removal::Placed => all.extend(base),
                Item::Removed | Item::Changed => {}
            }
        }
        let mut touched = |at: Pos, seen: Seen| {
            all.push(at + Pos::from(matches!(seen, Seen::Proven { .. })));
        };
        if let Nudge::Held { at, seen, .. } = self.nudge {
            touched(at, seen);
        }
        if let Lane::Settle { at, seen, .. } = self.lane {
            touched(at, seen);
        }
        if let Lane::Fire { fires, .. } = &self.lane {
            all.extend(fires.iter().map(|(name, _)| *name));
        }
        if let Some(Removed::After(marker)) = self.removed() {
            all.push(marker);
        }
        all
    }

    /// What the batch in hand knows of a removal.
    pub(crate) fn removed(&self) -> Option<Removed> {
        match self.lane {
            Lane::Touch { removed } | Lane::Settle { removed, .. } => Some(removed),
            Lane::Fire { look, .. } => look,
            Lane::Idle => None,
        }
    }

    pub(crate) fn removed_mut(&mut self) -> Option<&mut Removed> {
        match &mut self.lane {
            Lane::Touch { removed } | Lane::Settle { removed, .. } => Some(removed),
            Lane::Fire { look, .. } => look.as_mut(),
            Lane::Idle => None,
        }
    }
}
