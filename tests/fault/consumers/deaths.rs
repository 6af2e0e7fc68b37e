//! A timeout that kills its process, among many that do no harm.

use std::time::Duration;

use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use super::hands::Place;
use crate::stage::{Producer, QUEUE, ids, partition, settled, stop, up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_that_aborts_is_dead_after_three_lone_deaths_and_no_neighbour_with_it() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let noting = format!("notes={}", notes.display());
    let places = [(); 2].map(|()| Place::new(&redis, "abort:poison", &["concurrency=64", &noting]));
    let mut all = ids("harmless", 500);
    all.insert(100, "poison".to_owned());
    producer.arm(&all, Duration::ZERO, false).await;
    let mut deaths = 0;
    eventually("all is settled", async || {
        deaths += places.iter().filter(|place| place.tend()).count();
        let (dead, left) = (
            redis.count(&[b"XLEN".as_slice(), &partition(0).dead()]),
            crate::stage::left(&redis, &partition(0)),
        );
        if dead == 1 && left == [0; 3] { Ok(()) } else { Err((dead, left, deaths)) }
    })
    .await;
    settled(&redis, 1).await;
    places.iter().for_each(|place| place.with(stop));

    let dead = overdue_tests::Wire::connect(&redis).xrange(partition(0).dead()).unwrap();
    let field = |name| String::from_utf8_lossy(dead[0].field(name).unwrap()).into_owned();
    assert_eq!((dead.len(), field("id"), field("reason")), (1, "poison".to_owned(), "deaths".to_owned()));
    assert!(
        field("detail").starts_with("3 holders died while it ran alone; the last was "),
        "{}",
        field("detail")
    );
    let notes = std::fs::read_to_string(&notes).unwrap();
    let runs = |id: &str| notes.lines().filter(|line| *line == id).count();
    // Once among the others, then three times alone.
    assert_eq!((runs("poison"), deaths), (4, 4));
    for id in ids("harmless", 500) {
        assert!((1..=3).contains(&runs(&id)), "{id} ran {} times", runs(&id));
    }
    assert_balanced(&redis, QUEUE, 1);
    stop(&relay);
}
