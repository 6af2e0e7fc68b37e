//! What a handler works with is down: no attempt is spent, and the others go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use overdue_consumer::{Outcome, Raw, Timeout};
use overdue_protocol::member::Member;
use overdue_tests::eventually;

use super::stage::{Seen, Stage, start};

/// An endpoint that refuses until it is told to answer.
#[derive(Clone, Default)]
struct Endpoint {
    up: Arc<AtomicBool>,
    tries: Arc<AtomicUsize>,
}

impl Endpoint {
    fn call(&self) -> Outcome {
        self.tries.fetch_add(1, Ordering::SeqCst);
        if self.up.load(Ordering::SeqCst) {
            Outcome::Done
        } else {
            Outcome::unreachable("connection refused")
        }
    }

    fn tries(&self) -> usize {
        self.tries.load(Ordering::SeqCst)
    }
}

/// What the members say keeps them from their work.
fn trouble(stage: &Stage) -> Vec<String> {
    let members = stage.wire().hgetall("overdue:members").unwrap();
    let troubles = members.values().map(|raw| Member::decode(raw).unwrap().trouble);
    troubles.filter(|trouble| !trouble.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_spends_no_attempt_tries_little_and_ends_by_itself() {
    let (stage, endpoint) = (Stage::new(), Endpoint::default());
    let (called, down) = (endpoint.clone(), endpoint.clone());
    let attempts = Arc::new(AtomicUsize::new(0));
    let highest = attempts.clone();
    let work = start(stage.consumer().concurrency(16).attempts(1), move |t: Timeout<Raw>| {
        highest.fetch_max(t.attempt() as usize, Ordering::SeqCst);
        let called = called.clone();
        async move { called.call() }
    });
    stage.arm(0..500);
    let _relay = stage.relay();
    eventually("the members say so", async || {
        let trouble = trouble(&stage);
        if trouble.iter().any(|text| text.contains("connection refused")) { Ok(()) } else { Err(trouble) }
    })
    .await;
    let tries = down.tries();
    // 16 at once, a page that was read meanwhile, and a probe after 1, 2 and 4 s.
    assert!((1..=24).contains(&tries), "{tries} tries");
    eventually("nothing is held through the outage", async || stage.pending() == 0).await;
    assert_eq!(stage.dead().len(), 0);
    endpoint.up.store(true, Ordering::SeqCst);
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.retried, report.exhausted), (500, 0, 0), "{report:?}");
    assert_eq!((attempts.load(Ordering::SeqCst), trouble(&stage)), (1, vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_that_is_down_holds_up_no_other() {
    let (stage, endpoint, seen) = (Stage::new(), Endpoint::default(), Seen::default());
    let (called, noting) = (endpoint.clone(), seen.clone());
    let consumer = stage.consumer().concurrency(4).attempts(1).on("t1*", move |_| {
        let called = called.clone();
        async move { called.call() }
    });
    let work = start(consumer, move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    let _relay = stage.relay();
    stage.arm(100..200);
    eventually("it is down", async || endpoint.tries() > 0).await;
    stage.arm(200..1000);
    seen.wait_for(800).await;
    assert!(endpoint.tries() < 20, "{} tries", endpoint.tries());
    endpoint.up.store(true, Ordering::SeqCst);
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.exhausted), (900, 0), "{report:?}");
    seen.assert_once(800);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_alone_cannot_be_delivered_holds_nobody_up_for_good() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer().concurrency(8), move |t: Timeout<Raw>| {
        let never = t.id().as_bytes() == "t0";
        if !never {
            noting.note(&t);
        }
        async move { if never { Outcome::unreachable("503 for this one") } else { Outcome::Done } }
    });
    let _relay = stage.relay();
    stage.arm(0..1);
    for page in 0..40 {
        stage.arm(1 + page * 10..11 + page * 10);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    seen.wait_for(400).await;
    let last = seen.all().iter().map(|delivery| delivery.late_ms).max();
    assert!(last < Some(10_000), "{last:?} ms late");
    seen.assert_once(400);
    assert_eq!(stage.dead().len(), 0);
    work.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_halt_nothing_more_begins_until_somebody_starts_it_again() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let consumer = stage.consumer().concurrency(1).attempts(1).probe(Duration::from_secs(2));
    let work = start(consumer, move |t: Timeout<Raw>| {
        noting.note(&t);
        async { Outcome::halt("410 Gone") }
    });
    let relay = stage.relay();
    stage.arm(0..50);
    seen.wait_for(1).await;
    eventually("the members say so", async || {
        let trouble = trouble(&stage);
        if trouble.iter().any(|text| text.contains("has been halted") && text.contains("410 Gone")) {
            Ok(())
        } else {
            Err(trouble)
        }
    })
    .await;
    // The first one, and no other although seconds have passed.
    assert_eq!((seen.len(), stage.dead().len(), stage.pending()), (1, 0, 0));
    let report = work.end().await;
    assert!(report.unreachable >= 1 && report.done == 0, "{report:?}");

    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    seen.wait_for(50).await;
    // What was handed back comes when the next probe would have.
    stage.assert_settled().await;
    drop(relay);
    assert_eq!(work.end().await.done, 50);
    assert!(seen.all().iter().all(|delivery| delivery.attempt == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_postponed_comes_back_with_the_same_attempt() {
    const WAIT: Duration = Duration::from_millis(400);
    let (stage, seen) = (Stage::new(), Seen::default());
    let noting = seen.clone();
    let work = start(stage.consumer().attempts(1), move |t: Timeout<Raw>| {
        noting.note(&t);
        let first = noting.len() == 1;
        async move { if first { Outcome::postpone(WAIT, "429") } else { Outcome::Done } }
    });
    let _relay = stage.relay();
    stage.arm(0..1);
    seen.wait_for(2).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.postponed, report.done, report.retried), (1, 1, 0), "{report:?}");
    let all = seen.all();
    assert_eq!((all[0].attempt, all[1].attempt), (1, 1));
    // The clock of the server counts whole milliseconds.
    assert!(all[1].at - all[0].at + Duration::from_millis(1) >= WAIT);
}
