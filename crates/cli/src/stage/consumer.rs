//! `overdue bench consumer`, hidden: the consumer library with a handler that only measures.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use overdue_consumer::{Consumer, Done, HandlerError, Raw, Timeout};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::journal::Line;
use super::now_us;
use crate::args::bench::BenchConsumer;
use crate::exit::{Exit, Failure};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::settings::Settings;

/// What it writes to stdout at its end, as one line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Handlers that ended.
    pub(crate) handled: u64,
    /// Handlers that started before the due time. Always 0 on one host.
    pub(crate) early: u64,
    /// From due to handler start, microseconds.
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) p999_us: u64,
    pub(crate) max_us: u64,
}

/// Lateness from the due time that was asked for, so that a queue that builds up is not left out.
struct Meter {
    lateness: Histogram<u64>,
    early: u64,
}

impl Meter {
    fn new() -> Self {
        // From 1 µs to an hour, in steps of 0.1 %.
        let lateness = Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("bounds of ours");
        Self { lateness, early: 0 }
    }

    fn note(&mut self, due_ms: u64, at_us: u64) {
        let due_us = due_ms * 1_000;
        self.early += u64::from(at_us < due_us);
        self.lateness.saturating_record(at_us.saturating_sub(due_us).max(1));
    }

    fn report(&self) -> Report {
        let at = |quantile| self.lateness.value_at_quantile(quantile);
        Report {
            handled: self.lateness.len(),
            early: self.early,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.lateness.max(),
        }
    }
}

/// Runs the command until SIGTERM.
pub(crate) async fn run(
    args: &BenchConsumer,
    settings: &Settings,
    output: &mut Output,
) -> Result<(), Failure> {
    let stop = Stop::on_signals()?;
    let consumer = Consumer::<Raw>::builder(settings.redis.clone(), args.queue.as_str(), args.group.as_str())
        .concurrency(args.concurrency)
        .lease(args.lease);
    let meter = Arc::new(Mutex::new(Meter::new()));
    let shutdown = stop.token.clone().cancelled_owned();
    if args.journal {
        let work = args.work;
        consumer.run(move |timeout| recorded(timeout, work), shutdown).await?;
        return stop.outcome();
    }
    let (noted, work) = (Arc::clone(&meter), args.work);
    let handler = move |timeout: Timeout<Raw>| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).note(timeout.due_ms(), now_us());
        async move {
            if !work.is_zero() {
                sleep(work).await;
            }
            Done
        }
    };
    consumer.run(handler, shutdown).await?;
    let report = meter.lock().unwrap_or_else(PoisonError::into_inner).report();
    let report =
        serde_json::to_string(&report).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    output.raw(&format!("{report}\n"))?;
    stop.outcome()
}

/// A handler that writes down when it starts and ends, and works for a while in between.
async fn recorded(timeout: Timeout<Raw>, work: Duration) -> Result<Done, HandlerError> {
    let generation = timeout.generation();
    let (due_ms, source) = (timeout.due_ms(), timeout.source());
    Line::Started { generation, due_ms, source, at_us: now_us() }.write()?;
    sleep(work).await;
    Line::Ended { generation }.write()?;
    Ok(Done)
}
