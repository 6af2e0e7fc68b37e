//! What `simple` leaves out doesn't matter: the nearest fault is the same without it, and no farther away. (It is nearer
//! by the steps that do nothing: an expiry told in vain is taken without one.)

use crate::watch::caught;
use crate::watch::rules::{Debt, Identity, OnUnproven, Order, Removal, Rules};
use crate::watch::setting::{Limits, Setting};
use crate::watch::truth::{DUPLICATE, LOSS, SURPLUS, UNKNOWN, UNPROVEN};

const FIRE: Rules = Rules::spec(OnUnproven::Fire);
const DROP: Rules = Rules::spec(OnUnproven::Drop);
const TWO_LIVES: Limits = Limits { writes: 2, at_once: 1, ..Limits::NONE };

fn same(fault: &str, setting: Setting, in_vain: usize) {
    let simple = caught(fault, setting);
    let plain = caught(fault, Setting { is_plain: true, ..setting });
    assert_eq!(simple + in_vain, plain);
}

#[test]
fn names_that_are_over() {
    same(LOSS, Setting::new(Rules { identity: Identity::Window, ..DROP }, TWO_LIVES), 0);
    same(LOSS, Setting::new(Rules { identity: Identity::Watermark, ..DROP }, TWO_LIVES), 0);
    same(DUPLICATE, Setting::new(Rules { identity: Identity::Due, ..DROP }, TWO_LIVES), 0);
}

#[test]
fn expiries_told_in_vain() {
    same(SURPLUS, Setting::new(Rules { order: Order::CompareAndSet, ..FIRE }, TWO_LIVES), 1);
    same(SURPLUS, Setting::new(Rules { order: Order::Arrival, ..FIRE }, TWO_LIVES), 1);
}

#[test]
fn markers_that_nobody_waits_for() {
    let one = Limits { writes: 1, deletes: 1, at_once: 1, ..Limits::NONE };
    same(UNPROVEN, Setting::new(Rules { barrier: false, ..FIRE }, one), 0);
    let two = Limits { deletes: 1, ..TWO_LIVES };
    same(UNPROVEN, Setting::new(Rules { removal: Removal::Last, ..FIRE }, two), 0);
}

#[test]
fn lives_and_debts_that_are_settled() {
    let gap = Limits { cuts: 1, ..TWO_LIVES };
    same(DUPLICATE, Setting::new(Rules { base_forgotten: false, ..DROP }, gap), 0);
    same(SURPLUS, Setting::new(Rules { debt: Debt::None, ..FIRE }, Limits { writes: 1, ..gap }), 0);
    let hurry = Limits { give_ups: 2, scans: 1, ..TWO_LIVES };
    same(SURPLUS, Setting::new(Rules { debt: Debt::Newest, ..FIRE }, hurry), 0);
}

#[test]
fn positions_where_clocks_are_set() {
    same(UNKNOWN, Setting::new(DROP, Limits { back: 1, ..TWO_LIVES }), 0);
}
