//! Every step that is possible.

use crate::watch::node::Key;
use crate::watch::relay::{Item, Lane, Nudge, Relay};
use crate::watch::setting::Limits;
use crate::watch::world::{Pos, World};

/// A step. The first number is the relay's; with `true` the answer is lost, and the relay knows nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Tick,
    /// By Redis itself, or by a command of somebody else.
    Expire,
    /// Until then.
    Write(u8),
    Persist,
    Overwrite,
    Delete,
    /// The connection is lost; so many of what was said had arrived.
    Cut(usize, usize),
    Kill(usize),
    Forget(usize, Pos),
    SetBack,
    SetForward,
    CatchUp,
    WindowEnds,
    /// The first marker of the queue comes before all events, if it may.
    Overtake(usize),
    Reopen(usize),
    Mark(usize),
    Scan(usize),
    /// Takes so many of what was said as one batch, and does the first thing with it: fires, or touches. (A batch that
    /// waits in hand before that is like one that is taken later: a cut keeps what had arrived.)
    Take(usize, usize, bool),
    Fire(usize, bool),
    Touch(usize, bool),
    Settle(usize, bool),
    Nudge(usize, bool),
    Decide(usize, bool),
    GiveUp(usize),
}

impl Step {
    /// Whether the relays go on by themselves: while there is such a step, something is under way.
    pub(crate) fn goes_on(self, limits: &Limits) -> bool {
        match self {
            Self::Reopen(_) | Self::Mark(_) | Self::Scan(_) => true,
            Self::Take(_, _, lost) => !lost,
            Self::Fire(_, lost) | Self::Touch(_, lost) | Self::Settle(_, lost) => !lost,
            Self::Nudge(_, lost) | Self::Decide(_, lost) => !lost,
            // A marker from before the clock was set back is not met again.
            Self::GiveUp(_) => limits.back > 0,
            _ => false,
        }
    }
}

impl World {
    /// All that may happen here.
    pub(crate) fn possible(&self) -> Vec<Step> {
        let mut steps = vec![];
        self.outside(&mut steps);
        for number in 0..2 {
            self.subscription(number, &mut steps);
            self.lane(number, &mut steps);
            self.nudger(number, &mut steps);
            self.forgetting(number, &mut steps);
        }
        steps
    }

    /// What users, the node and the clock do.
    fn outside(&self, steps: &mut Vec<Step>) {
        let (left, node) = (&self.left, &self.node);
        let mut may = |can: bool, step| steps.extend(can.then_some(step));
        let ahead = |due: u8| due > node.now;
        let score = self.index.score.map(|score| score.due);
        may(node.due().is_some_and(ahead) || score.is_some_and(ahead), Step::Tick);
        may(node.is_expired(), Step::Expire);
        for due in node.now + 1..=node.now + left.far {
            may(left.writes > 0 && node.due() != Some(due), Step::Write(due));
        }
        let is_there = node.key != Key::Absent && !node.is_expired();
        may(left.persists > 0 && is_there && node.due().is_some(), Step::Persist);
        may(left.overwrites > 0 && node.due().is_some(), Step::Overwrite);
        may(left.deletes > 0 && is_there, Step::Delete);
        may(left.windows > 0 && self.index.recent, Step::WindowEnds);
        may(left.back > 0, Step::SetBack);
        may(left.forward > 0, Step::SetForward);
        // Seconds: nobody has anything in hand for so long.
        let is_idle =
            |relay: &Relay| relay.lane == Lane::Idle && relay.queue.is_empty() && relay.nudge == Nudge::Idle;
        may(left.catch_ups > 0 && left.back == 0 && self.relays.iter().all(is_idle), Step::CatchUp);
    }

    fn subscription(&self, number: usize, steps: &mut Vec<Step>) {
        let (left, relay) = (&self.left, &self.relays[number]);
        let mut may = |can: bool, step| steps.extend(can.then_some(step));
        may(!relay.up, Step::Reopen(number));
        may(relay.up && relay.owes_mark, Step::Mark(number));
        may(left.kills > 0, Step::Kill(number));
        for kept in 0..=relay.queue.len() {
            may(left.cuts > 0 && relay.up, Step::Cut(number, kept));
        }
        let marker = relay.queue.iter().position(|item| matches!(item, Item::Marker(_)));
        may(!self.setting.rules.one_order && marker.is_some_and(|at| at > 0), Step::Overtake(number));
    }

    fn lane(&self, number: usize, steps: &mut Vec<Step>) {
        let (left, relay) = (&self.left, &self.relays[number]);
        let mut both = |may_be_lost: u8, step: &dyn Fn(bool) -> Step| {
            steps.push(step(false));
            steps.extend((may_be_lost > 0).then(|| step(true)));
        };
        match &relay.lane {
            Lane::Idle => {
                for (at, item) in relay.queue.iter().enumerate() {
                    // A marker at the end of a batch is met with the batch, or right after it: no difference.
                    if !matches!(item, Item::Marker(_)) {
                        let is_expired = |item: &Item| matches!(item, Item::Expired(_));
                        let fires = relay.queue[..=at].iter().any(is_expired);
                        let may_be_lost = if fires { left.repeats } else { left.lost };
                        both(may_be_lost, &|lost| Step::Take(number, at + 1, lost));
                    }
                }
            }
            Lane::Fire { .. } => both(left.repeats, &|lost| Step::Fire(number, lost)),
            Lane::Touch { .. } => both(left.lost, &|lost| Step::Touch(number, lost)),
            Lane::Settle { .. } => both(left.repeats, &|lost| Step::Settle(number, lost)),
        }
    }

    fn nudger(&self, number: usize, steps: &mut Vec<Step>) {
        let (left, relay) = (&self.left, &self.relays[number]);
        let mut may = |can: bool, step| steps.extend(can.then_some(step));
        match relay.nudge {
            Nudge::Idle => {
                let in_hand = self.relays.iter().filter(|relay| relay.nudge != Nudge::Idle).count();
                let is_free = in_hand < usize::from(left.at_once);
                let is_due = self.index.score.is_some_and(|score| score.due <= self.node.now);
                may(is_free && is_due, Step::Nudge(number, false));
                may(is_free && is_due && left.lost > 0, Step::Nudge(number, true));
                let scans = relay.owes_scan && !relay.owes_mark || left.scans > 0;
                may(is_free && relay.up && scans, Step::Scan(number));
            }
            Nudge::Held { waits: true, .. } => {
                may(left.give_ups > 0 || self.setting.limits.back > 0, Step::GiveUp(number));
            }
            Nudge::Held { .. } => {
                may(true, Step::Decide(number, false));
                may(left.repeats > 0, Step::Decide(number, true));
            }
        }
    }

    /// A relay forgets nothing that it has under way itself; within W, nothing that the other has.
    fn forgetting(&self, number: usize, steps: &mut Vec<Step>) {
        if self.left.forgets == 0 {
            return;
        }
        let rules = &self.setting.rules;
        let is_over = |relay: &Relay, upto: Pos| relay.under_way(rules).iter().all(|at| upto < *at);
        let (own, other) = (&self.relays[number], &self.relays[1 - number]);
        let may = |upto: &Pos| is_over(own, *upto) && (!self.setting.within_w || is_over(other, *upto));
        let kept = self.index.names.iter().chain(&self.index.debts).chain(&self.index.looked);
        steps.extend(kept.copied().filter(may).map(|upto| Step::Forget(number, upto)));
    }
}
