//! Writes that are done with the acknowledgement.

use std::sync::Arc;

use overdue_consumer::{Effects, Outcome, Raw, Timeout};
use overdue_tests::{Mode, Proxy, eventually};
use tokio::sync::Semaphore;

use super::stage::{Seen, Stage, consumer_at, start};

/// What most of these tests write: one more in `a`, and the id in the hash `b`.
fn both(t: &Timeout<Raw>) -> Effects {
    Effects::new().incr_by(t.key("a"), 1).hset(t.key("b"), t.id().as_bytes(), "done")
}

/// The number in `a`, and how many fields `b` has.
fn written(stage: &Stage) -> (u64, u64) {
    let [a, b] = [b"a", b"b"].map(|name| stage.partition.neighbour(name));
    let number = stage.redis.call(&[b"GET".as_slice(), &a]).text().parse().unwrap_or(0);
    (number, stage.redis.count(&[b"HLEN".as_slice(), &b]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_are_applied_with_the_acknowledgement_each_once() {
    let stage = Stage::new();
    let work = start(stage.consumer(), |t: Timeout<Raw>| async move { both(&t) });
    let _relay = stage.relay();
    stage.arm(0..1500);
    eventually("all are applied", async || {
        let written = written(&stage);
        if written == (1500, 1500) { Ok(()) } else { Err(written) }
    })
    .await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.retried, report.lost), (1500, 0, 0), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_applied_writes_nothing_and_is_tried_again() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let [a, b] = [b"a", b"b"].map(|name| stage.partition.neighbour(name));
    stage.redis.call(&[b"SET".as_slice(), &b, b"somebody else's"]);
    let noting = seen.clone();
    let work = start(stage.consumer().attempts(u32::MAX), move |t: Timeout<Raw>| {
        noting.note(&t);
        async move { both(&t) }
    });
    let _relay = stage.relay();
    stage.arm(0..20);
    seen.wait_for(100).await;
    assert_eq!(stage.redis.count(&[b"EXISTS".as_slice(), &a]), 0);
    stage.redis.call(&[b"DEL".as_slice(), &b]);
    eventually("all are applied", async || {
        let written = written(&stage);
        if written == (20, 20) { Ok(()) } else { Err(written) }
    })
    .await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert!(report.done == 20 && report.retried >= 80, "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_attempt_whose_effects_are_refused_is_a_dead_letter_that_says_which() {
    let stage = Stage::new();
    let b = stage.partition.neighbour(b"b");
    stage.redis.call(&[b"SET".as_slice(), &b, b"somebody else's"]);
    let work = start(stage.consumer().attempts(2), |t: Timeout<Raw>| async move { both(&t) });
    let _relay = stage.relay();
    stage.arm(0..1);
    eventually("it is a dead letter", async || stage.dead().len() == 1).await;
    let report = work.end().await;
    assert_eq!((report.retried, report.exhausted, report.done), (1, 1, 0), "{report:?}");
    let dead = &stage.dead()[0];
    let detail = String::from_utf8_lossy(dead.field("detail").unwrap()).into_owned();
    assert_eq!(dead.field("reason").unwrap(), "attempts");
    assert!(detail.contains("effect 2") && detail.contains("string"), "{detail}");
    assert_eq!(stage.redis.count(&[b"EXISTS".as_slice(), &stage.partition.neighbour(b"a")]), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_another_slot_is_never_sent_and_its_error_says_what_to_do() {
    let stage = Stage::new();
    let work = start(stage.consumer().attempts(1), |t: Timeout<Raw>| async move {
        Outcome::DoneWith(Effects::new().incr_by(t.key("a"), 1).sadd("seats", "4A"))
    });
    let _relay = stage.relay();
    stage.arm(0..1);
    eventually("it is a dead letter", async || stage.dead().len() == 1).await;
    let detail = String::from_utf8_lossy(stage.dead()[0].field("detail").unwrap()).into_owned();
    assert!(detail.contains("effect 2 (SADD)") && detail.contains("timeout.key("), "{detail}");
    assert_eq!((written(&stage), work.end().await.exhausted), ((0, 0), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_whose_answer_was_lost_are_not_applied_again() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    let proxy = Proxy::start(stage.redis.addr());
    let (noting, gated) = (seen.clone(), gate.clone());
    let consumer = consumer_at(&proxy.url()).lease(std::time::Duration::from_secs(30));
    let work = start(consumer, move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            both(&t)
        }
    });
    // The first one loads the script.
    gate.add_permits(1);
    stage.arm(50..51);
    stage.fire();
    eventually("the script is there", async || written(&stage) == (1, 1)).await;
    stage.arm(0..50);
    stage.fire();
    seen.wait_for(51).await;
    // What is sent now is done, and its answer does not come back.
    proxy.down(Mode::Cut);
    gate.add_permits(50);
    eventually("Redis has done some of it", async || stage.pending() < 50).await;
    proxy.heal();
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.lost, written(&stage)), (51, 0, (51, 51)), "{report:?}");
    seen.assert_once(51);
}
