//! Names and looks are forgotten by position, and what is older than that is not guessed at (section 5).

use overdue_protocol::call::SettledWord::{Dup, Fired, FiredOld, Gone, Ok, Old, Paid, Stale, Unproven, Wait};
use overdue_protocol::call::Sight::{self, Due};
use overdue_protocol::call::{Forgot, SettleItem, SettleOp};

use crate::watched::{EVENT, PROOF, UNPROVEN, Watched, key, look, removal};

fn horizon(w: &mut Watched) -> u64 {
    w.stage.tally("horizon").try_into().unwrap()
}

#[test]
fn the_oldest_go_first_in_pages_and_the_horizon_says_up_to_where() {
    let mut w = Watched::new();
    let due = w.later();
    for n in 1..=5 {
        w.word(&format!("fired {n}"), 10 * n, EVENT);
        w.track(&format!("alive {n}"), 10 * n + 1, due);
    }
    let none = Forgot { removed: 0, more: false, horizon: 0 };
    assert_eq!(w.forget(9, 100), none);
    assert_eq!(w.stage.tally("horizon"), 0);
    // Names at 10, 20 ..; looks at 10, 11, 20, 21 ..: two of each set.
    assert_eq!(w.forget(41, 2), Forgot { removed: 4, more: true, horizon: w.at(20) });
    assert_eq!((horizon(&mut w), w.names().len()), (w.at(20), 3));
    assert_eq!(w.forget(41, 100), Forgot { removed: 2 + 6, more: false, horizon: w.at(41) });
    assert_eq!(w.forget(41, 100), Forgot { horizon: w.at(41), ..none });
    assert_eq!(w.forget(30, 100), Forgot { horizon: w.at(41), ..none }, "it never moves back");
    assert_eq!((w.looked("alive 4"), w.looked("alive 5"), w.watched().len()), (None, Some(51), 5));
}

#[test]
fn an_event_that_is_too_old_fires_only_what_the_index_knows_to_be_due() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    w.word("fired", 10, EVENT);
    w.track("due", 10, past);
    w.track("lives", 10, later);
    w.word("owes", 5, look(Due(past)));
    w.word("owes", 40, UNPROVEN);
    w.word("edge", 30, EVENT);
    w.forget(30, 100);
    assert_eq!(w.word("fired", 10, EVENT), Old, "nobody can say whether it fired");
    assert_eq!(w.word("lives", 20, EVENT), Old);
    assert_eq!(w.word("unknown", 30, PROOF), Old);
    assert_eq!(w.word("owes", 20, EVENT), Old, "the debt is for a name that is not forgotten");
    assert_eq!(w.word("owes", 31, EVENT), Paid);
    assert_eq!(w.one("due", 20, EVENT), (FiredOld, past));
    assert_eq!(w.word("due", 20, EVENT), Dup);
    w.track("looked at later", 50, past);
    assert_eq!(w.word("looked at later", 20, EVENT), Old);
    assert_eq!(w.word("unknown", 31, EVENT), Fired);
    assert_eq!(w.watched().len(), 2);
    assert_eq!(w.stage.tally("watched_fired"), 5);
}

#[test]
fn a_look_and_a_barrier_that_are_too_old_are_made_again() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    w.track("a", 10, later);
    w.track("due", 10, past);
    w.track("seen later", 31, later);
    w.forget(30, 100);
    assert_eq!(horizon(&mut w), w.at(10));
    for op in [look(Due(past)), look(Sight::Forever), look(Sight::Gone), removal(Sight::Gone)] {
        assert_eq!(w.one("a", 10, op), (Old, later));
    }
    assert_eq!(w.word("seen later", 10, look(Due(past))), Stale, "another was later: no need to look again");
    assert_eq!(w.word("a", 11, look(Sight::Gone)), Wait);
    assert_eq!(w.word("b", 11, look(Sight::Gone)), Gone);
    assert_eq!(w.word("a", 11, look(Due(later))), Ok);
    for op in [UNPROVEN, SettleOp::Drop] {
        assert_eq!(w.one("due", 9, op), (Old, past), "what was looked at since may be forgotten");
    }
    assert_eq!(w.word("due", 11, UNPROVEN), Unproven);
}

#[test]
fn a_horizon_ahead_of_the_time_counts_as_none() {
    let mut w = Watched::new();
    let (due, tally, now) = (w.later(), w.stage.partition.tally(), w.stage.wire.now_ms() * 1_000);
    let set = |w: &mut Watched, position: u64| {
        let text = position.to_string();
        w.stage.wire.call(&[b"HSET".as_slice(), &tally, b"horizon", text.as_bytes()]).unwrap();
    };
    set(&mut w, now + 900_000);
    assert_eq!((w.word("a", 10, EVENT), w.word("a", 10, look(Due(due)))), (Old, Old));
    assert_eq!(w.forget(5, 100).horizon, now + 900_000);
    set(&mut w, now + 10_000_000);
    assert_eq!((w.word("a", 10, EVENT), w.word("a", 11, look(Due(due)))), (Fired, Ok));
    assert_eq!(w.forget(10, 100).horizon, w.at(10), "it may move back then");
    assert_eq!(horizon(&mut w), w.at(10));
    assert_eq!(w.forget(10, 100).removed, 0);
}

#[test]
fn an_event_that_is_too_old_leaves_the_due_of_a_later_life_alone() {
    let mut w = Watched::new();
    let past = w.past();
    let (watched, tally) = (w.stage.partition.watched(), w.stage.partition.tally());
    // A relay stood still for longer than looks are kept: the key was written again, and that life is due too by now.
    let mut set = |key: &[u8], field: &str, member: &str, command: &str| {
        w.stage.wire.call(&[command.as_bytes(), key, field.as_bytes(), member.as_bytes()]).unwrap();
    };
    set(&tally, "horizon", &(past * 1_000 - 1_000_000).to_string(), "HSET");
    set(&watched, &past.to_string(), "0:a", "ZADD");
    let mut event = |position: u64| {
        let item = SettleItem { position, ..w.item(key("a"), 0, EVENT) };
        w.settle(vec![item])[0]
    };
    assert_eq!(event(past * 1_000 - 2_000_000), Old, "its life ended 2 s before that due");
    assert_eq!(event(past * 1_000 - 1_000_001 + 1), FiredOld, "names are within a second of the time");
}

#[test]
fn a_debt_is_forgotten_like_a_name() {
    let mut w = Watched::new();
    let due = w.past();
    w.track("a", 10, due);
    w.word("a", 20, UNPROVEN);
    assert_eq!(w.names(), ["?0:a"]);
    assert_eq!(w.forget(20, 100).removed, 2);
    assert!(w.names().is_empty());
    assert_eq!(w.word("a", 15, EVENT), Old, "paid or not, it fired once");
}
