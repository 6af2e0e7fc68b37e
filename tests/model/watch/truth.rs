//! What really happened, and what may come of it. No rule sees this.

/// How a life of the key ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum End {
    Lives,
    Expired,
    Removed,
}

/// From the moment the key came into being to the moment it was gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Life {
    pub(crate) end: End,
    /// The relays that will never name its expiry: one bit each.
    pub(crate) lost: u8,
    /// The index held its due when it expired.
    pub(crate) known: bool,
    /// The key was written again after it.
    pub(crate) again: bool,
    /// Entries by event or proof.
    pub(crate) entries: u8,
    /// Its expiry was told, and taken for one that had fired without proof.
    pub(crate) paid: bool,
    /// Its expiry was told, and was too old: counted, not fired.
    pub(crate) old: bool,
    /// Entries without proof that came of its due.
    pub(crate) unproven: u8,
}

/// Two entries, or an entry and the debt of another, for one expiry.
pub(crate) const DUPLICATE: &str = "duplicate: one expiry has two entries";
/// More entries than expiries.
pub(crate) const SURPLUS: &str = "duplicate: there are more entries than expiries";
/// A relay heard of an expiry in time, and it has no entry.
pub(crate) const LOSS: &str = "loss: an expiry has no entry";
/// Nobody heard of an expiry, the index knew the key, and there is not even an unproven entry.
pub(crate) const UNTOLD: &str = "loss: the index knew of a key that expired unheard, and there is no entry";
/// An entry for a key that lives.
pub(crate) const EARLY: &str = "false: an entry for a key that lives";
/// A key was taken for unproven though every event came.
pub(crate) const UNPROVEN: &str = "false: unproven, though nobody missed anything";
/// Nothing is under way, and the index doesn't hold the due of a live key.
pub(crate) const UNKNOWN: &str = "lost from the index: a live key";
/// A nudge waits for a marker that never comes.
pub(crate) const STUCK: &str = "stuck: a nudge waits for ever";
/// The relays are busy with themselves.
pub(crate) const ENDLESS: &str = "endless: ever more touches";

/// All lives that still matter, and the first thing that went wrong.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Truth {
    pub(crate) lives: Vec<Life>,
    pub(crate) fault: Option<&'static str>,
    /// Nobody misses anything, and nobody is in a hurry.
    pub(crate) is_calm: bool,
    /// Of the lives that don't: expiries less entries.
    pub(crate) spare: i8,
}

impl Truth {
    /// The key comes into being.
    pub(crate) fn begin(&mut self) {
        self.lives.iter_mut().for_each(|before| before.again = true);
        self.lives.push(Life {
            end: End::Lives,
            lost: 0,
            known: false,
            again: false,
            entries: 0,
            paid: false,
            old: false,
            unproven: 0,
        });
    }

    pub(crate) fn current(&self) -> u8 {
        self.lives.len() as u8 - 1
    }

    pub(crate) fn life(&mut self, life: u8) -> &mut Life {
        &mut self.lives[usize::from(life)]
    }

    pub(crate) fn fired(&mut self, life: u8) {
        self.life(life).entries += 1;
        if self.life(life).entries > 1 || self.life(life).paid {
            self.fault = self.fault.or(Some(DUPLICATE));
        }
        self.count();
    }

    pub(crate) fn paid(&mut self, life: u8) {
        if self.life(life).entries > 0 || self.life(life).paid {
            self.fault = self.fault.or(Some(DUPLICATE));
        }
        self.life(life).paid = true;
    }

    pub(crate) fn old(&mut self, life: u8) {
        self.life(life).old = true;
    }

    /// An entry without proof.
    pub(crate) fn unproven(&mut self, life: u8) {
        self.life(life).unproven += 1;
        if self.life(life).end == End::Lives {
            self.fault = self.fault.or(Some(EARLY));
        }
        self.count();
        self.guessed();
    }

    /// Something was taken for unproven.
    pub(crate) fn guessed(&mut self) {
        self.fault = self.fault.or(Some(UNPROVEN).filter(|_| self.is_calm));
    }

    /// Expiries less entries. What is false is marked and counted apart: an unproven entry for a key that was removed.
    fn count(&mut self) {
        let expired = self.lives.iter().filter(|life| life.end == End::Expired);
        let spare = expired.map(|life| 1 - (life.entries + life.unproven) as i8).sum::<i8>() + self.spare;
        if spare < 0 {
            self.fault = self.fault.or(Some(SURPLUS));
        }
    }

    /// A life that can't matter any more.
    pub(crate) fn bury(&mut self, number: usize) {
        let life = self.lives.remove(number);
        if life.end == End::Expired {
            self.spare += 1 - (life.entries + life.unproven) as i8;
        }
    }

    /// What is missing when nothing is under way.
    pub(crate) fn missing(&self, fires_unproven: bool) -> Option<&'static str> {
        let is_told = |life: &Life| life.entries > 0 || life.paid || life.old;
        let mut untold = self.lives.iter().filter(|life| life.end == End::Expired && !is_told(life));
        if untold.clone().any(|life| life.lost != 0b11) {
            return Some(LOSS);
        }
        let owed = |life: &Life| life.known && life.unproven == 0 && !life.again;
        untold.any(owed).then_some(UNTOLD).filter(|_| fires_unproven)
    }
}
