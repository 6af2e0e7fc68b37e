//! A group that is added to a queue at work.

use std::time::Duration;

use overdue_protocol::call::From;
use overdue_reconciler::GroupRule;
use overdue_tests::{Launch, Program, Stage, assert_balanced, eventually, eventually_blocking};

use super::stage::{QUEUE, emptied, reconcile, rule, take};

fn names(n: std::ops::Range<usize>) -> Vec<String> {
    n.map(|i| format!("t{i:03}")).collect()
}

fn deliver(stage: &mut Stage, n: std::ops::Range<usize>) -> Vec<String> {
    let names = names(n);
    stage.deliver_none(&names.iter().map(String::as_str).collect::<Vec<_>>());
    names
}

/// Takes all there is and acknowledges it; the ids, in order.
fn handle(stage: &mut Stage, group: &str) -> Vec<String> {
    let taken = take(stage, group, "c");
    stage.xack(group, &taken.iter().map(|(_, entry, _)| *entry).collect::<Vec<_>>());
    let mut ids: Vec<_> = taken.into_iter().map(|(id, _, _)| id).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_group_declared_later_gets_what_is_in_the_stream_or_only_what_is_new() {
    let mut stage = Stage::new();
    let first = GroupRule { lease: Duration::from_secs(3600), ..rule("first") };
    let working = reconcile(&stage.redis, vec![first]).await;
    deliver(&mut stage, 0..60);
    let mut done = take(&mut stage, "first", "c");
    done.truncate(20);
    stage.xack("first", &done.iter().map(|(_, entry, _)| *entry).collect::<Vec<_>>());
    eventually("what is done is deleted", async || stage.entries().len() == 40).await;
    working.end().await;

    let new = GroupRule { from: From::New, ..rule("new") };
    // `first` is declared no more, and stays a plain group.
    let working = reconcile(&stage.redis, vec![rule("oldest"), new]).await;
    let left: Vec<_> = names(0..60).split_off(20);
    assert_eq!(handle(&mut stage, "oldest"), left, "what is in the stream");
    assert_eq!(handle(&mut stage, "new"), [""; 0], "nothing");
    stage.assert_balanced();
    let later = deliver(&mut stage, 60..90);
    assert_eq!(handle(&mut stage, "new"), later);
    assert_eq!(handle(&mut stage, "oldest"), later);
    stage.assert_balanced();
    let held: Vec<_> = stage.entries().iter().map(|entry| entry.id).collect();
    take(&mut stage, "first", "c");
    stage.xack("first", &held);
    emptied(&mut stage).await;
    assert_balanced(&stage.redis, QUEUE, 1);
    assert_eq!((stage.tally("done:first"), stage.tally("done:oldest")), (90, 70));
    working.end().await;
}

#[tokio::test]
async fn a_plain_group_that_was_destroyed_is_back_with_all_that_is_in_the_stream() {
    let mut stage = Stage::new();
    let new = GroupRule { from: From::New, ..rule("mail") };
    let working = reconcile(&stage.redis, vec![new, rule("keeps")]).await;
    let all = deliver(&mut stage, 0..10);
    let stream = stage.partition.stream();
    stage.redis.call(&[b"XGROUP".as_slice(), b"DESTROY", &stream, b"mail"]);
    eventually("it is back", async || {
        let groups = stage.redis.call(&[b"XINFO".as_slice(), b"GROUPS", &stream]);
        groups.items().len() == 2
    })
    .await;
    assert_eq!(handle(&mut stage, "mail"), all, "whatever `from` says: timeouts must not be missed");
    assert_eq!(handle(&mut stage, "keeps"), all);
    emptied(&mut stage).await;
    stage.assert_balanced();
    assert!(working.health.ready().ok);
    working.end().await;
}

#[test]
fn consumers_of_ours_begin_a_later_group_where_they_are_told() {
    let mut stage = Stage::new();
    stage.join("first");
    assert_eq!(Launch::new(["--redis", &stage.redis.url(), "queues", "create", QUEUE]).run().code, Some(0));
    let before = deliver(&mut stage, 0..10);
    let url = stage.redis.url();
    let consume = |group: &str, more: &[&str]| {
        let program = Launch::consume(&url, QUEUE, group).args(more).args(["--print", "--json"]).start();
        program.addr();
        program
    };
    let (oldest, new) = (consume("oldest", &[]), consume("new", &["--from", "new"]));
    let handled = |program: &Program, wanted: &[String]| {
        eventually_blocking("it has handled them", || {
            let out = program.stdout();
            let id = |line: &str| Some(line.split("\"id\":\"").nth(1)?.split('"').next()?.to_owned());
            let mut ids: Vec<_> = out.lines().filter_map(id).collect();
            ids.sort();
            if ids == wanted { Ok(()) } else { Err(ids) }
        });
    };
    handled(&oldest, &before);
    let later = deliver(&mut stage, 10..15);
    handled(&new, &later);
    handled(&oldest, &names(0..15));
    for program in [oldest, new] {
        program.sigterm();
        assert!(program.wait_exit(overdue_tests::patience()).success());
    }
    stage.assert_balanced();
}
