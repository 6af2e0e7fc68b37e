use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use overdue_protocol::{Keyspace, QueueName};
use overdue_store::{Backoff, ErrorKind};
use overdue_telemetry::Health;
use overdue_telemetry::label::Loop;

use super::*;

/// A pass over a list of answers; the last one repeats.
#[derive(Clone)]
struct Script(Arc<(Mutex<Vec<Result<Seen>>>, AtomicU32)>);

impl Pass for Script {
    async fn sweep(&self) -> Result<Seen> {
        self.0.1.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.0.0.lock().unwrap();
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }
}

fn seen(fired: u32, next_in_ms: Option<u64>, more: bool, another: bool) -> Result<Seen> {
    Ok(Seen { fired, now_ms: 1_000_000, next_due_ms: next_in_ms.map(|ms| 1_000_000 + ms), more, another })
}

fn sweeper(answers: Vec<Result<Seen>>) -> Sweeper<Script> {
    let alarms = Arc::<Alarms>::default();
    alarms.set_verified(true);
    let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 0);
    Sweeper {
        pass: Script(Arc::new((Mutex::new(answers), AtomicU32::new(0)))),
        alarm: alarms.register(&partition, 0),
        alarms,
        partition,
        progress: Health::default().register(Loop::Sweep, "orders:0", Duration::from_secs(5)),
        throttle: Arc::default(),
        backoff: Backoff::default(),
        steps_back: false,
    }
}

async fn turns_within(sweeper: Sweeper<Script>, time: Duration) -> u32 {
    let calls = Arc::clone(&sweeper.pass.0);
    let stop = CancellationToken::new();
    let running = tokio::spawn(sweeper.run(stop.clone()));
    tokio::time::sleep(time).await;
    let count = calls.1.load(Ordering::SeqCst);
    stop.cancel();
    running.await.unwrap();
    count
}

#[tokio::test(start_paused = true)]
async fn at_rest_it_looks_once_a_second_and_blind_every_10_ms() {
    assert_eq!(
        turns_within(sweeper(vec![seen(0, None, false, false)]), Duration::from_millis(4_500)).await,
        5
    );
    let far = sweeper(vec![seen(0, Some(3_600_000), false, false)]);
    assert_eq!(turns_within(far, Duration::from_millis(4_500)).await, 5);
    let blind = sweeper(vec![seen(0, None, false, false)]);
    blind.alarms.set_verified(false);
    let turns = turns_within(blind, Duration::from_millis(1_005)).await;
    assert!((80..=101).contains(&turns), "{turns}");
}

#[tokio::test(start_paused = true)]
async fn it_sleeps_until_the_next_deadline_but_keeps_its_pace() {
    let next = sweeper(vec![seen(1, Some(300), false, false), seen(1, None, false, false)]);
    assert_eq!(turns_within(next, Duration::from_millis(305)).await, 2);
    let dense = sweeper(vec![seen(1, Some(0), false, false)]);
    let turns = turns_within(dense, Duration::from_secs(1)).await;
    assert!((300..=501).contains(&turns), "{turns}");
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_swept_without_a_pause() {
    let mut answers: Vec<_> = (0..99).map(|_| seen(256, Some(0), true, false)).collect();
    answers.push(seen(0, None, false, false));
    let turns = turns_within(sweeper(answers), Duration::from_millis(1)).await;
    assert!((100..=101).contains(&turns), "{turns}");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_deadline_ends_the_sleep_and_a_gap_ends_it_at_once() {
    let sweeper = sweeper(vec![seen(0, None, false, false)]);
    let (alarms, calls) = (Arc::clone(&sweeper.alarms), Arc::clone(&sweeper.pass.0));
    let orders = (QueueName::new("orders").unwrap(), 0);
    let stop = CancellationToken::new();
    let running = tokio::spawn(sweeper.run(stop.clone()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(calls.1.load(Ordering::SeqCst), 1);
    alarms.due(&orders, 1_000_200);
    tokio::time::sleep(Duration::from_millis(90)).await;
    assert_eq!(calls.1.load(Ordering::SeqCst), 1, "not before it is due");
    tokio::time::sleep(Duration::from_millis(15)).await;
    assert_eq!(calls.1.load(Ordering::SeqCst), 2);
    alarms.sweep_all();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(calls.1.load(Ordering::SeqCst), 3);
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_steps_back_only_while_another_fires_and_forgets_it_at_once() {
    let mut sweeper = sweeper(vec![seen(0, None, false, false)]);
    sweeper.learn(seen(0, None, false, false).unwrap());
    assert!(!sweeper.steps_back, "woken for nothing");
    sweeper.learn(seen(0, None, false, true).unwrap());
    assert!(sweeper.steps_back);
    let plan = sweeper.plan(seen(0, Some(10), false, true).unwrap(), Instant::now());
    assert!(plan.at - Instant::now() <= Duration::from_millis(12));
    sweeper.learn(seen(1, None, false, true).unwrap());
    assert!(!sweeper.steps_back);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_the_loop_survives_them() {
    let error = || Err(Error::new(ErrorKind::Unavailable, "sweep orders/0", "LOADING"));
    let failing = sweeper(vec![error()]);
    let turns = turns_within(failing, Duration::from_secs(10)).await;
    assert!((5..=20).contains(&turns), "{turns}");
    let passing = sweeper(vec![error(), error(), seen(0, None, false, false)]);
    assert!(turns_within(passing, Duration::from_secs(3)).await >= 4);
}
