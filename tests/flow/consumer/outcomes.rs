//! What a handler answers, and what comes of it.

use std::time::Duration;

use bytes::Bytes;
use overdue_consumer::{Consumer, Done, Effects, HandlerError, Outcome, Raw, Timeout};
use overdue_tests::eventually;
use serde::{Deserialize, Serialize};

use super::stage::{GROUP, QUEUE, Seen, Stage, settings_at, start};

#[derive(Serialize, Deserialize)]
struct Hold {
    seat: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_example_compiles_and_handles_each_timeout_once() {
    async fn release(hold: &Hold) -> std::io::Result<()> {
        assert_eq!(hold.seat, "4A");
        Ok(())
    }
    let stage = Stage::new();
    let payload = Bytes::from(rmp_serde_of(&Hold { seat: "4A".into() }));
    stage.arm_with(0..300, &payload);
    stage.fire();
    let consumer = Consumer::<Hold>::builder(settings_at(&stage.redis.url()), QUEUE, GROUP).concurrency(64);
    let seen = Seen::default();
    let noting = seen.clone();
    let work = start(consumer, move |t: Timeout<Hold>| {
        noting.note(&t);
        async move {
            release(t.payload()).await?;
            Ok(Done)
        }
    });
    let _relay = stage.relay();
    seen.wait_for(300).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.lost, report.unsettled), (300, 0, 0), "{report:?}");
    seen.assert_once(300);
    assert_eq!(stage.consumers(), [], "it has retired");
}

