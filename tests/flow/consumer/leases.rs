//! Who owns a timeout, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use overdue_consumer::{Outcome, Raw, Timeout};
use overdue_tests::{Proxy, eventually};
use tokio::sync::Semaphore;

use super::stage::{GROUP, Seen, Stage, consumer_at, start};

const LEASE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_longer_than_the_lease_is_not_handed_to_another() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let consumer = || {
        let noting = seen.clone();
        start(stage.consumer().lease(Duration::from_secs(1)).concurrency(8), move |t: Timeout<Raw>| {
            noting.note(&t);
            // The work itself: three leases and a half.
            tokio::time::sleep(Duration::from_millis(3500))
        })
    };
    let (first, second) = (consumer(), consumer());
    stage.arm(0..10);
    stage.fire();
    seen.wait_for(10).await;
    stage.assert_settled().await;
    let (first, second) = (first.end().await, second.end().await);
    assert_eq!((first.done + second.done, first.lost + second.lost), (10, 0), "{first:?} {second:?}");
    seen.assert_once(10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_consumers_timeouts_are_handled_within_the_lease_and_two_seconds() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let work = start(stage.consumer().lease(LEASE).concurrency(16), |_| async { Outcome::Done });
    stage.wait_for_group().await;
    work.end().await;

    stage.arm(0..100);
    while stage.fire() > 0 {}
    stage.die_holding("dead:1:0", 100);
    let died = Instant::now();

    let noting = seen.clone();
    let work = start(stage.consumer().lease(LEASE).concurrency(16), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    seen.wait_for(100).await;
    let took = died.elapsed();
    assert!(took >= LEASE && took < LEASE + Duration::from_secs(2), "{took:?}");
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.claimed, report.done), (100, 100), "{report:?}");
    seen.assert_once(100);
    // A claim is no attempt.
    assert!(seen.all().iter().all(|delivery| delivery.attempt == 1));
}

/// Counts the handlers that were dropped before their end.
struct Watched(Arc<AtomicUsize>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_lease_drops_the_handler_and_its_outcome_changes_nothing() {
    let (stage, seen, dropped) = (Stage::new(), Seen::default(), Arc::new(AtomicUsize::new(0)));
    let (noting, dropping) = (seen.clone(), dropped.clone());
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let work = start(stage.consumer().lease(Duration::from_secs(1)), move |t: Timeout<Raw>| {
        noting.note(&t);
        let (watched, lost, tell) = (Watched(dropping.clone()), t.lost(), tell.clone());
        tokio::spawn(async move {
            lost.cancelled().await;
            let _ = tell.send(());
        });
        async move {
            let _watched = watched;
            std::future::pending::<()>().await;
        }
    });
    stage.arm(0..1);
    stage.fire();
    seen.wait_for(1).await;
    let stream = stage.partition.stream();
    let entry = stage.wire().xrange(&stream).unwrap()[0].id.to_bytes();
    stage.redis.call(&[b"XCLAIM".as_slice(), &stream, GROUP.as_bytes(), b"thief", b"0", &entry, b"JUSTID"]);
    tokio::time::timeout(overdue_tests::patience(), told.recv()).await.expect("the handler's helper is told");
    eventually("the handler is dropped", async || dropped.load(Ordering::SeqCst) == 1).await;
    let holders =
        || stage.consumers().into_iter().filter(|(_, n)| *n > 0).map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(holders(), ["thief"]);
    let report = work.end().await;
    assert_eq!((report.lost, report.released, report.done, report.retried), (1, 0, 0, 0), "{report:?}");
    assert_eq!(holders(), ["thief"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_retry_bury_or_release_of_what_another_holds_changes_nothing() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    let (noting, gated) = (seen.clone(), gate.clone());
    // So long a lease that nothing is renewed meanwhile: it learns of the loss from its own outcome.
    let consumer = stage.consumer().lease(Duration::from_secs(600)).grace(Duration::from_millis(500));
    let work = start(consumer, move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move {
            match t.id().as_bytes().as_ref() {
                b"t0" => gate.acquire().await.map(|_| Outcome::retry("late")).unwrap(),
                b"t1" => gate.acquire().await.map(|_| Outcome::reject("late")).unwrap(),
                _ => std::future::pending().await,
            }
        }
    });
    stage.arm(0..3);
    stage.fire();
    seen.wait_for(3).await;
    let stream = stage.partition.stream();
    for entry in stage.wire().xrange(&stream).unwrap() {
        let id = entry.id.to_bytes();
        stage.redis.call(&[b"XCLAIM".as_slice(), &stream, GROUP.as_bytes(), b"other", b"0", &id, b"JUSTID"]);
    }
    gate.add_permits(2);
    let report = work.end().await;
    assert_eq!((report.lost, report.retried, report.rejected, report.released), (3, 0, 0, 0), "{report:?}");
    assert_eq!(stage.consumers(), [("other".to_owned(), 3)]);
    assert_eq!(
        (stage.dead().len(), stage.redis.count(&[b"ZCARD".as_slice(), &stage.partition.retry_index()])),
        (0, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_cannot_be_renewed_ends_here_no_later_than_there() {
    let (stage, seen, dropped) = (Stage::new(), Seen::default(), Arc::new(AtomicUsize::new(0)));
    let proxy = Proxy::start(stage.redis.addr());
    let gate = Arc::new(Semaphore::new(0));
    let (noting, dropping, gated) = (seen.clone(), dropped.clone(), gate.clone());
    let work = start(consumer_at(&proxy.url()).lease(LEASE), move |t: Timeout<Raw>| {
        noting.note(&t);
        let (watched, gate) = (Watched(dropping.clone()), gated.clone());
        async move {
            let _watched = watched;
            gate.acquire().await.unwrap().forget();
        }
    });
    stage.arm(0..1);
    stage.fire();
    seen.wait_for(1).await;
    let silent = Instant::now();
    proxy.blackhole();
    eventually("the handler is dropped", async || dropped.load(Ordering::SeqCst) == 1).await;
    assert!(silent.elapsed() < LEASE + Duration::from_secs(2), "{:?}", silent.elapsed());
    gate.add_permits(100);
    proxy.heal();
    proxy.cut();
    // It was still ours on the server: found again, handled again, under the same key.
    seen.wait_for(2).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.lost, report.done), (1, 1), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_consumers_share_the_work() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let consumer = || {
        let noting = seen.clone();
        start(stage.consumer().concurrency(8), move |t: Timeout<Raw>| {
            noting.note(&t);
            tokio::time::sleep(Duration::from_millis(2))
        })
    };
    let (first, second) = (consumer(), consumer());
    let _relay = stage.relay();
    stage.arm(0..2000);
    seen.wait_for(2000).await;
    stage.assert_settled().await;
    let (first, second) = (first.end().await, second.end().await);
    assert_eq!(first.done + second.done, 2000, "{first:?} {second:?}");
    assert!(first.done > 400 && second.done > 400, "{first:?} {second:?}");
    seen.assert_once(2000);
}
