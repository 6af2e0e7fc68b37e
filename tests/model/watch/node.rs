//! The node: its key, those who write it, its own expiry, and the one order in which it says what happens.

use crate::watch::index::{Clock, Seen};
use crate::watch::relay::Item;
use crate::watch::truth::End;
use crate::watch::world::{Pos, STRIDE, World};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    Absent,
    /// Without a TTL.
    Forever,
    /// Alive before its due; from then on expired, and not yet deleted.
    Until(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Node {
    pub(crate) key: Key,
    /// The clock in ticks, for dues.
    pub(crate) now: u8,
    /// The clock as a position: that of the next touch.
    pub(crate) time: Pos,
}

impl Node {
    pub(crate) fn due(&self) -> Option<u8> {
        match self.key {
            Key::Until(due) => Some(due),
            Key::Absent | Key::Forever => None,
        }
    }

    pub(crate) fn is_expired(&self) -> bool {
        self.due().is_some_and(|due| due <= self.now)
    }
}

impl World {
    /// The clock of the index, which is the node's here.
    pub(crate) fn clock(&self) -> Clock {
        Clock { now: self.node.now, time: self.node.time }
    }

    /// To all who are subscribed.
    fn say(&mut self, item: Item) {
        for number in 0..2 {
            if self.relays[number].up {
                self.relays[number].queue.push(item);
            } else {
                self.lose(number, &[item]);
            }
        }
    }

    /// What this relay will never hear of.
    pub(crate) fn lose(&mut self, number: usize, items: &[Item]) {
        for item in items {
            if let Item::Expired(life) = item {
                self.truth.life(*life).lost |= 1 << number;
            }
        }
    }

    /// Redis' own expiry, or anybody's command that meets the key after its due. Answers whose end it was.
    pub(crate) fn expire(&mut self) -> u8 {
        let life = self.truth.current();
        let known = self.index.score.is_some_and(|score| score.life == life);
        let ended = self.truth.life(life);
        (ended.end, ended.known) = (End::Expired, known);
        self.node.key = Key::Absent;
        self.say(Item::Expired(life));
        life
    }

    /// Every command meets the key first: one whose time is over is deleted, and that is said before all else.
    pub(crate) fn write(&mut self, key: Key, says: Option<Item>) {
        if self.node.is_expired() {
            self.expire();
        }
        if self.node.key == Key::Absent {
            self.truth.begin();
        }
        if key == Key::Absent {
            let life = self.truth.current();
            self.truth.life(life).end = End::Removed;
        }
        self.node.key = key;
        says.into_iter().for_each(|item| self.say(item));
    }

    /// The script `touch` without keys.
    pub(crate) fn mark(&mut self) -> Pos {
        let at = self.node.time;
        self.node.time += STRIDE;
        self.say(Item::Marker(at));
        at
    }

    /// The script `touch`: first the marker, then the key. What it expires has its event right behind the marker.
    pub(crate) fn touch(&mut self) -> (Pos, Seen) {
        let at = self.mark();
        let seen = match self.node.key {
            Key::Until(_) if self.node.is_expired() => Seen::Proven { life: self.expire() },
            Key::Until(due) => Seen::Due { due, life: self.truth.current() },
            Key::Forever => Seen::Forever,
            Key::Absent => Seen::Gone,
        };
        (at, seen)
    }
}
