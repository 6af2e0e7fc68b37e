//! The whole of it: the node with its key, two relays, the index, and the truth; and what is wrong with it.

use std::hash::{Hash, Hasher};

use crate::watch::index::{Index, Word};
use crate::watch::node::{Key, Node};
use crate::watch::relay::{Nudge, Relay};
use crate::watch::rules::OnUnproven;
use crate::watch::search::{Quick, Searched};
use crate::watch::setting::{Limits, Setting};
use crate::watch::step::Step;
use crate::watch::truth::{self, Life, Truth};

/// A position in the node's order.
pub(crate) type Pos = u16;
/// From one touch to the next; the names of the expiries between them have room.
pub(crate) const STRIDE: Pos = 8;
/// A second, where clocks are set.
pub(crate) const SECOND: Pos = 2 * STRIDE;
/// The first marker, which all have met.
pub(crate) const FIRST: Pos = 100 * STRIDE;
/// No history within the bounds has so many touches.
const LAST: Pos = FIRST + 60 * STRIDE;

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) node: Node,
    pub(crate) relays: [Relay; 2],
    pub(crate) index: Index,
    pub(crate) truth: Truth,
    pub(crate) left: Limits,
    /// What `settle` answered in the last step.
    pub(crate) word: Option<Word>,
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            setting,
            node: Node { key: Key::Absent, now: 0, time: FIRST + STRIDE },
            relays: [Relay::new(Some(FIRST), true), Relay::new(Some(FIRST), true)],
            index: Index::default(),
            truth: Truth { is_calm: !setting.limits.has_faults(), ..Truth::default() },
            left: setting.limits,
            word: None,
        }
    }
}

impl Searched for World {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        self.possible()
    }

    fn after(&self, step: Step) -> Self {
        let mut next = self.clone();
        next.word = None;
        next.go(step);
        let rules = &self.setting.rules;
        next.relays.iter_mut().for_each(|relay| relay.meet(rules));
        if !self.setting.is_plain {
            next.simplify();
        }
        next
    }

    /// The relays are alike: a state and its mirror image are one.
    fn fingerprint(&self) -> u64 {
        let [a, b] = &self.relays;
        let is_mirrored = a > b;
        let (a, b) = if is_mirrored { (b, a) } else { (a, b) };
        let mut hash = Quick::default();
        (a, b, &self.node, &self.index, &self.left, self.truth.fault, self.truth.spare).hash(&mut hash);
        for life in &self.truth.lives {
            let lost = if is_mirrored { life.lost >> 1 | (life.lost & 1) << 1 } else { life.lost };
            Life { lost, ..*life }.hash(&mut hash);
        }
        hash.finish()
    }

    fn fault(&self, steps: &[Step]) -> Option<&'static str> {
        let Setting { rules, limits, .. } = &self.setting;
        if self.truth.fault.is_some() {
            return self.truth.fault;
        }
        if self.node.time > LAST {
            return Some(truth::ENDLESS);
        }
        if steps.iter().any(|step| step.goes_on(limits)) {
            return None;
        }
        if self.relays.iter().any(|relay| relay.nudge != Nudge::Idle) {
            return Some(truth::STUCK);
        }
        let forgives_unknown = self.setting.forgives_unknown;
        if !forgives_unknown
            && self.node.due().is_some()
            && self.index.score.map(|score| score.due) != self.node.due()
        {
            return Some(truth::UNKNOWN);
        }
        self.truth.missing(rules.on_unproven == OnUnproven::Fire)
    }

    fn line(&self) -> String {
        let word = self.word.map(|word| format!("{word:?}")).unwrap_or_default();
        let Index { score, looked, names, debts, .. } = &self.index;
        let due = score.map(|score| score.due);
        let key = self.node.key;
        format!("{word:<8} {key:?}; index: due {due:?} looked {looked:?} names {names:?} debts {debts:?}")
    }
}
