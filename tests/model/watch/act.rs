//! What each step does.

use crate::watch::node::Key;
use crate::watch::relay::{Item, Lane, Relay};
use crate::watch::step::Step;
use crate::watch::world::World;

impl World {
    /// Goes one step.
    pub(crate) fn go(&mut self, step: Step) {
        match step {
            Step::Tick => self.node.now += 1,
            Step::Expire => drop(self.expire()),
            Step::Write(due) => {
                self.left.writes -= 1;
                self.write(Key::Until(due), Some(Item::Changed));
            }
            Step::Persist => {
                self.left.persists -= 1;
                self.write(Key::Forever, Some(Item::Changed));
            }
            Step::Overwrite => {
                self.left.overwrites -= 1;
                self.write(Key::Forever, None);
            }
            Step::Delete => {
                self.left.deletes -= 1;
                self.write(Key::Absent, Some(Item::Removed));
            }
            Step::Cut(number, kept) => self.cut(number, kept),
            Step::Kill(number) => self.kill(number),
            Step::Forget(_, upto) => {
                self.left.forgets -= 1;
                self.index.forget(upto, self.clock());
            }
            Step::SetBack => {
                self.left.back -= 1;
                self.node.time -= self.setting.back_by;
                self.node.now = self.node.now.saturating_sub(1);
            }
            Step::SetForward => {
                self.left.forward -= 1;
                self.node.time += self.setting.back_by;
                self.node.now += 1;
            }
            Step::CatchUp => {
                self.left.catch_ups -= 1;
                // Each relay touches the node once a second.
                self.mark();
                self.node.time += self.setting.catch_up_by;
                self.mark();
                self.node.now += 1;
            }
            Step::WindowEnds => {
                self.left.windows -= 1;
                self.index.recent = false;
            }
            Step::Overtake(number) => {
                let queue = &mut self.relays[number].queue;
                let marker = queue.iter().position(|item| matches!(item, Item::Marker(_)));
                queue[..=marker.unwrap_or(0)].rotate_right(1);
            }
            Step::Reopen(number) => {
                let relay = &mut self.relays[number];
                (relay.up, relay.owes_mark, relay.owes_scan) = (true, true, true);
            }
            Step::Mark(number) => {
                self.relays[number].owes_mark = false;
                self.mark();
            }
            Step::Scan(number) => self.scan(number),
            Step::Take(number, many, lost) => self.take(number, many, lost),
            Step::Fire(number, lost) => self.settle_fires(number, lost),
            Step::Touch(number, lost) => self.touch_for_look(number, lost),
            Step::Settle(number, lost) => self.settle_look(number, lost),
            Step::Nudge(number, lost) => self.nudge(number, lost),
            Step::Decide(number, lost) => self.decide(number, lost),
            Step::GiveUp(number) => {
                self.left.give_ups = self.left.give_ups.saturating_sub(1);
                self.decide(number, false);
            }
        }
    }

    fn cut(&mut self, number: usize, kept: usize) {
        self.left.cuts -= 1;
        let relay = &mut self.relays[number];
        let lost = relay.queue.split_off(kept);
        relay.queue.push(Item::Closed);
        (relay.up, relay.owes_mark) = (false, false);
        self.lose(number, &lost);
    }

    /// All that it had in hand is gone with it.
    fn kill(&mut self, number: usize) {
        self.left.kills -= 1;
        let dead = std::mem::replace(&mut self.relays[number], Relay::new(None, false));
        self.lose(number, &dead.queue);
        if let Lane::Fire { fires, .. } = dead.lane {
            fires.iter().for_each(|(_, life)| self.lose(number, &[Item::Expired(*life)]));
        }
    }
}
