//! What the benchmarks measure with: a private Redis, a relay, a consumer and a client.

use std::io::Read as _;
use std::thread;
use std::time::Duration;

use overdue::{Client, Queue, Raw};
use overdue_protocol::tally::GroupCounter;
use overdue_sandbox::{Connection, Options};
use tokio::time::Instant;

use crate::exit::{Exit, Failure};
use crate::stage::consumer::Report;
use crate::stage::program::Program;
use crate::stage::{Stage, blocking, now_us};

/// How many handlers run at once: more than a page, so that reads are full.
const CONCURRENCY: &str = "1024";
/// How often the books are looked at for the end.
const LOOK: Duration = Duration::from_millis(5);
/// How long the consumer may take to end.
const END_DEADLINE: Duration = Duration::from_secs(20);

/// Everything that takes part.
pub(super) struct Rig {
    pub(super) stage: Stage,
    pub(super) queue: Queue<Raw>,
    relay: Program,
    consumer: Program,
}

/// Processor time used so far, microseconds.
#[derive(Clone, Copy)]
pub(super) struct Cpu {
    redis: u64,
    ours: Option<u64>,
}

impl Cpu {
    /// For each of `n` timeouts since `before`: of Redis, and of relay and consumer together.
    pub(super) fn each(self, before: Cpu, n: u64) -> (f64, Option<f64>) {
        let each = |now: u64, then: u64| (now.saturating_sub(then) as f64 / n as f64 * 100.0).round() / 100.0;
        let ours = self.ours.zip(before.ours).map(|(now, then)| each(now, then));
        (each(self.redis, before.redis), ours)
    }
}

impl Rig {
    /// Starts everything, and waits until it is at work.
    pub(super) async fn open() -> Result<Self, Failure> {
        Self::on(Stage::open(Options::default(), "bench").await?, &[], &[]).await
    }

    /// The same on a stage that is there, with more arguments for relay and consumer.
    pub(super) async fn on(stage: Stage, relay: &[&str], consumer: &[&str]) -> Result<Self, Failure> {
        let mut relay = stage.relay("relay", relay)?;
        let consumer = [&["--concurrency", CONCURRENCY], consumer].concat();
        let mut consumer = stage.consumer("consumer", &consumer)?;
        stage.await_ready(&mut [&mut relay, &mut consumer]).await?;
        let client = Client::connect(stage.redis.url()).await?;
        let queue = client.queue::<Raw>(stage.partition.queue().as_str()).await?;
        Ok(Self { stage, queue, relay, consumer })
    }

    /// What Redis, relay and consumer have used so far.
    pub(super) async fn cpu(&self) -> Result<Cpu, Failure> {
        let ours = self.relay.cpu_us().zip(self.consumer.cpu_us());
        Ok(Cpu { redis: self.stage.store.server().await?.cpu_us, ours: ours.map(|(a, b)| a + b) })
    }

    /// Waits until `n` timeouts are acknowledged; unix microseconds of that moment.
    pub(super) async fn await_done(&mut self, n: u64, deadline: Duration) -> Result<u64, Failure> {
        self.done_within(n, deadline).await?.map_err(|done| {
            let words = [&self.relay, &self.consumer].map(Program::last_words).join("; ");
            let what = format!("{done} of {n} timeouts are acknowledged after {deadline:?}: {words}");
            Failure::new(Exit::CheckFailed, what)
        })
    }

    /// Waits at most so long until `n` timeouts are acknowledged: unix microseconds of that moment, or how many are.
    pub(super) async fn done_within(
        &mut self,
        n: u64,
        deadline: Duration,
    ) -> Result<Result<u64, u64>, Failure> {
        let end = Instant::now() + deadline;
        loop {
            let (redis, tally) = (self.stage.redis.clone(), self.stage.partition.tally());
            let field = GroupCounter::Done.field(&self.stage.group);
            let looked =
                blocking(move || look(&mut redis.connection()?, &tally, field.as_bytes(), n)).await?;
            self.relay.check()?;
            self.consumer.check()?;
            if looked.is_ok() || Instant::now() > end {
                return Ok(looked);
            }
        }
    }

    /// Ends the consumer, and takes its report.
    pub(super) async fn report(mut self) -> Result<Report, Failure> {
        let mut pipe = self.consumer.take_stdout();
        if !self.consumer.end(END_DEADLINE).await {
            return Err(Failure::new(Exit::CheckFailed, format!("{} does not end", self.consumer.name())));
        }
        let mut text = String::new();
        let read = pipe.read_to_string(&mut text).map_err(|error| error.to_string());
        let report = read.and_then(|_| serde_json::from_str(&text).map_err(|error| error.to_string()));
        report.map_err(|error| {
            Failure::new(Exit::CheckFailed, format!("no report: {error}: {}", self.consumer.last_words()))
        })
    }
}

/// Looks for a second whether the books say `n`: when they did, or how far they are. Costs Redis next to nothing.
fn look(
    connection: &mut Connection,
    tally: &[u8],
    field: &[u8],
    n: u64,
) -> Result<Result<u64, u64>, overdue_sandbox::Error> {
    let end = std::time::Instant::now() + Duration::from_secs(1);
    loop {
        let done = connection.call(&[b"HGET", tally, field])?.text().parse().unwrap_or(0);
        if done >= n {
            return Ok(Ok(now_us()));
        }
        if std::time::Instant::now() > end {
            return Ok(Err(done));
        }
        thread::sleep(LOOK);
    }
}
