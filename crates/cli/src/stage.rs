//! A private Redis, and `overdue` itself as processes on it: what `demo` and `bench` play on.

pub(crate) mod background;
pub(crate) mod consumer;
pub(crate) mod cpu;
pub(crate) mod journal;
pub(crate) mod lateness;
pub(crate) mod listener;
pub(crate) mod program;
pub(crate) mod progress;
pub(crate) mod wire;

use std::sync::Arc;
use std::time::Duration;

use overdue::{Client, Queue, Raw, Scheduled, Timer};
use overdue_protocol::{GroupName, Partition, QueueName};
use overdue_sandbox::{Options, Redis};
use overdue_store::{Settings, Store};
use tokio::time::{Instant, sleep};

use crate::exit::{Exit, Failure};
use program::Program;

/// How long our programs may take until they are at work.
const START_DEADLINE: Duration = Duration::from_secs(20);
/// Timers armed by one call: enough to keep Redis busy, few enough to stay small.
const ARM_PAGE: usize = 10_000;
/// How often something awaited is looked for.
const POLL: Duration = Duration::from_millis(10);

/// A private Redis with one queue of one partition and one group. The last who lets go of the Redis removes all of it.
pub(crate) struct Stage {
    pub(crate) redis: Arc<Redis>,
    pub(crate) store: Store,
    pub(crate) partition: Partition,
    pub(crate) group: GroupName,
}

impl Stage {
    /// Starts a private Redis and creates the queue.
    pub(crate) async fn open(options: Options, queue: &str) -> Result<Self, Failure> {
        Self::on(start(options).await?, queue).await
    }

    /// Creates the queue on a private Redis that runs.
    pub(crate) async fn on(redis: Arc<Redis>, queue: &str) -> Result<Self, Failure> {
        let store = Store::connect(&Settings::new(redis.url()), "stage").await?;
        let queue = QueueName::new(queue).expect("a constant of ours");
        store.create_queue(&queue, 1).await?;
        let partition = store.keyspace().partition(&queue, 0);
        let group = GroupName::new("handlers").expect("a constant of ours");
        Ok(Self { redis, store, partition, group })
    }

    /// A client's handle for the queue.
    pub(crate) async fn queue(&self) -> Result<Queue<Raw>, Failure> {
        let client = Client::connect(self.redis.url()).await?;
        Ok(client.queue::<Raw>(self.partition.queue().as_str()).await?)
    }

    /// Starts a relay for all queues; `args` are more arguments of `overdue relay`.
    pub(crate) fn relay(&self, name: &str, args: &[&str]) -> Result<Program, Failure> {
        Program::start(name, &self.redis, ["relay", "--listen", "off"].iter().chain(args))
    }

    /// Starts a consumer of the queue; `args` are more arguments of the hidden command ([`consumer`]).
    pub(crate) fn consumer(&self, name: &str, args: &[&str]) -> Result<Program, Failure> {
        let (queue, group) = (self.partition.queue().as_str(), self.group.as_str());
        let first = ["bench", "consumer", "--queue", queue, "--group", group];
        Program::start(name, &self.redis, first.iter().chain(args))
    }

    /// Waits until every one of `programs` has written itself down: it is at work then.
    pub(crate) async fn await_ready(&self, programs: &mut [&mut Program]) -> Result<(), Failure> {
        let end = Instant::now() + START_DEADLINE;
        loop {
            let members = self.store.members().await?;
            let written = |program: &&mut Program| members.values().any(|member| member.pid == program.pid());
            if programs.iter().all(written) {
                return Ok(());
            }
            programs.iter_mut().try_for_each(|program| program.check())?;
            if Instant::now() > end {
                let late = programs.iter().filter(|program| !written(program));
                let said = late.map(|program| program.last_words()).collect::<Vec<_>>().join("; ");
                let what = format!("not at work {START_DEADLINE:?} after the start: {said}");
                return Err(Failure::new(Exit::Redis, what));
            }
            sleep(POLL).await;
        }
    }
}

/// Starts a private Redis.
pub(crate) async fn start(options: Options) -> Result<Arc<Redis>, Failure> {
    blocking(move || Redis::start(options)).await.map(Arc::new)
}

/// Runs something that blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, overdue_sandbox::Error> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await.expect("it is not aborted, and a panic in it goes on");
    done.map_err(cannot)
}

/// What went wrong around the private Redis.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub(crate) fn cannot(error: overdue_sandbox::Error) -> Failure {
    Failure::new(Exit::Redis, format!("cannot {error}"))
}

/// Unix microseconds on this host's clock; the private Redis has the same.
pub(crate) fn now_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Sleeps until a time of this host's clock.
pub(crate) async fn sleep_until_ms(unix_ms: u64) {
    sleep(Duration::from_micros((unix_ms * 1_000).saturating_sub(now_us()))).await;
}

/// Microseconds as milliseconds, for JSON and tables.
pub(crate) fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

/// Arms timers, page by page; all of them or an error.
pub(crate) async fn arm<'q>(
    queue: &'q Queue<Raw>,
    timers: impl Iterator<Item = Timer<'q, Raw>>,
) -> Result<Vec<Scheduled>, Failure> {
    let mut timers = timers.peekable();
    let mut armed = vec![];
    while timers.peek().is_some() {
        for answer in queue.schedule_many(timers.by_ref().take(ARM_PAGE)).await {
            armed.push(answer?);
        }
    }
    Ok(armed)
}
