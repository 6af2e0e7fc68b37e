//! A server that forgets its scripts, or starts again, under relays and consumers that go on by themselves.

use std::time::Duration;

use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use crate::stage::{Producer, assert_not_noisy, ids, last, printing, settled, stop, up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn script_flush_at_any_time_loses_nothing() {
    let redis = Redis::start();
    let (relay, consumer) = (up(Launch::relay(&redis.url())), up(printing(&redis.url())));
    let producer = Producer::new(&redis.url()).await;
    let mut n = 0;
    last(Duration::from_secs(3), async || {
        redis.call(&["SCRIPT", "FLUSH"]);
        producer.arm(ids(&format!("t{n}"), 5), Duration::from_millis(30), n % 2 == 0).await;
        n += 1;
    })
    .await;
    settled(&redis, 1).await;
    stop(&consumer);
    stop(&relay);
    producer.read(&[&consumer]);
    let verdict = producer.ledger.assert_met();
    assert!(verdict.lateness(1.0) < 1_000, "{verdict}");
    assert_balanced(&redis, "orders", 1);
    assert_eq!((relay.stderr().contains("WARN"), consumer.stderr().contains("WARN")), (false, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_is_found_again_and_nothing_is_lost() {
    let redis = Redis::with_aof();
    let relays = [up(Launch::relay(&redis.url())), up(Launch::relay(&redis.url()))];
    let consumers = [up(printing(&redis.url())), up(printing(&redis.url()))];
    let producer = Producer::new(&redis.url()).await;
    for i in 0..60_u64 {
        producer.arm(ids(&format!("t{i}"), 10), Duration::from_millis(i * 100), i % 3 == 0).await;
    }
    redis.restart().unwrap();
    eventually("a relay is ready again", async || relays[0].readyz().status == 200).await;
    redis.kill9();
    tokio::time::sleep(Duration::from_secs(1)).await;
    redis.restart().unwrap();
    settled(&redis, 1).await;
    for program in relays.iter().chain(&consumers) {
        eventually("it is ready again", async || program.readyz().status == 200).await;
        assert_not_noisy(program);
        stop(program);
    }
    producer.read(&[&consumers[0], &consumers[1]]);
    // The acknowledgement of what was in hand at the restart may have been lost with the connection.
    let verdict = producer.ledger.judge();
    let lost = verdict.lost.len() + verdict.early.len() + verdict.unknown.len();
    assert_eq!(lost, 0, "{verdict}");
    assert!(verdict.twice.len() <= 32, "{verdict}");
    assert_balanced(&redis, "orders", 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_goes_on_trying_while_redis_is_away() {
    let redis = Redis::with_aof();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    producer.arm(ids("t", 20), Duration::from_secs(1), false).await;
    redis.kill9();
    eventually("it is not ready", async || relay.readyz().status == 503).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((relay.exited(), relay.livez().status), (None, 200));
    redis.restart().unwrap();
    eventually("it is ready again", async || relay.readyz().status == 200).await;
    eventually("all have fired", async || producer.queue.count().await.is_ok_and(|n| n == 0)).await;
    assert_not_noisy(&relay);
    assert_balanced(&redis, "orders", 1);
    stop(&relay);
}
