//! The bounds of a search.

use crate::watch::rules::Rules;
use crate::watch::world::{Pos, STRIDE};

/// What may happen, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Limits {
    /// How many ticks of the clock a due may be away.
    pub(crate) far: u8,
    /// SET with a TTL, EXPIRE longer or shorter, RENAME or RESTORE onto the key: all the same from here.
    pub(crate) writes: u8,
    /// PERSIST.
    pub(crate) persists: u8,
    /// SET without a TTL, which no event tells of.
    pub(crate) overwrites: u8,
    /// DEL, RENAME away.
    pub(crate) deletes: u8,
    /// Subscriptions cut.
    pub(crate) cuts: u8,
    /// Relays killed and started again.
    pub(crate) kills: u8,
    /// Touches whose answer is lost.
    pub(crate) lost: u8,
    /// Settles whose answer is lost, and that are done again.
    pub(crate) repeats: u8,
    /// Waits for `met` that end with `proof_wait`.
    pub(crate) give_ups: u8,
    /// Scans, other than those after a gap.
    pub(crate) scans: u8,
    /// Nudges and scans in hand at the same time, of both relays.
    pub(crate) at_once: u8,
    /// Passes of forgetting.
    pub(crate) forgets: u8,
    /// How often the window of `Identity::Window` ends.
    pub(crate) windows: u8,
    /// The clock is set back; set forward; and the time passes until it is where it was.
    pub(crate) back: u8,
    pub(crate) forward: u8,
    pub(crate) catch_ups: u8,
}

impl Limits {
    /// Nothing at all.
    pub(crate) const NONE: Self = Self {
        far: 1,
        writes: 0,
        persists: 0,
        overwrites: 0,
        deletes: 0,
        cuts: 0,
        kills: 0,
        lost: 0,
        repeats: 0,
        give_ups: 0,
        scans: 0,
        at_once: 2,
        forgets: 0,
        windows: 0,
        back: 0,
        forward: 0,
        catch_ups: 0,
    };

    /// Whether somebody may miss something, or be in a hurry.
    pub(crate) fn has_faults(&self) -> bool {
        self.cuts + self.kills + self.give_ups + self.back > 0
    }

    /// Whether positions are times: else only their order counts.
    pub(crate) fn has_clock(&self) -> bool {
        self.back + self.forward > 0
    }
}

/// What doesn't change in a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
    /// Forgetting keeps what is under way: nothing is under way for longer than W.
    pub(crate) within_w: bool,
    /// How far the clock is set back, and how much time passes until it has caught up.
    pub(crate) back_by: Pos,
    pub(crate) catch_up_by: Pos,
    /// That the index doesn't know a live key is no fault here.
    pub(crate) forgives_unknown: bool,
    /// States are taken as they are.
    pub(crate) is_plain: bool,
}

impl Setting {
    pub(crate) const fn new(rules: Rules, limits: Limits) -> Self {
        // Five seconds, and half a step more: no position comes twice.
        let back_by = 10 * STRIDE + STRIDE / 2;
        Self {
            rules,
            limits,
            within_w: true,
            back_by,
            catch_up_by: back_by,
            forgives_unknown: false,
            is_plain: false,
        }
    }
}
