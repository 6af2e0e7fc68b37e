//! What the benchmarks measure with: a private Redis, a relay, consumers and a client.

use std::io::Read as _;
use std::thread;
use std::time::Duration;

use overdue::{Queue, Raw};
use overdue_protocol::tally::GroupCounter;
use overdue_sandbox::{Connection, Options};
use tokio::time::Instant;

use crate::exit::{Exit, Failure};
use crate::stage::consumer::Report;
use crate::stage::program::Program;
use crate::stage::{Stage, blocking, now_us, wire};

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
    consumers: Vec<Program>,
}

/// Processor time used so far, microseconds.
#[derive(Clone, Copy)]
pub(super) struct Cpu {
    pub(super) redis: u64,
    pub(super) relay: Option<u64>,
    /// Of all consumers.
    pub(super) consumers: Option<u64>,
}

impl Cpu {
    /// For each of `n` timeouts since `before`: of Redis, and of relay and consumers together.
    pub(super) fn each(self, before: Cpu, n: u64) -> (f64, Option<f64>) {
        let ours = |cpu: Cpu| cpu.relay.zip(cpu.consumers).map(|(relay, consumers)| relay + consumers);
        let ours = ours(self).zip(ours(before)).map(|(now, then)| each(now, then, n));
        (each(self.redis, before.redis, n), ours)
    }
}

/// What Redis was asked so far.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) scripts: u64,
    pub(super) reads: u64,
}

impl Asked {
    pub(super) async fn so_far(stage: &Stage) -> Result<Self, Failure> {
        let redis = stage.redis.clone();
        blocking(move || {
            let calls = |command| wire::stats(&mut redis.connection()?, command).map(|(calls, _)| calls);
            Ok(Self { scripts: calls("evalsha")?, reads: calls("xreadgroup")? })
        })
        .await
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self { scripts: self.scripts - before.scripts, reads: self.reads - before.reads }
    }
}

/// What was used since `then` for each of `n`, to a hundredth.
pub(super) fn each(now: u64, then: u64, n: u64) -> f64 {
    hundredth(now.saturating_sub(then) as f64 / n as f64)
}

/// Rounds for JSON and tables.
pub(super) fn hundredth(of: f64) -> f64 {
    (of * 100.0).round() / 100.0
}

/// So many in so many microseconds, a second.
pub(super) fn per_s(n: u64, us: u64) -> u64 {
    (n as f64 * 1e6 / us.max(1) as f64).round() as u64
}

impl Rig {
    /// Starts everything, and waits until it is at work.
    pub(super) async fn open() -> Result<Self, Failure> {
        Self::on(Stage::open(Options::default(), "bench").await?, &[], &[]).await
    }

    /// The same on a stage that is there, with more arguments for relay and consumer.
    pub(super) async fn on(stage: Stage, relay: &[&str], consumer: &[&str]) -> Result<Self, Failure> {
        let consumer = [&["--concurrency", CONCURRENCY], consumer].concat();
        Self::with(stage, relay, 1, &consumer).await
    }

    /// The same with so many consumers.
    pub(super) async fn with(
        stage: Stage,
        relay: &[&str],
        consumers: u32,
        consumer: &[&str],
    ) -> Result<Self, Failure> {
        let mut relay = stage.relay("relay", relay)?;
        let start = |n| stage.consumer(&format!("consumer {n}"), consumer);
        let mut consumers = (1..=consumers).map(start).collect::<Result<Vec<_>, _>>()?;
        let mut all: Vec<_> = std::iter::once(&mut relay).chain(&mut consumers).collect();
        stage.await_ready(&mut all).await?;
        let queue = stage.queue().await?;
        Ok(Self { stage, queue, relay, consumers })
    }

    /// What Redis, relay and consumers have used so far.
    pub(super) async fn cpu(&self) -> Result<Cpu, Failure> {
        let redis = self.stage.store.server().await?.cpu_us;
        let consumers = self.consumers.iter().map(Program::cpu_us).sum();
        Ok(Cpu { redis, relay: self.relay.cpu_us(), consumers })
    }

    /// Waits until `n` timeouts are acknowledged; unix microseconds of that moment.
    pub(super) async fn await_done(&mut self, n: u64, deadline: Duration) -> Result<u64, Failure> {
        self.done_within(n, deadline).await?.map_err(|done| {
            let words = std::iter::once(&self.relay).chain(&self.consumers);
            let words = words.map(Program::last_words).collect::<Vec<_>>().join("; ");
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
            self.consumers.iter_mut().try_for_each(Program::check)?;
            if looked.is_ok() || Instant::now() > end {
                return Ok(looked);
            }
        }
    }

    /// Ends the first consumer, and takes its report.
    pub(super) async fn report(mut self) -> Result<Report, Failure> {
        let consumer = &mut self.consumers[0];
        let mut pipe = consumer.take_stdout();
        if !consumer.end(END_DEADLINE).await {
            return Err(Failure::new(Exit::CheckFailed, format!("{} does not end", consumer.name())));
        }
        let mut text = String::new();
        let read = pipe.read_to_string(&mut text).map_err(|error| error.to_string());
        let report = read.and_then(|_| serde_json::from_str(&text).map_err(|error| error.to_string()));
        report.map_err(|error| {
            Failure::new(Exit::CheckFailed, format!("no report: {error}: {}", consumer.last_words()))
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
