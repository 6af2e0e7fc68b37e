//! Calls of producers that meet the relays' at the deadline itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use overdue::{Change, Queue, Raw, When};
use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use crate::stage::{Producer, entries, ids, partition, stop, up};

/// Callers at once.
const CALLERS: usize = 8;
/// From one deadline of a caller to its next.
const PACE: Duration = Duration::from_millis(4);
/// How long before its deadline a timer is raced for, in turn: most of them by a millisecond.
const BEFORE_US: [u64; 8] = [1_000, 2_000, 500, 20_000, 1_500, 1_000, 0, 3_000];

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Waits until `at`, to a fraction of a millisecond: the race is what is tested.
async fn until(at: Duration) {
    let left = at.saturating_sub(now());
    tokio::time::sleep(left.saturating_sub(Duration::from_millis(2))).await;
    while now() < at {
        tokio::task::yield_now().await;
    }
}

/// Generations in the stream, each with how often it stands there.
fn fired(redis: &Redis) -> BTreeMap<u64, usize> {
    let mut fired = BTreeMap::new();
    for entry in entries(redis, &partition(0)) {
        *fired.entry(entry.generation).or_default() += 1;
    }
    fired
}

async fn nothing_is_armed(redis: &Redis) {
    eventually("all have fired", async || redis.count(&[b"ZCARD".as_slice(), &partition(0).index()]) == 0)
        .await;
}

/// Arms one timer for each id, `PACE` apart for each caller, and makes the `call` for it shortly before its deadline. Answers
/// what each call answered, with the generation that was armed before.
async fn race<T: 'static>(
    producer: &Producer,
    ids: Vec<String>,
    call: impl AsyncFn(Queue<Raw>, String) -> T + Clone + 'static,
) -> Vec<(u64, T)> {
    let payload = Raw::new("hold");
    let start = now() + Duration::from_secs(3);
    let due = move |i: usize| start + PACE * u32::try_from(i / CALLERS).unwrap();
    let at = |i: usize| When::UnixMs(u64::try_from(due(i).as_millis()).unwrap());
    let timers = ids.iter().enumerate().map(|(i, id)| producer.queue.timer(id).at(at(i)).payload(&payload));
    let armed = producer.queue.schedule_many(timers).await;
    let armed: Vec<u64> = armed.into_iter().map(|answer| answer.unwrap().generation).collect();
    assert!(now() < start, "arming took too long");

    let local = tokio::task::LocalSet::new();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (queue, call) = (producer.queue.clone(), call.clone());
            let mine: Vec<_> =
                (caller..ids.len()).step_by(CALLERS).map(|i| (i, ids[i].clone(), armed[i])).collect();
            local.spawn_local(async move {
                let mut answers = Vec::new();
                for (i, id, before) in mine {
                    until(due(i) - Duration::from_micros(BEFORE_US[i / CALLERS % BEFORE_US.len()])).await;
                    answers.push((before, call(queue.clone(), id).await));
                }
                answers
            })
        })
        .collect();
    local
        .run_until(async {
            let mut all = Vec::new();
            for caller in callers {
                all.extend(caller.await.unwrap());
            }
            all
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_5_000_timers_armed_again_at_their_deadline_fire_only_what_the_answers_say() {
    let redis = Redis::start();
    let relays = [up(Launch::relay(&redis.url())), up(Launch::relay(&redis.url()))];
    let producer = Producer::new(&redis.url()).await;
    let answers = race(&producer, ids("again", 5_000), async |queue, id| {
        queue.schedule(id, Duration::from_millis(300), &Raw::new("again")).await.unwrap()
    })
    .await;
    nothing_is_armed(&redis).await;

    let fired = fired(&redis);
    assert!(fired.values().all(|&times| times == 1), "a generation fired twice");
    let mut kinds = BTreeSet::new();
    for (before, answer) in &answers {
        assert!(fired.contains_key(&answer.generation), "the new generation did not fire: {answer:?}");
        let old_fired = match answer.change {
            Change::Replaced => false,
            // It had fired before the call, or by the call itself.
            Change::Armed => true,
            Change::FiredOld(old) => {
                assert_eq!(old, *before);
                true
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(fired.contains_key(before), old_fired, "{before}: {answer:?}");
        kinds.insert(answer.change.as_str());
    }
    assert!(kinds.len() >= 2, "the calls never met the deadline: {kinds:?}");
    assert_balanced(&redis, "orders", 1);
    relays.iter().for_each(stop);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_a_timer_cancelled_at_its_deadline_is_either_cancelled_or_fired() {
    let redis = Redis::start();
    let relays = [up(Launch::relay(&redis.url())), up(Launch::relay(&redis.url()))];
    let producer = Producer::new(&redis.url()).await;
    let answers =
        race(&producer, ids("cancel", 2_000), async |queue, id| queue.cancel(id).await.unwrap()).await;
    nothing_is_armed(&redis).await;

    let fired = fired(&redis);
    assert!(fired.values().all(|&times| times == 1), "a generation fired twice");
    for (before, answer) in &answers {
        assert_eq!(fired.contains_key(before), answer.is_none(), "{before}: {answer:?}");
        assert!(answer.as_ref().is_none_or(|armed| armed.generation == *before));
    }
    let cancelled = answers.iter().filter(|(_, answer)| answer.is_some()).count();
    assert!(
        cancelled > 0 && cancelled < answers.len(),
        "the calls never met the deadline: {cancelled} cancelled"
    );
    assert_balanced(&redis, "orders", 1);
    relays.iter().for_each(stop);
}
