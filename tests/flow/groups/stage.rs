//! One partition with hands for all that consumers do, and a reconciler in this process.

use std::time::Duration;

use overdue_protocol::Keyspace;
use overdue_protocol::QueueName;
use overdue_protocol::call::From;
use overdue_protocol::entry::EntryId;
use overdue_reconciler::{GroupRule, Reconciler, Settings};
use overdue_store::Store;
use overdue_telemetry::Health;
use overdue_tests::stage::group;
use overdue_tests::{Redis, Stage, Wire, eventually};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(super) const QUEUE: &str = "orders";

/// A reconciler at work.
pub(super) struct Working {
    pub(super) health: Health,
    stop: CancellationToken,
    run: JoinHandle<()>,
}

impl Working {
    /// Waits for its end.
    pub(super) async fn end(self) {
        self.stop.cancel();
        self.run.await.unwrap();
    }
}

pub(super) async fn store(redis: &Redis) -> Store {
    let settings = overdue_store::Settings { url: redis.url(), ..overdue_store::Settings::default() };
    Store::connect(&settings, "test").await.unwrap()
}

/// A rule whose leases run out soon, and whose retries hardly wait.
pub(super) fn rule(name: &str) -> GroupRule {
    GroupRule {
        queue: QueueName::new(QUEUE).unwrap(),
        name: group(name),
        from: From::Oldest,
        lease: Duration::from_millis(100),
        attempts: 3,
        retry_wait: Duration::from_millis(10),
        retry_wait_max: Duration::from_millis(10),
    }
}

/// Starts a reconciler that looks after these groups, and waits until it does.
pub(super) async fn reconcile(redis: &Redis, groups: Vec<GroupRule>) -> Working {
    let consumer_idle = Duration::from_secs(1);
    let loops = groups.len();
    let settings = Settings { groups, consumer_idle, ..Settings::new("test") };
    let (health, stop) = (Health::default(), CancellationToken::new());
    let reconciler = Reconciler::start(store(redis).await, settings, health.clone()).await.unwrap();
    let run = tokio::spawn(reconciler.run(stop.clone()));
    eventually("its loops have succeeded", async || {
        let report = health.ready();
        let at_work = report.text.lines().filter(|line| line.contains("  plain orders:0 ")).count();
        if report.ok && at_work == loops { Ok(()) } else { Err(report.text) }
    })
    .await;
    Working { health, stop, run }
}

/// The ids of timers that a plain consumer is given, as many as it takes.
pub(super) fn take(stage: &mut Stage, group: &str, consumer: &str) -> Vec<(String, EntryId, u64)> {
    let entries = stage.read(group, consumer);
    let read = |entry: &overdue_protocol::RawEntry| {
        let text = |name: &str| entry.field(name).map(|field| String::from_utf8_lossy(field).into_owned());
        let attempt = text("attempt").map_or(1, |text| text.parse().unwrap());
        // Retries of other groups are passed over.
        text("group").is_none_or(|to| to == group).then(|| (text("id").unwrap(), entry.id, attempt))
    };
    let ours: Vec<_> = entries.iter().filter_map(read).collect();
    let others: Vec<_> =
        entries.iter().map(|entry| entry.id).filter(|id| ours.iter().all(|(_, our, _)| our != id)).collect();
    if !others.is_empty() {
        stage.xack(group, &others);
    }
    ours
}

/// The names of a group's consumers.
pub(super) fn consumers(wire: &mut Wire, group: &str) -> Vec<String> {
    let stream = Keyspace::default().partition(&QueueName::new(QUEUE).unwrap(), 0).stream();
    let answer = wire.call(&[b"XINFO".as_slice(), b"CONSUMERS", &stream, group.as_bytes()]).unwrap();
    let name = |row: overdue_protocol::Reply| row.into_array()?.get(1)?.as_str().map(str::to_owned);
    answer.into_array().unwrap().into_iter().filter_map(name).collect()
}

/// Waits until the stream and the retries are empty.
pub(super) async fn emptied(stage: &mut Stage) {
    eventually("nothing is left", async || {
        let left = (stage.entries().len(), stage.retries().len());
        if left == (0, 0) { Ok(()) } else { Err(left) }
    })
    .await;
}
