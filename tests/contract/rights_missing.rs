//! A user who may not do all that a script does (ACL): nothing is lost, and what is only a courtesy is a side error.

use overdue_protocol::Call;
use overdue_protocol::call::{BuryItem, Retry, RetryItem, Scheduled, Sight};
use overdue_sandbox::Options;
use overdue_tests::Stage;
use overdue_tests::stage::{past, timer};

use crate::watched::{EVENT, Watched, key, look};

fn stage() -> Stage {
    let user = |name: &str, less: &str| format!("{name} on nopass ~* &* +@all {less}");
    let users = vec![
        user("no-xadd", "-xadd"),
        user("no-zadd", "-zadd"),
        user("no-hset", "-hset"),
        user("no-publish", "-publish"),
        user("no-hincrby", "-hincrby"),
        "no-channel on nopass ~* resetchannels &elsewhere +@all".to_owned(),
    ];
    Stage::with(Options { users, ..Options::default() })
}

/// Servers word it differently.
fn assert_refused(error: &str) {
    let words = ["can't run", "can't publish", "can't access", "ermission"];
    assert!(words.iter().any(|word| error.contains(word)), "{error}");
}

#[test]
fn without_xadd_everything_stays_where_it_was() {
    let mut stage = stage();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["pending"]);
    stage.arm(vec![past("a"), past("b")]);
    let mut wire = stage.wire_of("no-xadd");
    let before = stage.snapshot();
    let by = stage.by("billing", "c");
    let items = vec![BuryItem { entry: entries[0], reason: "rejected", detail: "".into() }];
    let refused = [
        wire.eval(&stage.to_sweep()),
        wire.eval(&stage.to_arm(vec![timer("new"), timer("a")])),
        wire.eval(&overdue_protocol::call::Bury { by: by.clone(), items }),
    ];
    for answer in refused {
        assert_refused(&answer.unwrap_err());
    }
    assert_eq!(stage.snapshot(), before);
    stage.release(by, &entries);
    let before = stage.snapshot();
    let call = overdue_protocol::call::SweepRetries { partition: stage.partition.clone(), limit: 9 };
    assert_refused(&wire.eval(&call).unwrap_err());
    assert_eq!(stage.snapshot(), before);
    while stage.sweep().more {}
    stage.sweep_retries();
    assert_eq!(stage.entries().len(), 3);
    stage.assert_balanced();
}

#[test]
fn without_zadd_or_hset_no_timer_is_armed_and_no_entry_leaves_the_stream() {
    let mut stage = stage();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["pending"]);
    let by = stage.by("billing", "c");
    for user in ["no-zadd", "no-hset"] {
        let mut wire = stage.wire_of(user);
        assert!(wire.eval(&stage.to_arm(vec![timer("new")])).is_err());
        let items = vec![RetryItem { entry: entries[0], delay_ms: 0 }];
        assert!(wire.eval(&Retry { by: by.clone(), items }).is_err());
        assert!(stage.index().is_empty() && stage.retries().is_empty());
        assert_eq!(stage.entries().len(), 1);
        stage.assert_balanced();
    }
    assert_eq!(stage.retry(by, &entries, 0), [overdue_protocol::call::Words::Ok]);
    stage.assert_balanced();
}

#[test]
fn a_wake_that_may_not_be_published_is_a_side_error_and_the_timer_is_armed() {
    let mut stage = stage();
    for (n, user) in ["no-publish", "no-channel"].into_iter().enumerate() {
        let mut wire = stage.wire_of(user);
        let call = stage.to_arm(vec![past(user)]);
        let reply = wire.eval(&call).unwrap();
        assert_refused(&call.side_error(&reply).unwrap());
        assert!(matches!(call.answer(reply).unwrap(), Scheduled::Items(items) if items.len() == 1));
        assert_eq!(stage.sweep().fired, 1);
        assert_eq!(stage.tally("scheduled"), n as i64 + 1);
    }
    let call = stage.to_arm(vec![past("allowed")]);
    let reply = stage.wire.eval(&call).unwrap();
    assert_eq!(call.side_error(&reply), None);
    stage.assert_balanced();
}

#[test]
fn books_that_may_not_be_written_are_a_side_error_and_firing_goes_on() {
    let mut stage = stage();
    let mut wire = stage.wire_of("no-hincrby");
    let call = stage.to_arm(vec![past("a")]);
    let reply = wire.eval(&call).unwrap();
    assert_refused(&call.side_error(&reply).unwrap());
    let sweep = stage.to_sweep();
    let reply = wire.eval(&sweep).unwrap();
    assert_refused(&sweep.side_error(&reply).unwrap());
    assert_eq!(sweep.answer(reply).unwrap().fired, 1);
    assert_eq!((stage.entries().len(), stage.index().len()), (1, 0));
}

#[test]
fn a_watched_key_fires_whole_or_not_at_all_and_its_books_are_a_courtesy() {
    let mut w = Watched::on(stage());
    let due = w.past();
    w.track("a", 10, due);
    let event = w.call(vec![w.item(key("a"), 20, EVENT)]);
    let before = w.stage.snapshot();
    assert_refused(&w.stage.wire_of("no-xadd").eval(&event).unwrap_err());
    assert_eq!(w.stage.snapshot(), before);
    let reply = w.stage.wire_of("no-hincrby").eval(&event).unwrap();
    assert_refused(&event.side_error(&reply).unwrap());
    assert_eq!(event.answer(reply).unwrap().fired, 1);
    let soon = w.stage.wire.now_ms() + 900;
    let look = w.call(vec![w.item(key("near"), 30, look(Sight::Due(soon)))]);
    let reply = w.stage.wire_of("no-publish").eval(&look).unwrap();
    assert_refused(&look.side_error(&reply).unwrap());
    assert_eq!(w.watched().len(), 1);
}
