//! States that differ only in what can't matter any more are one. Left out are markers that name nothing and that
//! nobody waits for, names and debts that nothing under way can meet, expiries told in vain, lives that are over; and
//! the rest is numbered anew. (`small` shows that the nearest faults are the same without this.)

use crate::watch::index::{Removed, Seen};
use crate::watch::node::Key;
use crate::watch::relay::{Item, Lane, Nudge, Relay};
use crate::watch::rules::{Identity, OnUnproven, Order, Removal, Rules};
use crate::watch::setting::Limits;
use crate::watch::truth::{End, Life};
use crate::watch::world::{FIRST, Pos, STRIDE, World};

impl Relay {
    /// Whether its nudger waits for a marker like this one.
    fn waits(&self, marker: Pos) -> bool {
        matches!(self.nudge, Nudge::Held { at, waits: true, .. } if at <= marker)
    }

    /// A marker counts where it names what follows, or where it is waited for: else it may as well stand as far behind
    /// as the next, and is the same as that. A cut counts until a marker. `names`: what has fired.
    fn simplify(&mut self, names: &[Pos], rules: &Rules) -> bool {
        let names_removals = rules.removal == Removal::Placed;
        let (mut base, mut count) = (self.base, self.count);
        let (mut floating, mut in_vain) = (None, None);
        let mut kept: Vec<Item> = Vec::with_capacity(self.queue.len());
        let mut is_waited_for = false;
        for item in &self.queue {
            let next = match *item {
                Item::Marker(at) => Some(Some(at)),
                Item::Closed if rules.base_forgotten => Some(None),
                Item::Closed => continue,
                Item::Expired(_) | Item::Removed | Item::Changed => None,
            };
            if let Some(next) = next {
                in_vain.take().map(|place| kept.remove(place));
                (base, count, floating) = (next, 0, Some(*item));
                if !is_waited_for && next.is_some_and(|at| self.waits(at)) {
                    is_waited_for = true;
                    kept.extend(floating.take());
                }
                continue;
            }
            if matches!(item, Item::Expired(_)) {
                kept.extend(floating.take());
                count += 1;
                let has_fired = base.is_some_and(|base| names.contains(&(base + count)));
                in_vain = (has_fired && count == 1).then_some(kept.len());
            } else if names_removals && *item == Item::Removed {
                kept.extend(floating.take());
            }
            kept.push(*item);
        }
        kept.extend(floating);
        let is_simpler = self.queue != kept;
        self.queue = kept;
        let counts = |item: &&Item| **item != Item::Changed && (names_removals || **item != Item::Removed);
        if let Some(Item::Marker(_) | Item::Closed) = self.queue.iter().find(counts) {
            (self.base, self.count) = (None, 0);
        }
        self.marker = self.marker.filter(|marker| self.waits(*marker));
        is_simpler
    }

    fn seen(&mut self) -> impl Iterator<Item = &mut Seen> {
        let nudge = match &mut self.nudge {
            Nudge::Held { seen, .. } => Some(seen),
            Nudge::Idle => None,
        };
        let lane = match &mut self.lane {
            Lane::Settle { seen, .. } => Some(seen),
            _ => None,
        };
        nudge.into_iter().chain(lane)
    }
}

impl World {
    pub(crate) fn simplify(&mut self) {
        let (rules, limits) = (&self.setting.rules, &self.setting.limits);
        let forgets_names = limits.forgets > 0 || limits.has_clock();
        let is_by_name = rules.identity == Identity::Position && !forgets_names;
        let names = if is_by_name { self.index.names.as_slice() } else { &[] };
        for relay in &mut self.relays {
            while relay.simplify(names, rules) {
                relay.meet(rules);
            }
        }
        if !forgets_names {
            let under_way: Vec<Pos> = self.relays.iter().flat_map(|relay| relay.under_way(rules)).collect();
            let lowest = under_way.iter().min().copied().unwrap_or(Pos::MAX);
            self.index.names.retain(|name| !is_by_name || under_way.contains(name));
            self.index.looked = self.index.looked.filter(|looked| *looked >= lowest);
            self.index.debts.retain(|debt| *debt >= lowest);
        }
        self.settle_lives();
        if !self.setting.limits.has_clock() {
            self.number_anew();
            self.begin_time_anew();
        }
    }

