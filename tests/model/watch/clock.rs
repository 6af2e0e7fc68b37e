//! The node's clock is set. Positions are its times, so they jump, or come again.
//!
//! | the clock | what holds | what doesn't |
//! |---|---|---|
//! | 5 s forward, at any moment | everything | |
//! | 5 s back, at any moment, `drop` | every expiry has its one entry | a live key may fall out of the index: its expiry fires when Redis says so, or a SCAN or its next event brings it back |
//! | 5 s back, at any moment, `fire` | the same | and what had fired without proof just before fires again when its event comes just after |
//! | in the last second before the clock has caught up (4 to 5 s later) | the same | a key that was looked at or fired in the last second before the step: looks at it are STALE for up to a second; `fire` may fire it once more, without proof |
//! | back, and a touch in the very microsecond of one from before | | an expiry with the same name is lost |
//!
//! The second and third row come from "more than 1 s ahead of TIME counts as none", which speaks of what the index keeps
//! and not of what arrives. "... stands before all that are not ahead" speaks of both, and heals both rows
//! (`Ahead::Earlier`); without either, looks are refused until the clock has caught up.

use crate::watch::rules::{Ahead, OnUnproven, Rules};
use crate::watch::setting::{Limits, Setting};
use crate::watch::truth::{LOSS, SURPLUS, UNKNOWN};
use crate::watch::world::STRIDE;
use crate::watch::{BOTH, caught, holds};

const FIRE: Rules = Rules::spec(OnUnproven::Fire);
const DROP: Rules = Rules::spec(OnUnproven::Drop);
const BACK: Limits = Limits { writes: 2, back: 1, at_once: 1, ..Limits::NONE };

#[test]
fn forward_by_5_s() {
    for on_unproven in BOTH {
        let limits = Limits { writes: 2, forward: 1, at_once: 1, ..Limits::NONE };
        holds(Setting::new(Rules::spec(on_unproven), limits));
    }
}

#[test]
fn back_by_5_s_no_expiry_is_lost_or_doubled() {
    holds(Setting { forgives_unknown: true, ..Setting::new(DROP, BACK) });
}

#[test]
fn back_by_5_s_a_live_key_may_fall_out_of_the_index() {
    caught(UNKNOWN, Setting::new(DROP, BACK));
    // Nothing falls out of it unless the key is written again around the step.
    holds(Setting::new(DROP, Limits { writes: 1, deletes: 1, ..BACK }));
}

#[test]
fn back_by_5_s_what_fired_without_proof_may_fire_again() {
    caught(SURPLUS, Setting::new(FIRE, BACK));
}

#[test]
fn back_by_5_s_and_what_is_ahead_stands_before_all_that_is_not() {
    for on_unproven in BOTH {
        holds(Setting::new(Rules { ahead: Ahead::Earlier, ..Rules::spec(on_unproven) }, BACK));
    }
}

#[test]
fn back_by_5_s_and_what_is_ahead_counts_as_it_is() {
    caught(UNKNOWN, Setting::new(Rules { ahead: Ahead::Later, ..DROP }, BACK));
}

/// The time goes on, and nobody has anything in hand: 5.5 s later all is as before.
#[test]
fn back_by_5_s_and_the_clock_has_caught_up() {
    let setting = Setting::new(Rules { ahead: Ahead::Earlier, ..FIRE }, Limits { catch_ups: 1, ..BACK });
    holds(Setting { catch_up_by: 11 * STRIDE, ..setting });
}

/// In the last second what the index keeps from before the step is not ahead any more, and not reached yet.
#[test]
fn back_by_5_s_and_the_last_second_before_the_clock_has_caught_up() {
    let limits = Limits { catch_ups: 1, ..BACK };
    let rules = |rules| Rules { ahead: Ahead::Earlier, ..rules };
    caught(SURPLUS, Setting { catch_up_by: 8 * STRIDE, ..Setting::new(rules(FIRE), limits) });
    caught(UNKNOWN, Setting { catch_up_by: 6 * STRIDE, ..Setting::new(rules(DROP), limits) });
    let last_second = Setting { catch_up_by: 6 * STRIDE, ..Setting::new(DROP, limits) };
    holds(Setting { forgives_unknown: true, ..last_second });
}

#[test]
fn a_position_that_comes_again_loses_an_expiry() {
    caught(LOSS, Setting { back_by: STRIDE, ..Setting::new(DROP, BACK) });
}
