//! `overdue bench consumer`, hidden: the consumer library with a handler that only measures.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overdue_consumer::{Consumer, Done, HandlerError, Raw, Timeout};
use overdue_protocol::TimerId;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::journal::Line;
use super::lateness::Lateness;
use super::now_us;
use crate::args::bench::BenchConsumer;
use crate::exit::{Exit, Failure};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::settings::Settings;

/// What it writes to stdout at its end, as one line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Handlers that started, of what is measured.
    pub(crate) handled: u64,
    /// Handlers that started before the due time. Always 0 on one host.
    pub(crate) early: u64,
    /// From due to handler start, microseconds; 0 when nothing was handled.
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) p999_us: u64,
    pub(crate) max_us: u64,
}

/// What the handlers note.
#[derive(Default)]
struct Meter {
    lateness: Lateness,
    early: u64,
}

impl Meter {
    fn note(&mut self, due_ms: u64, at_us: u64) {
        self.early += u64::from(at_us < due_ms * 1_000);
        self.lateness.note(due_ms, at_us);
    }

    fn report(&self) -> Report {
        let at = |quantile| self.lateness.at(quantile).unwrap_or(0);
        Report {
            handled: self.lateness.len(),
            early: self.early,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
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
    let meter = Arc::new(Mutex::new(Meter::default()));
    let shutdown = stop.token.clone().cancelled_owned();
    if args.journal {
        let work = args.work;
        consumer.run(move |timeout| recorded(timeout, work), shutdown).await?;
        return stop.outcome();
    }
    let (noted, work, due_in_id) = (Arc::clone(&meter), args.work, args.due_in_id);
    let handler = move |timeout: Timeout<Raw>| {
        let at_us = now_us();
        let due_ms = if due_in_id { due_of(timeout.id()) } else { Some(timeout.due_ms()) };
        if let Some(due_ms) = due_ms {
            noted.lock().unwrap_or_else(PoisonError::into_inner).note(due_ms, at_us);
        }
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

/// The due time that an id ends with, after its last colon.
fn due_of(id: &TimerId) -> Option<u64> {
    let digits = id.as_bytes().rsplit(|&byte| byte == b':').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A handler that writes down when it starts and ends, and works for a while in between.
async fn recorded(timeout: Timeout<Raw>, work: Duration) -> Result<Done, HandlerError> {
    let (at_us, source) = (now_us(), timeout.source());
    let id = String::from_utf8_lossy(timeout.id().as_bytes()).into_owned();
    Line::Started { source, at_us, id: id.clone() }.write()?;
    sleep(work).await;
    Line::Ended { id }.write()?;
    Ok(Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_due_time_that_was_asked_for_stands_at_the_end_of_the_id() {
        let due = |id: &str| due_of(&TimerId::new(id.to_owned()).unwrap());
        assert_eq!(due("lag-key:17:1764540000000"), Some(1_764_540_000_000));
        assert_eq!((due("order-1"), due("a:b")), (None, None));
    }
}
