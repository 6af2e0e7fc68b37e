//! Rules that somebody would think of first, each with the shortest history that shows it to fail. The search is the
//! same as in `holds`; only the switch that is named differs.

use crate::watch::caught;
use crate::watch::holds;
use crate::watch::rules::{Debt, Identity, OnUnproven, Order, Removal, Rules};
use crate::watch::setting::{Limits, Setting};
use crate::watch::truth::{DUPLICATE, EARLY, LOSS, SURPLUS, UNPROVEN, UNTOLD};

const FIRE: Rules = Rules::spec(OnUnproven::Fire);
const DROP: Rules = Rules::spec(OnUnproven::Drop);
const TWO_LIVES: Limits = Limits { writes: 2, ..Limits::NONE };

/// A key that ends again within the window loses its second expiry.
#[test]
fn a_window_of_recent_firings_that_is_long() {
    caught(LOSS, Setting::new(Rules { identity: Identity::Window, ..DROP }, TWO_LIVES));
}

/// And a relay that is later than the window fires again.
#[test]
fn a_window_of_recent_firings_that_is_short() {
    let limits = Limits { writes: 1, windows: 1, ..Limits::NONE };
    caught(DUPLICATE, Setting::new(Rules { identity: Identity::Window, ..DROP }, limits));
}

/// The slower relay tells of the first end when the due of the second life is reached: that fires for it.
#[test]
fn the_due_as_identity() {
    caught(DUPLICATE, Setting::new(Rules { identity: Identity::Due, ..DROP }, TWO_LIVES));
}

/// A touch proves the second end while all are still on their way with the first: that one is below the mark then.
#[test]
fn a_watermark_for_each_key() {
    caught(LOSS, Setting::new(Rules { identity: Identity::Watermark, ..DROP }, TWO_LIVES));
}

/// Between a look's touch and its settle the key is fired by another relay: the due is as it was, and the look puts a
/// dead key into the index.
#[test]
fn compare_and_set_on_the_due() {
    caught(SURPLUS, Setting::new(Rules { order: Order::CompareAndSet, ..FIRE }, TWO_LIVES));
    caught(UNPROVEN, Setting::new(Rules { order: Order::CompareAndSet, ..DROP }, TWO_LIVES));
}

#[test]
fn the_look_that_comes_last_counts() {
    caught(SURPLUS, Setting::new(Rules { order: Order::Arrival, ..FIRE }, TWO_LIVES));
}

/// Events and markers on two channels of the client: relays count out different names for the same expiry.
#[test]
fn events_and_markers_out_of_order() {
    let limits = Limits { writes: 1, ..Limits::NONE };
    let setting = Setting::new(Rules { one_order: false, ..DROP }, limits);
    caught(DUPLICATE, Setting { is_plain: true, ..setting });
}

/// The names after the gap are those from before it.
#[test]
fn base_is_kept_over_a_gap() {
    let limits = Limits { cuts: 1, at_once: 1, ..TWO_LIVES };
    caught(DUPLICATE, Setting::new(Rules { base_forgotten: false, ..DROP }, limits));
}

/// Both relays miss the expiry. A look at an older event finds nothing, takes the due away, and no nudge asks any more.
/// (Where the unproven is dropped this makes no difference: what it takes away is dropped otherwise.)
#[test]
fn a_look_that_finds_nothing_removes() {
    let limits = Limits { writes: 1, cuts: 2, at_once: 1, ..Limits::NONE };
    caught(UNTOLD, Setting::new(Rules { removal: Removal::Unasked, ..FIRE }, limits));
}

/// The DEL is in the relay's own queue: what it would tell in a moment is taken for unproven. (Where that is dropped,
/// nothing comes of it: should it have expired, the event fires by its name.)
#[test]
fn nobody_waits_for_met() {
    let limits = Limits { writes: 1, deletes: 1, ..Limits::NONE };
    caught(UNPROVEN, Setting::new(Rules { barrier: false, ..FIRE }, limits));
    // With `give_ups` it is no fault that something is taken for unproven.
    holds(Setting::new(Rules { barrier: false, ..DROP }, Limits { give_ups: 1, ..limits }));
}

/// One relay in a gap fires without proof, then the other tells of the expiry.
#[test]
fn no_debt() {
    let limits = Limits { writes: 1, cuts: 1, ..Limits::NONE };
    caught(SURPLUS, Setting::new(Rules { debt: Debt::None, ..FIRE }, limits));
}

/// As first specified. A key fires without proof twice, in two lives, before the slower relay tells of the first end: the
/// second debt has taken the place of the first, one expiry pays it, the other fires. One cut is enough.
#[test]
fn one_debt_for_each_key() {
    let hurry = Limits { give_ups: 2, scans: 1, at_once: 1, ..TWO_LIVES };
    caught(SURPLUS, Setting::new(Rules { debt: Debt::Newest, ..FIRE }, hurry));
    let gap = Limits { cuts: 1, at_once: 1, ..TWO_LIVES };
    caught(SURPLUS, Setting::new(Rules { debt: Debt::Newest, ..FIRE }, gap));
}

/// As first specified: R only if the removal is the *last* event of the batch. The batch is DEL, then a write; when it is
/// looked at, that life is over too. So nothing is removed, and the due of the first life, whose DEL is now answered,
/// counts as unproven: a false timeout without any fault.
#[test]
fn the_last_event_alone_says_removed() {
    let limits = Limits { deletes: 1, ..TWO_LIVES };
    caught(UNPROVEN, Setting::new(Rules { removal: Removal::Last, ..FIRE }, limits));
}

/// As first specified: what is not above the horizon fires if the index holds a due that is reached *now*. A relay that
/// stood still for longer than W tells again of a first life; the due is of the second.
#[test]
fn an_old_event_fires_for_a_due_of_now() {
    let limits = Limits { forgets: 1, ..TWO_LIVES };
    let setting = Setting::new(Rules { old_fires_for_old: false, ..DROP }, limits);
    caught(DUPLICATE, Setting { within_w: false, ..setting });
}

/// As first specified: the horizon says nothing of U and D. One that waited for longer than W removes the due of a later
/// life, whose look is forgotten.
#[test]
fn an_old_barrier_is_decided() {
    let limits = Limits { forgets: 1, at_once: 1, ..TWO_LIVES };
    let setting = Setting::new(Rules { old_is_nudged_again: false, ..FIRE }, limits);
    caught(EARLY, Setting { within_w: false, ..setting });
}
