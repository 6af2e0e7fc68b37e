//! What holds, within which bounds.

use crate::watch::rules::{OnUnproven, Rules};
use crate::watch::setting::{Limits, Setting};
use crate::watch::{BOTH, holds};

fn spec(on_unproven: OnUnproven, limits: Limits) -> Setting {
    Setting::new(Rules::spec(on_unproven), limits)
}

fn both(limits: Limits) {
    for on_unproven in BOTH {
        holds(spec(on_unproven, limits));
    }
}

/// Nothing is ever unproven then: both answers to it are one.
fn calm(limits: Limits) {
    holds(spec(OnUnproven::Fire, limits));
}

#[test]
fn everybody_listens_while_a_key_is_extended_shortened_and_deleted() {
    calm(Limits { writes: 2, deletes: 1, far: 2, ..Limits::NONE });
}

#[test]
fn everybody_listens_while_a_key_loses_its_ttl() {
    calm(Limits { writes: 2, persists: 1, overwrites: 1, ..Limits::NONE });
}

#[test]
fn everybody_listens_while_a_key_expires_three_times() {
    calm(Limits { writes: 3, deletes: 1, at_once: 1, ..Limits::NONE });
}

#[test]
fn a_subscription_is_cut_and_what_is_unproven_fires() {
    holds(spec(OnUnproven::Fire, Limits { writes: 2, cuts: 1, at_once: 1, ..Limits::NONE }));
}

#[test]
fn a_subscription_is_cut_and_what_is_unproven_is_dropped() {
    holds(spec(OnUnproven::Drop, Limits { writes: 2, cuts: 1, at_once: 1, ..Limits::NONE }));
}

#[test]
fn a_subscription_is_cut_while_keys_are_deleted() {
    both(Limits { writes: 1, deletes: 1, cuts: 1, far: 2, ..Limits::NONE });
}

#[test]
fn both_subscriptions_are_cut() {
    both(Limits { writes: 1, deletes: 1, cuts: 2, at_once: 1, ..Limits::NONE });
}

#[test]
fn a_relay_is_killed() {
    both(Limits { writes: 2, kills: 1, at_once: 1, ..Limits::NONE });
}

#[test]
fn both_relays_are_killed() {
    both(Limits { writes: 1, deletes: 1, kills: 2, at_once: 1, ..Limits::NONE });
}

#[test]
fn answers_of_touch_and_settle_are_lost() {
    calm(Limits { writes: 2, deletes: 1, lost: 1, repeats: 1, at_once: 1, ..Limits::NONE });
}

#[test]
fn answers_are_lost_around_a_gap() {
    both(Limits { writes: 1, cuts: 1, lost: 1, repeats: 1, give_ups: 1, at_once: 1, ..Limits::NONE });
}

#[test]
fn nudges_wait_no_longer_than_proof_wait() {
    both(Limits { writes: 2, deletes: 1, give_ups: 2, ..Limits::NONE });
}

#[test]
fn what_is_old_is_forgotten() {
    calm(Limits { writes: 2, deletes: 1, forgets: 1, at_once: 1, ..Limits::NONE });
    both(Limits { writes: 1, deletes: 1, cuts: 1, forgets: 1, at_once: 1, ..Limits::NONE });
}

/// A relay stands still for longer than W (a stopped virtual machine) and goes on with what it had: what it tells is
/// forgotten. Nothing fires twice, nothing false; an expiry that it alone had heard of is OLD, and counted.
#[test]
fn a_relay_stands_still_for_longer_than_w() {
    for on_unproven in BOTH {
        let limits = Limits { writes: 2, forgets: 1, at_once: 1, ..Limits::NONE };
        holds(Setting { within_w: false, ..spec(on_unproven, limits) });
    }
}

/// Wider bounds than a build has time for: a minute or two each, with `--release --run-ignored only`.
mod wide {
    use super::*;

    #[test]
    #[ignore = "takes minutes"]
    fn everybody_listens() {
        calm(Limits { writes: 3, deletes: 1, ..Limits::NONE });
        calm(Limits { writes: 2, deletes: 1, persists: 1, overwrites: 1, far: 2, ..Limits::NONE });
        both(Limits { writes: 2, deletes: 1, give_ups: 1, lost: 1, repeats: 1, ..Limits::NONE });
    }

    #[test]
    #[ignore = "takes minutes"]
    fn a_subscription_is_cut() {
        both(Limits { writes: 2, deletes: 1, cuts: 1, ..Limits::NONE });
        both(Limits { writes: 3, cuts: 1, at_once: 1, ..Limits::NONE });
        both(Limits { writes: 2, deletes: 1, cuts: 1, give_ups: 1, at_once: 1, ..Limits::NONE });
        both(Limits { writes: 2, cuts: 1, lost: 1, repeats: 1, at_once: 1, ..Limits::NONE });
        both(Limits { writes: 2, cuts: 1, forgets: 1, at_once: 1, ..Limits::NONE });
    }

    #[test]
    #[ignore = "takes minutes"]
    fn both_relays_fail() {
        both(Limits { writes: 2, cuts: 2, at_once: 1, ..Limits::NONE });
        both(Limits { writes: 2, cuts: 1, kills: 1, at_once: 1, ..Limits::NONE });
        both(Limits {
            writes: 1,
            cuts: 1,
            kills: 1,
            lost: 1,
            repeats: 1,
            give_ups: 1,
            at_once: 1,
            ..Limits::NONE
        });
    }
}
