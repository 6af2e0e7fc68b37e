//! A queue of one partition with a relay of the simplest kind, and consumers of the library in this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_consumer::{Consumer, Error, IntoOutcome, Payload, Raw, Report, Timeout};
use overdue_protocol::call::{Mode, Schedule, ScheduleItem, Sweep, SweepRetries, When};
use overdue_protocol::{Keyspace, Partition, QueueInfo, QueueName, RawEntry, TimerId, record};
use overdue_store::Settings;
use overdue_tests::{Redis, Wire, assert_balanced, eventually};
use tokio_util::sync::CancellationToken;

pub(crate) const QUEUE: &str = "orders";
pub(crate) const GROUP: &str = "billing";

/// One delivery to a handler.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) key: String,
    pub(crate) attempt: u32,
    pub(crate) due_ms: u64,
    pub(crate) at: Instant,
    pub(crate) late_ms: u64,
}

/// Deliveries, in the order of their beginning.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Delivery>>>);

impl Seen {
    pub(crate) fn note<T>(&self, timeout: &Timeout<T>) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let late_ms = u64::try_from(now.as_millis()).unwrap().saturating_sub(timeout.due_ms());
        let (key, attempt, due_ms) = (timeout.idempotency_key(), timeout.attempt(), timeout.due_ms());
        self.0.lock().unwrap().push(Delivery { key, attempt, due_ms, at: Instant::now(), late_ms });
    }

    pub(crate) fn all(&self) -> Vec<Delivery> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Waits for so many deliveries.
    pub(crate) async fn wait_for(&self, n: usize) {
        let enough = async || if self.len() >= n { Ok(()) } else { Err(self.len()) };
        eventually(&format!("{n} deliveries"), enough).await;
    }

    /// No key was delivered twice.
    pub(crate) fn assert_once(&self, keys: usize) {
        let mut all: Vec<_> = self.all().into_iter().map(|delivery| delivery.key).collect();
        let delivered = all.len();
        all.sort();
        all.dedup();
        assert_eq!((all.len(), delivered), (keys, keys), "distinct keys and deliveries");
    }
}

