//! The crate apalis-redis.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use apalis::prelude::{
    BackendExt, ParallelizeExt, PollSnapshot, PollStrategy, Task, TaskBuilder, TaskSink, WorkerBuilder,
    WorkerBuilderExt,
};
use apalis_redis::{Config, ConnectionManager, RedisStorage};
use futures::stream;
use tokio::time::{interval, Interval, MissedTickBehavior};

use crate::args::Args;
use crate::jobs::{payload, Adds};
use crate::lateness::Lateness;
use crate::Result;

const QUEUE: &str = "bench";
/// Nothing else tells a worker that a scheduled task is due.
const POLL: Duration = Duration::from_millis(5);
/// So many tasks are fetched at once.
const BATCH: usize = 1_000;

/// Leases and events are extras that its docs say can be turned off; without results nothing is acknowledged.
async fn storage(args: &Args) -> Result<RedisStorage<String, ConnectionManager>> {
    let config = Config::default().queue(QUEUE).batch_size(BATCH).lock_tasks(false).emit_events(false);
    Ok(RedisStorage::new(apalis_redis::connect(args.text("redis")?).await?).with_config(config))
}

#[derive(Clone)]
pub struct Producer(RedisStorage<String, ConnectionManager>);

impl Producer {
    pub async fn connect(args: &Args) -> Result<Self> {
        Ok(Self(storage(args).await?))
    }
}

/// It knows whole seconds only. Rounded up, so that none runs before the time that was asked for.
fn task(due: u64) -> Task<String> {
    TaskBuilder::new(payload(due)).run_at_timestamp(due.div_ceil(1_000)).build()
}

impl Adds for Producer {
    const BULK: usize = 1_000;

    async fn many(&self, dues: &[u64]) -> Result<()> {
        let tasks: Vec<_> = dues.iter().copied().map(task).collect();
        Ok(self.0.clone().push_all(stream::iter(tasks)).await?)
    }

    async fn one(&self, due: u64) -> Result<()> {
        Ok(self.0.clone().push_task(task(due)).await?)
    }
}

/// Looks again after [`POLL`]. Its own `IntervalStrategy` leaves nothing behind that wakes the worker when a fetch takes longer
/// than the interval: the worker then sleeps until its next heartbeat.
struct Tick(Interval);

impl PollStrategy for Tick {
    fn poll_drive(&mut self, cx: &mut Context<'_>, _: &PollSnapshot) -> Poll<Option<()>> {
        let mut ticked = Poll::Pending;
        while self.0.poll_tick(cx).is_ready() {
            ticked = Poll::Ready(Some(()));
        }
        ticked
    }
}

pub async fn work(args: &Args) -> Result<()> {
    let lateness = Arc::new(Lateness::default());
    let measured = lateness.clone();
    let mut tick = interval(POLL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let worker = WorkerBuilder::new("bench")
        .backend(storage(args).await?.poll_with_strategy(Tick(tick)))
        .concurrency(args.number("concurrency")? as usize)
        .parallelize(tokio::spawn)
        .build(move |payload: String| {
            measured.handled(&payload);
            std::future::ready(())
        });
    tokio::select! {
        ended = worker.run() => Err(format!("the worker ended: {ended:?}").into()),
        said = lateness.until_sigterm() => said,
    }
}
