//! Set-ups: several queues and partitions, other databases and namespaces, sockets, TLS, Sentinel, Cluster.

use std::time::Duration;

use overdue::{Client, Raw};
use overdue_protocol::{Keyspace, Namespace, QueueName};
use overdue_tests::books::{Place, assert_partition_balanced};
use overdue_tests::{Cluster, Launch, Ledger, Program, Redis, Sentinel, Tls, assert_balanced, eventually};

use crate::stage::{QUEUE, ids, stop, up};

/// Arms plain and keyed timers in a queue, lets two relays fire them and one consumer handle them.
struct Line {
    relays: [Program; 2],
    consumer: Program,
    ledger: Ledger,
}

impl Line {
    fn start(url: &str, queue: &str, more: &[&str]) -> Self {
        let relay = || up(Launch::relay(url).args(more));
        let relays = [relay(), relay()];
        let consumer = up(Launch::consume(url, queue, "billing").args(["--print", "--json"]).args(more));
        Self { relays, consumer, ledger: Ledger::new() }
    }

    async fn run(&self, client: &Client, queue: &str, n: usize) {
        let queue = client.queue::<Raw>(queue).await.unwrap();
        let payload = Raw::new("hold");
        for (i, id) in ids("t", n).iter().enumerate() {
            let timer = queue.timer(id).at(Duration::from_millis(500 + i as u64)).payload(&payload);
            let timer = if i % 2 == 0 { timer.keyed() } else { timer };
            let armed = timer.schedule().await.unwrap();
            self.ledger.armed(queue.name().as_str(), id.as_bytes(), armed.generation, armed.due_ms);
        }
        eventually("all are handled", async || {
            let handled = self.consumer.stdout().lines().count();
            if handled >= n { Ok(()) } else { Err(handled) }
        })
        .await;
    }

    /// Ends all; answers the largest lateness in ms.
    fn finish(self) -> u64 {
        stop(&self.consumer);
        self.relays.iter().for_each(stop);
        self.ledger.read_json_lines(&self.consumer.stdout());
        self.ledger.assert_met().lateness(1.0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_that_are_new_while_relays_run_are_met() {
    let redis = Redis::start();
    let line = Line::start(&redis.url(), "first", &[]);
    let client = Client::connect(redis.url()).await.unwrap();
    line.run(&client, "first", 20).await;
    for name in ["second", "third"] {
        let consumer = up(Launch::consume(&redis.url(), name, "billing").args(["--print", "--json"]));
        let queue = client.queue::<Raw>(name).await.unwrap();
        let armed = queue.schedule("a", Duration::from_millis(200), &Raw::new("x")).await.unwrap();
        line.ledger.armed(name, b"a", armed.generation, armed.due_ms);
        eventually("it is handled", async || consumer.stdout().lines().count() == 1).await;
        stop(&consumer);
        line.ledger.read_json_lines(&consumer.stdout());
        assert_balanced(&redis, name, 1);
    }
    assert!(line.finish() < 1_000);
    assert_balanced(&redis, "first", 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_for_one_queue_leaves_the_others_alone() {
    let redis = Redis::start();
    let client = Client::connect(redis.url()).await.unwrap();
    let [ours, other] = ["ours", "other"];
    for name in [ours, other] {
        client.queue::<Raw>(name).await.unwrap().schedule("a", Duration::ZERO, &Raw::new("x")).await.unwrap();
    }
    let relay = up(Launch::relay(&redis.url()).args(["--queue", ours]));
    eventually("ours has fired", async || {
        client.queue::<Raw>(ours).await.unwrap().count().await.unwrap() == 0
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(client.queue::<Raw>(other).await.unwrap().count().await.unwrap(), 1);
    stop(&relay);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_partitions_are_fired_and_read_by_all() {
    let redis = Redis::start();
    let create = ["queues", "create", QUEUE, "--partitions", "4", "--redis", &redis.url()];
    assert_eq!(Launch::new(create).run().code, Some(0));
    let line = Line::start(&redis.url(), QUEUE, &[]);
    let client = Client::connect(redis.url()).await.unwrap();
    line.run(&client, QUEUE, 200).await;
    assert!(line.finish() < 1_000);
    assert_balanced(&redis, QUEUE, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_database_and_another_namespace_have_their_own_notifications() {
    let redis = Redis::start();
    let url = format!("{}2", redis.url());
    let line = Line::start(&url, QUEUE, &["--namespace", "shop:eu"]);
    // A sweep would be quicker than any notification: it waits.
    let patient = up(Launch::relay(&url).args(["--namespace", "shop:eu", "--grace", "5s"]));
    let client = Client::builder(&url).namespace("shop:eu").connect().await.unwrap();
    line.run(&client, QUEUE, 100).await;
    assert!(line.finish() < 1_000);
    let keyspace = Keyspace::new("shop:eu".parse::<Namespace>().unwrap());
    let at = keyspace.partition(&QueueName::new(QUEUE).unwrap(), 0);
    assert_partition_balanced(&redis, 2, &at);
    // Now it is alone, and only a notification of database 2 fires before its grace is over.
    let queue = client.queue::<Raw>(QUEUE).await.unwrap();
    queue
        .timer("heard")
        .at(Duration::from_millis(200))
        .payload(&Raw::new("x"))
        .keyed()
        .schedule()
        .await
        .unwrap();
    eventually("it is heard", async || {
        patient.metrics().get("overdue_fired_total", &[("source", "notification")]) == Some(1.0)
    })
    .await;
    stop(&patient);
    assert_eq!(redis.count(&["DBSIZE"]), 0, "nothing is in database 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket() {
    let redis = Redis::start();
    let line = Line::start(&redis.unix_url(), QUEUE, &[]);
    let client = Client::connect(redis.unix_url()).await.unwrap();
    line.run(&client, QUEUE, 50).await;
    assert!(line.finish() < 1_000);
    assert_balanced(&redis, QUEUE, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_with_an_authority_of_ones_own() {
    let tls = Tls::start();
    let ca = tls.ca_file().display().to_string();
    let line = Line::start(&tls.url(), QUEUE, &["--ca-file", &ca]);
    let client = Client::builder(tls.url()).ca_file(tls.ca_file()).connect().await.unwrap();
    line.run(&client, QUEUE, 50).await;
    assert!(line.finish() < 1_000);
    assert_balanced(tls.redis(), QUEUE, 1);
    let finished = Launch::relay(&tls.url()).run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("ca_file") && finished.stderr.lines().count() == 1, "{finished:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_behind_a_sentinel() {
    let sentinel = Sentinel::start();
    let line = Line::start(&sentinel.url(), QUEUE, &[]);
    let client = Client::connect(sentinel.url()).await.unwrap();
    line.run(&client, QUEUE, 50).await;
    assert!(line.finish() < 1_000);
    assert_balanced(sentinel.primary(), QUEUE, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_primaries() {
    let cluster = Cluster::start();
    let line = Line::start(&cluster.url(), QUEUE, &[]);
    let client = Client::connect(cluster.url()).await.unwrap();
    line.run(&client, QUEUE, 100).await;
    assert!(line.finish() < 1_000);
    assert_balanced(&cluster, QUEUE, 4);
    let holders = (0..4).map(|n| {
        let at = Keyspace::default().partition(&QueueName::new(QUEUE).unwrap(), n);
        cluster.server_of(&at.tally()).port()
    });
    assert!(holders.collect::<std::collections::BTreeSet<_>>().len() > 1);
}
