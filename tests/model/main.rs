//! Random histories on a real server against a reference in memory; and every history of a watched key (`watch`).
#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod check;
mod consumers;
mod effects;
mod groups;
mod history;
mod operation;
mod plain;
mod reference;
mod timers;
mod watch;

use std::cell::RefCell;
use std::collections::BTreeSet;

use overdue_tests::Stage;
use proptest::test_runner::{Config, TestRunner};

use crate::history::History;

/// How many histories, and how long the longest is: some 10 s on two cores.
const HISTORIES: u32 = 400;
const STEPS: usize = 60;

#[test]
fn whatever_happens_every_timer_is_where_the_books_say() {
    let stage = RefCell::new(Stage::new());
    let config = Config { cases: HISTORIES, failure_persistence: None, ..Config::default() };
    let checked = TestRunner::new(config).run(&operation::history(STEPS), |steps| {
        let mut stage = stage.borrow_mut();
        let mut history = History::new(&mut stage);
        for step in &steps {
            history.step(step);
            history.check();
        }
        Ok(())
    });
    if let Err(error) = checked {
        panic!("{error}");
    }
}

/// What the strategy never gives is not tested.
#[test]
fn every_kind_of_step_occurs() {
    use proptest::strategy::{Strategy, ValueTree};
    let mut runner = TestRunner::default();
    let kinds: BTreeSet<_> = (0..200)
        .flat_map(|_| operation::history(STEPS).new_tree(&mut runner).unwrap().current())
        .map(|step| format!("{step:?}"))
        .map(|text| text.split(['(', ' ']).next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds.len(), 17, "{kinds:?}");
}