/// MessagePack as typed Rust writes it, without another dependency: a map of one text.
fn rmp_serde_of(hold: &Hold) -> Vec<u8> {
    let mut out = vec![0x81, 0xa4];
    out.extend(b"seat");
    out.push(0xa0 | u8::try_from(hold.seat.len()).unwrap());
    out.extend(hold.seat.as_bytes());
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_comes_back_with_the_next_attempt_at_its_time() {
    const WAIT: Duration = Duration::from_millis(400);
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t| {
        noting.note(&t);
        async move {
            match t.attempt() {
                1 => Outcome::retry_after(WAIT, "not yet"),
                2 => Outcome::retry("again"),
                _ => Outcome::Done,
            }
        }
    });
    let _relay = stage.relay();
    stage.arm(0..1);
    seen.wait_for(3).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.retried, report.done), (2, 1), "{report:?}");
    let all = seen.all();
    assert_eq!(all.iter().map(|delivery| delivery.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(all.iter().all(|delivery| delivery.key == all[0].key && delivery.due_ms == all[0].due_ms));
    let waited = all[1].at - all[0].at;
    // The clock of the server counts whole milliseconds.
    assert!(waited + Duration::from_millis(1) >= WAIT && waited < WAIT * 8, "{waited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_used_up_is_a_dead_letter() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer().attempts(3), move |t| {
        noting.note(&t);
        async move { Err::<Done, HandlerError>(format!("no route, attempt {}", t.attempt()).into()) }
    });
    let _relay = stage.relay();
    stage.arm(0..1);
    let dead = eventually("a dead letter", async || stage.dead().pop()).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.retried, report.exhausted, seen.len()), (2, 1, 3), "{report:?}");
    assert_eq!(dead.field("reason").unwrap(), "attempts");
    assert_eq!(dead.field("detail").unwrap(), "no route, attempt 3");
    assert_eq!(
        (dead.field("id").unwrap(), dead.field("attempt").unwrap()),
        (&Bytes::from("t0"), &Bytes::from("3"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_timeout_is_a_dead_letter_at_once_with_its_reason_cut() {
    let stage = Stage::new();
    let work = start(stage.consumer(), |_| async { Outcome::reject("no such order ".repeat(1000)) });
    let _relay = stage.relay();
    stage.arm(0..1);
    let dead = eventually("a dead letter", async || stage.dead().pop()).await;
    stage.assert_settled().await;
    assert_eq!(work.end().await.rejected, 1);
    assert_eq!(dead.field("reason").unwrap(), "rejected");
    assert_eq!(dead.field("detail").unwrap().len(), 2048);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_takes_nothing_down() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer().attempts(2), move |t| {
        noting.note(&t);
        // Before the future is there, and in it.
        assert!(t.id().as_bytes() != "t0", "no future for t0");
        async move {
            tokio::task::yield_now().await;
            assert!(t.id().as_bytes() != "t1" || t.attempt() > 1, "no first attempt for t1");
        }
    });
    let _relay = stage.relay();
    stage.arm(0..20);
    seen.wait_for(22).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.retried, report.exhausted), (19, 2, 1), "{report:?}");
    let dead = stage.dead().pop().unwrap();
    assert!(dead.field("detail").unwrap().ends_with(b"the handler panicked: no future for t0"), "{dead:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_cannot_be_decoded_is_rejected_unseen() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let consumer = Consumer::<Hold>::builder(settings_at(&stage.redis.url()), QUEUE, GROUP);
    let work = start(consumer, move |t: Timeout<Hold>| {
        noting.note(&t);
        async {}
    });
    let _relay = stage.relay();
    stage.arm_with(0..1, &Bytes::from_static(b"\xc1 is never used"));
    let dead = eventually("a dead letter", async || stage.dead().pop()).await;
    stage.assert_settled().await;
    assert_eq!((work.end().await.rejected, seen.len()), (1, 0));
    assert_eq!(dead.field("reason").unwrap(), "rejected");
    let detail = dead.field("detail").unwrap();
    assert!(detail.starts_with(b"the payload cannot be decoded as MessagePack"), "{detail:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_entry_is_a_dead_letter_not_a_loop() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    stage.wait_for_group().await;
    let stream = stage.partition.stream();
    stage.redis.call(&[b"XADD".as_slice(), &stream, b"*", b"colour", b"red"]);
    stage.redis.call(&[b"XADD".as_slice(), &stream, b"*", b"id", b"x", b"gen", b"soon", b"payload", b"p"]);
    let dead =
        eventually("two dead letters", async || Some(stage.dead()).filter(|dead| dead.len() == 2)).await;
    stage.arm(0..1);
    stage.fire();
    seen.wait_for(1).await;
    eventually("nothing is pending", async || stage.pending() == 0 && stage.stream_length() == 0).await;
    let report = work.end().await;
    assert_eq!((report.malformed, report.done), (2, 1), "{report:?}");
    assert_eq!(dead[0].field("reason").unwrap(), "malformed");
    let says = |n: usize, text: &str| dead[n].field("detail").unwrap().starts_with(text.as_bytes());
    assert!(says(0, "the entry has no id") && says(1, "the entry's gen is no number"), "{dead:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_for_another_group_is_passed_unseen() {
    let (stage, billing, audit) = (Stage::new(), Seen::default(), Seen::default());
    let (noting, also) = (billing.clone(), audit.clone());
    let first = start(stage.consumer(), move |t| {
        noting.note(&t);
        async move { if t.attempt() < 3 { Outcome::retry("again") } else { Outcome::Done } }
    });
    let other = Consumer::<Raw>::builder(settings_at(&stage.redis.url()), QUEUE, "audit");
    let second = start(other, move |t: Timeout<Raw>| {
        also.note(&t);
        async {}
    });
    eventually("both groups are there", async || {
        let groups = stage.redis.command(&[b"XINFO".as_slice(), b"GROUPS", &stage.partition.stream()]);
        groups.is_ok_and(|groups| groups.items().len() == 2)
    })
    .await;
    let _relay = stage.relay();
    stage.arm(0..50);
    billing.wait_for(150).await;
    audit.wait_for(50).await;
    // With two groups the reconciler's trim deletes what both have finished; here the books alone must agree.
    eventually("nothing is pending", async || stage.pending() == 0).await;
    let (first, second) = (first.end().await, second.end().await);
    assert_eq!((first.done, first.retried, first.passed), (50, 100, 0), "{first:?}");
    assert_eq!((second.done, second.retried), (50, 0), "{second:?}");
    audit.assert_once(50);
    overdue_tests::assert_balanced(&*stage.redis, QUEUE, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_payloads_bound_the_page() {
    let (stage, seen) = (Stage::new(), Seen::default());
    stage.arm_with(0..60, &Bytes::from(vec![b'x'; 1024 * 1024]));
    while stage.fire() > 0 {}
    // Unbounded, one call would carry 60 MiB.
    stage.redis.watch_for_slow(200);
    let noting = seen.clone();
    let work = start(stage.consumer().concurrency(64), move |t: Timeout<Raw>| {
        noting.note(&t);
        async move { if t.attempt() == 1 { Outcome::retry("again") } else { Outcome::Done } }
    });
    let _relay = stage.relay();
    seen.wait_for(120).await;
    stage.assert_settled().await;
    work.end().await;
    stage.redis.assert_nothing_slow();
    let reads = stage.redis.info("commandstats");
    let calls = reads["cmdstat_xreadgroup"].split([',', '=']).nth(1).unwrap().parse::<u64>().unwrap();
    assert!(calls >= 30, "120 MiB in {calls} reads of at most 4 MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_is_remembered_as_long_as_the_queue_says_however_it_was_done() {
    let (stage, seen) = (Stage::new(), Seen::default());
    stage.set_history(7);
    let history = stage.partition.history();
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        let with = t.id().as_bytes() == "t1";
        let effects = Effects::new().incr_by(t.key("a"), 1);
        async move { if with { Outcome::DoneWith(effects) } else { Outcome::Done } }
    });
    let _relay = stage.relay();
    stage.arm(0..5);
    eventually("all five", async || stage.redis.count(&[b"XLEN".as_slice(), &history]) == 5).await;
    let ids: Vec<_> =
        stage.wire().xrange(&history).unwrap().iter().map(|done| done.field("id").cloned()).collect();
    assert!(ids.contains(&Some("t1".into())), "{ids:?}");
    stage.arm(5..30);
    seen.wait_for(30).await;
    stage.assert_settled().await;
    assert_eq!(stage.redis.count(&[b"XLEN".as_slice(), &history]), 7);
    // It is looked at once a second whether that has changed.
    stage.set_history(0);
    eventually("no more is remembered", async || {
        stage.redis.call(&[b"DEL".as_slice(), &history]);
        let before = seen.len();
        stage.arm(before..before + 1);
        seen.wait_for(before + 1).await;
        stage.assert_settled().await;
        stage.redis.count(&[b"EXISTS".as_slice(), &history]) == 0
    })
    .await;
    work.end().await;
}