    fn settle_lives(&mut self) {
        let Limits { cuts, kills, .. } = self.setting.limits;
        let may_all_miss = cuts + kills > 1;
        let may_be_owed = may_all_miss && self.setting.rules.on_unproven == OnUnproven::Fire;
        for life in &mut self.truth.lives {
            let is_told = life.entries > 0 || life.paid;
            life.lost *= u8::from(may_all_miss && !is_told);
            life.known &= may_be_owed && !is_told;
            life.again &= may_be_owed && !is_told;
        }
        let mut named = 0_u32;
        self.each_life(&mut |life| named |= 1 << *life);
        let is_over = |life: &Life| match life.end {
            End::Lives => false,
            End::Expired => life.entries > 0 || life.paid,
            End::Removed => true,
        };
        for number in (0..self.truth.lives.len()).rev() {
            if named & (1 << number) == 0 && is_over(&self.truth.lives[number]) {
                self.truth.bury(number);
                self.each_life(&mut |life| *life -= u8::from(usize::from(*life) > number));
            }
        }
    }

    /// Every mention of a life.
    fn each_life(&mut self, each: &mut dyn FnMut(&mut u8)) {
        for relay in &mut self.relays {
            for seen in relay.seen() {
                if let Seen::Due { life, .. } | Seen::Proven { life } = seen {
                    each(life);
                }
            }
            for item in &mut relay.queue {
                if let Item::Expired(life) = item {
                    each(life);
                }
            }
            if let Lane::Fire { fires, .. } = &mut relay.lane {
                fires.iter_mut().for_each(|(_, life)| each(life));
            }
        }
        self.index.score.iter_mut().for_each(|score| each(&mut score.life));
    }

    /// Every position.
    fn each_position(&mut self, each: &mut dyn FnMut(&mut Pos)) {
        let index = &mut self.index;
        let kept = index.names.iter_mut().chain(&mut index.debts);
        kept.chain(&mut index.looked).chain(&mut index.horizon).for_each(&mut *each);
        for relay in &mut self.relays {
            relay.base.iter_mut().chain(&mut relay.marker).for_each(&mut *each);
            for item in &mut relay.queue {
                if let Item::Marker(at) = item {
                    each(at);
                }
            }
            if let Nudge::Held { at, .. } = &mut relay.nudge {
                each(at);
            }
            match &mut relay.lane {
                Lane::Fire { fires, .. } => fires.iter_mut().for_each(|(name, _)| each(name)),
                Lane::Settle { at, .. } => each(at),
                Lane::Idle | Lane::Touch { .. } => {}
            }
            if let Some(Removed::After(marker)) = relay.removed_mut() {
                each(marker);
            }
        }
    }

    /// Only the order of positions matters: their markers are numbered without holes.
    fn number_anew(&mut self) {
        let marker = |at: Pos| (at - FIRST) / STRIDE;
        let mut used = 0_u64;
        self.each_position(&mut |at| used |= 1 << marker(*at));
        let below = |n: Pos| (used & ((1 << n) - 1)).count_ones() as Pos;
        self.each_position(&mut |at| *at = FIRST + below(marker(*at)) * STRIDE + (*at - FIRST) % STRIDE);
        self.node.time = FIRST + used.count_ones() as Pos * STRIDE;
    }

    /// Dues of the past are all alike; but compare-and-set tells them apart.
    fn begin_time_anew(&mut self) {
        if self.setting.rules.order == Order::CompareAndSet {
            return;
        }
        let now = std::mem::take(&mut self.node.now);
        let back = |due: &mut u8| *due = due.saturating_sub(now);
        if let Key::Until(due) = &mut self.node.key {
            back(due);
        }
        self.index.score.iter_mut().for_each(|score| back(&mut score.due));
        for seen in self.relays.iter_mut().flat_map(Relay::seen) {
            if let Seen::Due { due, .. } = seen {
                back(due);
            }
        }
    }
}