pub(crate) struct Stage {
    pub(crate) redis: Arc<Redis>,
    pub(crate) partition: Partition,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::on(Redis::start())
    }

    pub(crate) fn on(redis: Redis) -> Self {
        let partition = Keyspace::default().partition(&QueueName::new(QUEUE).unwrap(), 0);
        let stage = Self { redis: Arc::new(redis), partition };
        stage.set_queue(1, false);
        stage
    }

    /// Writes the queue down, as an operator's `queues create` and `pause` do.
    pub(crate) fn set_queue(&self, partitions: u32, paused: bool) {
        self.write_queue(&QueueInfo { partitions, created_ms: 1, format: 1, paused, history: 0 });
    }

    /// As [`Stage::set_queue`], with a history of so many.
    pub(crate) fn set_history(&self, history: u32) {
        self.write_queue(&QueueInfo { partitions: 1, created_ms: 1, format: 1, paused: false, history });
    }

    fn write_queue(&self, info: &QueueInfo) {
        self.redis.call(&[b"HSET".as_slice(), b"overdue:queues", QUEUE.as_bytes(), &info.encode()]);
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(&self.redis)
    }

    /// Arms timers that are due at once, with the numbers as ids.
    pub(crate) fn arm(&self, ids: std::ops::Range<usize>) {
        self.arm_with(ids, &Bytes::from_static(b"hold"));
    }

    pub(crate) fn arm_with(&self, ids: std::ops::Range<usize>, payload: &Bytes) {
        self.arm_in(&self.partition, 1, ids, payload);
    }

    pub(crate) fn arm_in(
        &self,
        at: &Partition,
        partitions: u32,
        ids: std::ops::Range<usize>,
        payload: &Bytes,
    ) {
        let mut wire = self.wire();
        let ids: Vec<_> = ids.collect();
        let page = if payload.len() > 10_000 { 1 } else { 500 };
        for page in ids.chunks(page) {
            let item = |id: &usize| ScheduleItem {
                id: TimerId::new(format!("t{id}")).unwrap(),
                when: When::In(0),
                mode: Mode::Upsert,
                payload: payload.clone(),
                call: Bytes::new(),
                extras: record::pack_extras(&[]),
                keyed: false,
            };
            let items = page.iter().map(item).collect();
            wire.run(&Schedule { partition: at.clone(), partitions, items }).unwrap();
        }
    }

    /// Fires all that is due, retries too; answers how many.
    pub(crate) fn fire(&self) -> u32 {
        let mut wire = self.wire();
        sweep(&mut wire, &self.partition)
    }

    /// A relay of the simplest kind, until it is dropped.
    pub(crate) fn relay(&self) -> Relay {
        self.relay_of(std::slice::from_ref(&self.partition))
    }

    pub(crate) fn relay_of(&self, partitions: &[Partition]) -> Relay {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, redis, partitions) = (stop.clone(), self.redis.clone(), partitions.to_vec());
        let thread = thread::spawn(move || {
            let mut wire = Wire::connect(&redis);
            while !stopped.load(Ordering::SeqCst) {
                let fired: u32 = partitions.iter().map(|partition| sweep(&mut wire, partition)).sum();
                if fired == 0 {
                    thread::sleep(Duration::from_millis(2));
                }
            }
        });
        Relay { stop, thread: Some(thread) }
    }

    /// A consumer with a short lease and quick retries.
    pub(crate) fn consumer(&self) -> Consumer<Raw> {
        consumer_at(&self.redis.url())
    }

    /// Delivers up to `n` entries to a consumer that is dead.
    pub(crate) fn die_holding(&self, name: &str, n: usize) {
        let (stream, count) = (self.partition.stream(), n.to_string());
        let (group, name, count) = (GROUP.as_bytes(), name.as_bytes(), count.as_bytes());
        let read =
            [b"XREADGROUP".as_slice(), b"GROUP", group, name, b"COUNT", count, b"STREAMS", &stream, b">"];
        self.redis.call(&read);
    }

    /// Waits until a consumer has joined.
    pub(crate) async fn wait_for_group(&self) {
        eventually("the group is there", async || {
            let groups = self.redis.command(&[b"XINFO".as_slice(), b"GROUPS", &self.partition.stream()]);
            groups.is_ok_and(|groups| groups.items().len() == 1)
        })
        .await;
    }

    /// The names of the consumers in the group, with what they hold.
    pub(crate) fn consumers(&self) -> Vec<(String, u64)> {
        let Ok(list) = self.redis.command(&[
            b"XINFO".as_slice(),
            b"CONSUMERS",
            &self.partition.stream(),
            GROUP.as_bytes(),
        ]) else {
            return vec![];
        };
        let read = |flat: &overdue_tests::redis::Value| {
            let field = |name: &str| {
                let pair = flat.items().chunks(2).find(|pair| pair[0].text() == name);
                pair.map(|pair| pair[1].clone()).unwrap()
            };
            (field("name").text(), u64::try_from(field("pending").int().unwrap()).unwrap())
        };
        list.items().iter().map(read).collect()
    }

    pub(crate) fn pending(&self) -> u64 {
        self.consumers().iter().map(|(_, pending)| pending).sum()
    }

    pub(crate) fn dead(&self) -> Vec<RawEntry> {
        self.wire().xrange(self.partition.dead()).unwrap()
    }

    pub(crate) fn stream_length(&self) -> u64 {
        self.redis.count(&[b"XLEN".as_slice(), &self.partition.stream()])
    }

    /// Nothing pending, nothing in the stream, no retry, and the books balance.
    pub(crate) async fn assert_settled(&self) {
        eventually("nothing is left", async || {
            let retries = self.redis.count(&[b"ZCARD".as_slice(), &self.partition.retry_index()]);
            let left = (self.pending(), self.stream_length(), retries);
            if left == (0, 0, 0) { Ok(()) } else { Err(left) }
        })
        .await;
        assert_balanced(&*self.redis, QUEUE, 1);
    }
}

pub(crate) fn consumer_at(url: &str) -> Consumer<Raw> {
    Consumer::builder(settings_at(url), QUEUE, GROUP)
        .lease(Duration::from_secs(2))
        .policy(|_| Duration::from_millis(20))
        .grace(Duration::from_secs(5))
}

pub(crate) fn settings_at(url: &str) -> Settings {
    Settings { command_deadline: Duration::from_secs(1), ..Settings::new(url) }
}

fn sweep(wire: &mut Wire, partition: &Partition) -> u32 {
    let (partition, sweeper) = (partition.clone(), Bytes::from_static(b"stage"));
    let retries = SweepRetries { partition: partition.clone(), limit: 256 };
    // A test may have put something else in its place.
    let swept = wire.run(&Sweep { partition, limit: 256, grace_ms: 0, sweeper });
    swept.map_or(0, |swept| swept.fired) + wire.run(&retries).map_or(0, |swept| swept.fired)
}

pub(crate) struct Relay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A consumer at work.
pub(crate) struct Working {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<Report, Error>>,
}

impl Working {
    /// Ends it, and gives its report.
    pub(crate) async fn end(self) -> Report {
        self.stop.cancel();
        tokio::time::timeout(overdue_tests::patience(), self.task)
            .await
            .expect("the consumer ends")
            .expect("the consumer does not panic")
            .expect("the consumer ends without an error")
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.task.is_finished()
    }
}

/// Starts a consumer.
pub(crate) fn start<T, F, Fut>(consumer: Consumer<T>, handler: F) -> Working
where
    T: Payload,
    F: Fn(Timeout<T>) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoOutcome,
{
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(async move { consumer.run(handler, stopped.cancelled_owned()).await });
    Working { stop, task }
}
