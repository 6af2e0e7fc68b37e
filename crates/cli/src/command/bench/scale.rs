//! `overdue bench scale`: what more consumer processes do, when the handler is what takes time.

use std::time::Duration;

use overdue_sandbox::Options;
use serde::Serialize;

use super::at_once::{AtOnce, Figures};
use super::rig::{Rig, hundredth};
use crate::args::bench::Scale;
use crate::exit::{Exit, Failure};
use crate::output::{Output, text};
use crate::stage::Stage;
use crate::stage::progress::Progress;

/// The most timers of a row.
const MOST: f64 = 10_000_000.0;

/// The last line with `--json`.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    concurrency: u32,
    work_ms: f64,
    rows: Vec<Row>,
}

/// One number of consumers.
#[derive(Serialize)]
struct Row {
    consumers: u32,
    timers: u32,
    per_s: u64,
    /// To the first row, for each of whose consumers.
    ratio: f64,
    redis_us: f64,
    our_us: Option<f64>,
}

/// Runs the command.
pub(super) async fn run(args: &Scale, output: &mut Output) -> Result<(), Failure> {
    if args.work.is_zero() {
        return Err(Failure::new(Exit::Usage, "--work is 0: then it is not the handler that takes time"));
    }
    let mut progress = Progress::new(output.is_json());
    let mut rows: Vec<Row> = vec![];
    for &consumers in &args.consumers {
        let mut row = measure(args, consumers).await?;
        let first = rows.first().unwrap_or(&row);
        row.ratio = hundredth(row.per_s as f64 / (first.per_s as f64 / f64::from(first.consumers)));
        progress.happened(&format!("{consumers} consumers: {} a second", text::count(row.per_s)));
        rows.push(row);
    }
    progress.end();
    let work_ms = args.work.as_secs_f64() * 1e3;
    write(&Measured { bench: "scale", concurrency: args.concurrency, work_ms, rows }, output)
}

/// What so many consumers do, on a private Redis of their own.
async fn measure(args: &Scale, consumers: u32) -> Result<Row, Failure> {
    let (concurrency, work) = (args.concurrency.to_string(), format!("{}ns", args.work.as_nanos()));
    let terms = ["--concurrency", &concurrency, "--work", &work];
    let open =
        async || Rig::with(Stage::open(Options::default(), "bench").await?, &[], consumers, &terms).await;
    let handlers = f64::from(consumers * args.concurrency);
    let timers = (handlers * f64::from(args.seconds) / args.work.as_secs_f64()).clamp(1.0, MOST) as u32;

    let lead = Duration::from_millis(1_500) + Duration::from_micros(60) * timers;
    let mut armed = AtOnce::arm(open, timers, 100, lead).await?;
    let deadline = Duration::from_secs(60) + Duration::from_secs(args.seconds.into()) * 10;
    let Figures { per_s, redis_us, our_us, .. } = armed.fire(deadline).await?;
    Ok(Row { consumers, timers, per_s, ratio: f64::from(consumers), redis_us, our_us })
}

fn write(measured: &Measured, output: &mut Output) -> Result<(), Failure> {
    let Measured { concurrency, work_ms, rows, .. } = measured;
    output
        .say(format_args!("{concurrency} handlers of {work_ms} ms in each process, 100 bytes of payload"))?;
    output.say(format_args!(
        "{:>9} {:>10} {:>7} {:>9} {:>9}",
        "consumers", "a second", "ratio", "Redis", "ours"
    ))?;
    for row in rows {
        let ours = row.our_us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1} µs"));
        let (per_s, redis) = (text::count(row.per_s), format!("{:.1} µs", row.redis_us));
        output
            .say(format_args!("{:>9} {per_s:>10} {:>7.2} {redis:>9} {ours:>9}", row.consumers, row.ratio))?;
    }
    output.object(measured)
}
