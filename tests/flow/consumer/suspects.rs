//! Timeouts whose holder died: each runs alone, and only its own deaths count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use overdue_consumer::{Outcome, Raw, Timeout};
use overdue_tests::eventually;
use tokio::sync::Semaphore;

use super::stage::{GROUP, Seen, Stage, start};

const LEASE: Duration = Duration::from_secs(1);

/// How many handlers run.
#[derive(Clone, Default)]
struct Running(Arc<AtomicUsize>);

impl Running {
    fn enter(&self) -> (usize, Leave) {
        (self.0.fetch_add(1, Ordering::SeqCst) + 1, Leave(self.0.clone()))
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The group is there, and the next `n` timers are pending for a dead consumer.
async fn left_behind(stage: &Stage, ids: std::ops::Range<usize>) {
    let joining = start(stage.consumer(), |_| async {});
    stage.wait_for_group().await;
    joining.end().await;
    let n = ids.len();
    stage.arm(ids);
    while stage.fire() > 0 {}
    stage.die_holding("dead:1:0", n);
}

/// Redis' delivery counters of what is pending.
fn counters(stage: &Stage) -> Vec<i64> {
    let rows = [b"XPENDING".as_slice(), &stage.partition.stream(), GROUP.as_bytes(), b"-", b"+", b"100"];
    stage.redis.call(&rows).items().iter().map(|row| row.items()[3].int().unwrap()).collect()
}

/// Sets the delivery counter of the first pending entry, as so many claims for a lone run leave it behind.
fn set_counter(stage: &Stage, count: &str) {
    let (stream, group) = (stage.partition.stream(), GROUP.as_bytes());
    let entry = stage.wire().xrange(&stream).unwrap()[0].id.to_bytes();
    let claim = [
        b"XCLAIM".as_slice(),
        &stream,
        group,
        b"dead:1:0",
        b"0",
        &entry,
        b"RETRYCOUNT",
        count.as_bytes(),
        b"JUSTID",
    ];
    stage.redis.call(&claim);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_suspect_runs_alone_while_others_wait_their_turn() {
    let (stage, running, seen) = (Stage::new(), Running::default(), Seen::default());
    left_behind(&stage, 0..30).await;
    let (entering, noting, beside) = (running.clone(), seen.clone(), Arc::new(AtomicUsize::new(0)));
    let most = beside.clone();
    let work = start(stage.consumer().lease(LEASE).concurrency(16), move |t: Timeout<Raw>| {
        noting.note(&t);
        let suspect = t.id().as_bytes().len() < 4;
        let (entering, most) = (entering.clone(), most.clone());
        async move {
            let (_, _leave) = entering.enter();
            for _ in 0..4 {
                if suspect {
                    most.fetch_max(entering.now(), Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let _relay = stage.relay();
    // They go on coming all the time.
    for page in 0..30 {
        stage.arm(1000 + page * 100..1100 + page * 100);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    seen.wait_for(3030).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.claimed, report.deaths), (3030, 30, 0), "{report:?}");
    assert_eq!(beside.load(Ordering::SeqCst), 1, "handlers while a suspect ran");
    seen.assert_once(3030);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_three_holders_died_of_alone_is_a_dead_letter_and_is_not_tried_again() {
    let (stage, seen) = (Stage::new(), Seen::default());
    left_behind(&stage, 0..2).await;
    set_counter(&stage, "4");
    let noting = seen.clone();
    let work = start(stage.consumer().lease(LEASE), move |t: Timeout<Raw>| {
        noting.note(&t);
        async {}
    });
    eventually("one is dead, one is done", async || (stage.dead().len(), seen.len()) == (1, 1)).await;
    stage.assert_settled().await;
    let (report, dead) = (work.end().await, stage.dead());
    assert_eq!((report.deaths, report.done, report.claimed), (1, 1, 2), "{report:?}");
    let field = |name| String::from_utf8_lossy(dead[0].field(name).unwrap()).into_owned();
    assert_eq!((field("reason"), field("id")), ("deaths".to_owned(), "t0".to_owned()));
    assert_eq!(field("detail"), "3 holders died while it ran alone; the last was dead:1:0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspect_that_comes_back_alive_is_none_any_more() {
    let (stage, seen) = (Stage::new(), Seen::default());
    left_behind(&stage, 0..1).await;
    set_counter(&stage, "3");
    let noting = seen.clone();
    let work = start(stage.consumer().lease(LEASE), move |t: Timeout<Raw>| {
        noting.note(&t);
        let again = t.attempt() < 4;
        async move { if again { Outcome::retry("not yet") } else { Outcome::Done } }
    });
    let _relay = stage.relay();
    seen.wait_for(4).await;
    stage.assert_settled().await;
    let report = work.end().await;
    assert_eq!((report.done, report.retried, report.deaths, report.claimed), (1, 3, 0, 1), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neighbours_that_run_for_long_hold_no_suspect_up_for_ever_and_it_is_not_counted() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    left_behind(&stage, 0..1).await;
    let (noting, gated) = (seen.clone(), gate.clone());
    // Both run until the end of the test.
    let work = start(stage.consumer().lease(LEASE).concurrency(4), move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move { gate.acquire().await.unwrap().forget() }
    });
    stage.arm(1..2);
    stage.fire();
    seen.wait_for(1).await;
    // Its lease has not run out yet, so the neighbour was first.
    assert!(seen.all()[0].key.contains("/t1/"), "{:?}", seen.all());
    seen.wait_for(2).await;
    assert_eq!(counters(&stage), [1, 1]);
    // Others are not kept out for good either.
    stage.arm(2..4);
    stage.fire();
    seen.wait_for(4).await;
    gate.add_permits(4);
    stage.assert_settled().await;
    assert_eq!(work.end().await.done, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspect_that_runs_for_long_keeps_nobody_out_and_its_count_is_taken_back() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    left_behind(&stage, 0..1).await;
    let (noting, gated) = (seen.clone(), gate.clone());
    let work = start(stage.consumer().lease(LEASE).concurrency(2), move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move { gate.acquire().await.unwrap().forget() }
    });
    seen.wait_for(1).await;
    assert_eq!(counters(&stage), [2]);
    stage.arm(1..3);
    stage.fire();
    seen.wait_for(2).await;
    assert_eq!(counters(&stage)[..2], [1, 1]);
    assert_eq!(seen.len(), 2, "with it two run: no more");
    gate.add_permits(3);
    stage.assert_settled().await;
    assert_eq!(work.end().await.done, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_while_a_suspect_runs_alone_lets_it_finish_within_the_grace() {
    let (stage, seen, gate) = (Stage::new(), Seen::default(), Arc::new(Semaphore::new(0)));
    left_behind(&stage, 0..3).await;
    let (noting, gated) = (seen.clone(), gate.clone());
    let work = start(stage.consumer().lease(Duration::from_secs(3)), move |t: Timeout<Raw>| {
        noting.note(&t);
        let gate = gated.clone();
        async move { gate.acquire().await.unwrap().forget() }
    });
    seen.wait_for(1).await;
    let ending = tokio::spawn(work.end());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!ending.is_finished(), "it waits for its handler");
    gate.add_permits(1);
    let report = ending.await.unwrap();
    assert_eq!((report.done, report.released, report.unsettled), (1, 0, 0), "{report:?}");
    assert_eq!((seen.len(), stage.pending()), (1, 2));
}
