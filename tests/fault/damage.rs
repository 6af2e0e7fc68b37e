//! Keys that are deleted, flushed, or hold what they must not, under a relay and a consumer that go on.

use std::time::Duration;

use overdue_protocol::Partition;
use overdue_tests::redis::Options;
use overdue_tests::{Launch, Program, Redis, assert_balanced, eventually};

use crate::stage::{
    GROUP, Producer, QUEUE, assert_not_noisy, ids, last, partition, printing, settled, stop, up,
};

struct Scene {
    redis: Redis,
    relay: Program,
    consumer: Program,
    producer: Producer,
}

impl Scene {
    async fn new() -> Self {
        Self::on(Redis::start()).await
    }

    async fn on(redis: Redis) -> Self {
        let (relay, consumer) = (up(Launch::relay(&redis.url())), up(printing(&redis.url())));
        let producer = Producer::new(&redis.url()).await;
        Self { redis, relay, consumer, producer }
    }

    fn at() -> Partition {
        partition(0)
    }

    async fn handled(&self, lines: usize) {
        eventually("they are handled", async || {
            let handled = self.consumer.stdout().lines().count();
            if handled >= lines { Ok(()) } else { Err(handled) }
        })
        .await;
    }

    /// Neither program was started again, nothing is lost or doubled, and the log can be read.
    async fn finish(self) {
        settled(&self.redis, 1).await;
        for program in [&self.relay, &self.consumer] {
            eventually("it is ready", async || {
                let report = program.readyz();
                if report.status == 200 { Ok(()) } else { Err(report.body) }
            })
            .await;
        }
        stop(&self.consumer);
        stop(&self.relay);
        self.producer.read(&[&self.consumer]);
        self.producer.ledger.assert_met();
        assert_balanced(&self.redis, QUEUE, 1);
        assert_not_noisy(&self.relay);
        assert_not_noisy(&self.consumer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_stream_is_made_again_and_armed_timers_fire_into_it() {
    let scene = Scene::new().await;
    scene.producer.arm(ids("before", 20), Duration::ZERO, false).await;
    scene.handled(20).await;
    scene.producer.arm(ids("later", 20), Duration::from_secs(2), false).await;
    last(Duration::from_millis(1_500), async || {
        scene.redis.call(&[b"DEL".as_slice(), &Scene::at().stream()]);
    })
    .await;
    eventually("the group is joined again", async || {
        scene.consumer.metrics().get("overdue_group_recreated_total", &[]) > Some(0.0)
    })
    .await;
    scene.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destroyed_group_is_joined_again_at_the_oldest_entry() {
    let scene = Scene::new().await;
    scene.producer.arm(ids("before", 20), Duration::ZERO, false).await;
    scene.handled(20).await;
    // Entries come while there is no group; none may be missed.
    for i in 0..20 {
        let destroy = [b"XGROUP".as_slice(), b"DESTROY", &Scene::at().stream(), GROUP.as_bytes()];
        let _ = scene.redis.command(&destroy);
        scene.producer.arm([format!("during-{i}")], Duration::from_millis(1), false).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    settled(&scene.redis, 1).await;
    stop(&scene.consumer);
    stop(&scene.relay);
    scene.producer.read(&[&scene.consumer]);
    let verdict = scene.producer.ledger.judge();
    // What was in hand when the group went may be handed out again: the README says so.
    assert!(verdict.lost.is_empty() && verdict.unknown.is_empty(), "{verdict}");
    assert_balanced(&scene.redis, QUEUE, 1);
    assert_not_noisy(&scene.consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushall_loses_what_it_deletes_and_nothing_that_comes_after() {
    let scene = Scene::new().await;
    scene.producer.arm(ids("before", 20), Duration::ZERO, true).await;
    scene.handled(20).await;
    scene.redis.call(&["FLUSHALL"]);
    let after = Producer::new(&scene.redis.url()).await;
    after.arm(ids("before", 20), Duration::from_millis(100), true).await;
    scene.handled(40).await;
    settled(&scene.redis, 1).await;
    stop(&scene.consumer);
    stop(&scene.relay);
    // The same ids, and no key twice.
    for lost in after.ledger.judge().lost {
        scene.producer.ledger.armed(QUEUE, &lost.id, lost.generation, 0);
    }
    scene.producer.read(&[&scene.consumer]);
    let verdict = scene.producer.ledger.assert_met();
    assert_eq!(verdict.owed, 40);
    assert_balanced(&scene.redis, QUEUE, 1);
    assert_not_noisy(&scene.relay);
    assert_not_noisy(&scene.consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushall_under_load_is_survived_and_the_queue_keeps_its_partitions() {
    let redis = Redis::start();
    let create = ["queues", "create", QUEUE, "--partitions", "4", "--redis", &redis.url()];
    assert_eq!(Launch::new(create).run().code, Some(0));
    let scene = Scene::on(redis).await;
    for i in 0..20_u64 {
        scene.producer.arm(ids(&format!("t{i}"), 10), Duration::from_millis(i * 100), false).await;
    }
    scene.handled(50).await;
    scene.redis.call(&["FLUSHALL"]);
    eventually("the queue is written back", async || {
        let shown = Launch::new(["queues", "list", "--json", "--redis", &scene.redis.url()]).run().stdout;
        if shown.contains("\"partitions\":4") { Ok(()) } else { Err(shown) }
    })
    .await;
    let before = scene.consumer.stdout().lines().count();
    scene.producer.arm(ids("after", 40), Duration::from_millis(100), false).await;
    scene.handled(before + 40).await;
    settled(&scene.redis, 4).await;
    stop(&scene.consumer);
    stop(&scene.relay);
    assert_balanced(&scene.redis, QUEUE, 4);
    assert_not_noisy(&scene.relay);
    assert_not_noisy(&scene.consumer);
}

/// Sets a string where something else belongs, lets that last, and puts the right thing back.
async fn with_wrong_type(key: &[u8]) {
    let scene = Scene::new().await;
    scene.producer.arm(ids("before", 10), Duration::ZERO, false).await;
    scene.handled(10).await;
    scene.producer.arm(ids("during", 30), Duration::from_millis(1_000), false).await;
    // In one step, so that nobody makes the key anew in between.
    let swap = "redis.call('RENAME', KEYS[1], KEYS[2]) redis.call('SET', KEYS[1], 'wrong')";
    let aside = [key, b":aside"].concat();
    let there = scene.redis.count(&[b"EXISTS".as_slice(), key]) == 1;
    if there {
        scene.redis.call(&[b"EVAL".as_slice(), swap.as_bytes(), b"2", key, &aside]);
    } else {
        scene.redis.call(&[b"SET".as_slice(), key, b"wrong"]);
    }
    last(Duration::from_millis(3_500), async || {}).await;
    if there {
        scene.redis.call(&[b"RENAME".as_slice(), &aside, key]);
    } else {
        scene.redis.call(&[b"DEL".as_slice(), key]);
    }
    scene.producer.arm(ids("after", 10), Duration::from_millis(100), false).await;
    scene.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_index_is_survived() {
    with_wrong_type(&partition(0).index()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_timers_is_survived() {
    with_wrong_type(&partition(0).timers()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_stream_is_survived() {
    with_wrong_type(&partition(0).stream()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_dead_letters_is_survived() {
    with_wrong_type(&partition(0).dead()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_retry_index_is_survived() {
    with_wrong_type(&partition(0).retry_index()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_waiting_retries_is_survived() {
    with_wrong_type(&partition(0).retry_timers()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_books_is_survived() {
    with_wrong_type(&partition(0).tally()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_list_of_queues_is_survived() {
    with_wrong_type(b"overdue:queues").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_type_at_the_list_of_members_is_survived() {
    with_wrong_type(b"overdue:members").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_are_wrong_fire_with_a_flaw_and_hold_up_no_other() {
    let scene = Scene::new().await;
    let at = Scene::at();
    scene.producer.arm(ids("good", 9), Duration::from_millis(1_500), false).await;
    let wrong: [(&str, &[u8]); 5] = [
        ("nested", b"\x92\x07\x92\x01\x02"),
        ("no-msgpack", b"\xc1\xff"),
        ("empty", b""),
        ("a-map", b"\x81\xa1a\x01"),
        ("too-few", b"\x91\x07"),
    ];
    // They are armed in order, and then somebody spoils what they are.
    Producer::new(&scene.redis.url())
        .await
        .arm(wrong.map(|(id, _)| id), Duration::from_millis(1_400), false)
        .await;
    for (id, record) in wrong {
        scene.redis.call(&[b"HSET".as_slice(), &at.timers(), id.as_bytes(), record]);
    }
    let due = (scene.redis.now_ms() + 1_000).to_string();
    scene.redis.call(&[b"ZADD".as_slice(), &at.index(), due.as_bytes(), b"no-record"]);
    scene.handled(15).await;
    settled(&scene.redis, 1).await;
    stop(&scene.consumer);
    stop(&scene.relay);
    let lines = scene.consumer.stdout();
    for id in ["nested", "no-msgpack", "empty", "a-map", "too-few", "no-record"] {
        let found = lines.lines().filter(|line| line.contains(&format!("\"id\":\"{id}\""))).count();
        assert_eq!(found, 1, "{id}: {lines}");
    }
    assert_eq!(lines.lines().count(), 15, "{lines}");
    assert_balanced(&scene.redis, QUEUE, 1);
    assert_not_noisy(&scene.relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_entry_is_a_dead_letter_and_holds_up_no_other() {
    let scene = Scene::new().await;
    let stream = Scene::at().stream();
    for _ in 0..3 {
        scene.redis.call(&[b"XADD".as_slice(), &stream, b"*", b"by", b"hand"]);
    }
    scene.producer.arm(ids("good", 10), Duration::ZERO, false).await;
    scene.handled(10).await;
    settled(&scene.redis, 1).await;
    assert_eq!(scene.redis.count(&[b"XLEN".as_slice(), &Scene::at().dead()]), 3);
    stop(&scene.consumer);
    stop(&scene.relay);
    scene.producer.read(&[&scene.consumer]);
    scene.producer.ledger.assert_met();
    assert_not_noisy(&scene.consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_maxmemory_firing_goes_on_and_schedule_says_so() {
    let redis = Redis::with(Options { maxmemory: Some("100mb".into()), ..Options::default() });
    let scene = Scene::on(redis).await;
    scene.producer.arm(ids("armed", 300), Duration::from_secs(2), true).await;
    scene.redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let payload = overdue::Raw::new("x");
    let error = scene.producer.queue.schedule("refused", Duration::ZERO, &payload).await.unwrap_err();
    assert_eq!(error.kind(), overdue::ErrorKind::OutOfMemory, "{error}");
    let schedule = ["schedule", QUEUE, "refused", "--in", "1s", "--redis", &scene.redis.url()];
    let finished = Launch::new(schedule).run();
    assert_eq!(finished.code, Some(3));
    assert!(
        finished.stderr.contains("raise maxmemory") && finished.stderr.lines().count() == 1,
        "{finished:?}"
    );
    settled(&scene.redis, 1).await;
    scene.redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    scene.producer.arm(ids("after", 10), Duration::ZERO, false).await;
    scene.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_go_on_at_maxmemory() {
    let redis = Redis::start();
    let relay = up(Launch::relay(&redis.url()));
    let producer = Producer::new(&redis.url()).await;
    let script = "[ $OVERDUE_ATTEMPT = 3 ]";
    let launch = crate::stage::running(&redis.url(), script, &[]).env("OVERDUE_CONSUME_RETRY_WAIT", "100ms");
    producer.arm(ids("t", 20), Duration::from_millis(500), false).await;
    redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let consumer = up(launch);
    settled(&redis, 1).await;
    stop(&consumer);
    stop(&relay);
    // XINFO in a MULTI is refused there.
    redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_balanced(&redis, QUEUE, 1);
    assert_not_noisy(&consumer);
}
