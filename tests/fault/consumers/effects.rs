//! Effects are applied exactly as often as timeouts are done, whoever is killed.

use std::time::Duration;

use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use super::hands::Place;
use crate::stage::{Producer, QUEUE, ids, last, partition, settled, stop, up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_is_exact_under_kills_and_nothing_is_done_while_an_effect_cannot_be() {
    const N: u64 = 1000;
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let [a, b] = [b"a", b"b"].map(|name| partition(0).neighbour(name));
    redis.call(&[b"SET".as_slice(), &b, b"somebody else's"]);
    let places = [(); 3].map(|()| Place::new(&redis, "effects", &["concurrency=64", "retry_ms=100"]));
    producer.arm(ids("t", 1000), Duration::ZERO, false).await;
    let mut next = 0;
    let mut kill_one = async || {
        places[next % 3].kill();
        next += 1;
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    last(Duration::from_secs(3), &mut kill_one).await;
    let counts = |field: &str| {
        let count = redis.call(&[b"HGET".as_slice(), &partition(0).tally(), field.as_bytes()]).text();
        count.parse::<u64>().unwrap_or(0)
    };
    assert_eq!((redis.count(&[b"EXISTS".as_slice(), &a]), counts("done:billing")), (0, 0));
    redis.call(&[b"DEL".as_slice(), &b]);
    last(Duration::from_secs(3), &mut kill_one).await;
    eventually("all is done", async || {
        let done = counts("done:billing");
        if done == N { Ok(()) } else { Err(done) }
    })
    .await;
    settled(&redis, 1).await;
    places.iter().for_each(|place| place.with(stop));
    let number = redis.call(&[b"GET".as_slice(), &a]).text();
    assert_eq!((number, redis.count(&[b"HLEN".as_slice(), &b])), (N.to_string(), N));
    assert_eq!(redis.count(&[b"XLEN".as_slice(), &partition(0).dead()]), 0);
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}
