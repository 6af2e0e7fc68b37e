//! The crate bullmq-official.

use std::sync::Arc;

use bullmq::options::RedisConnectionOptions;
use bullmq::types::RemoveOnFinish;
use bullmq::worker::CancellationToken;
use bullmq::{BulkJob, Job, JobOptions, Queue, QueueOptions, Worker, WorkerOptions};
use serde_json::Value;

use crate::args::Args;
use crate::clock::now_ms;
use crate::jobs::{payload, Adds};
use crate::lateness::Lateness;
use crate::Result;

const QUEUE: &str = "bench";

fn connection(args: &Args) -> Result<RedisConnectionOptions> {
    Ok(RedisConnectionOptions { url: args.text("redis")?.to_owned(), ..Default::default() })
}

#[derive(Clone)]
pub struct Producer(Arc<Queue>);

impl Producer {
    pub async fn connect(args: &Args) -> Result<Self> {
        let options = QueueOptions { connection: connection(args)?, ..Default::default() };
        Ok(Self(Arc::new(Queue::with_options(QUEUE, options).await?)))
    }
}

fn options(due: u64) -> JobOptions {
    let now = now_ms();
    JobOptions {
        delay: Some(due.saturating_sub(now)),
        // The delay counts from here, and would else from a moment later.
        timestamp: Some(now),
        remove_on_complete: Some(RemoveOnFinish::Bool(true)),
        ..Default::default()
    }
}

impl Adds for Producer {
    const BULK: usize = 1_000;

    async fn many(&self, dues: &[u64]) -> Result<()> {
        let jobs = dues.iter().map(|due| BulkJob::with_options("t", payload(*due), options(*due))).collect();
        self.0.add_bulk(jobs).await?;
        Ok(())
    }

    async fn one(&self, due: u64) -> Result<()> {
        self.0.add("t", payload(due)).options(options(due)).await?;
        Ok(())
    }
}

pub async fn work(args: &Args) -> Result<()> {
    let lateness = Arc::new(Lateness::default());
    let measured = lateness.clone();
    let handle = move |job: Job, _: CancellationToken| {
        measured.handled(job.data().as_str().unwrap_or_default());
        async { Ok(Value::Null) }
    };
    let options = WorkerOptions {
        connection: connection(args)?,
        concurrency: args.number("concurrency")? as usize,
        ..Default::default()
    };
    let _worker = Worker::with_options(QUEUE, handle, options).await?;
    lateness.until_sigterm().await
}
