//! `overdue bench burst`: how many timeouts a second, when all are due at once.

use std::time::Duration;

use serde::Serialize;

use super::at_once::{AtOnce, Figures};
use super::rig::Rig;
use crate::args::bench::Burst;
use crate::exit::{Exit, Failure};
use crate::output::{Output, text};

/// The last line with `--json`.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    timers: u64,
    #[serde(flatten)]
    burst: Figures,
}

/// Runs the command.
pub(super) async fn run(args: &Burst, output: &mut Output) -> Result<(), Failure> {
    let burst = measure(args).await?;
    write(&Measured { bench: "burst", timers: args.timers.into(), burst }, args, output)
}

/// One burst on a private Redis of its own.
pub(super) async fn measure(args: &Burst) -> Result<Figures, Failure> {
    // Some 20 µs for each, and a start.
    let lead = Duration::from_millis(1_500) + Duration::from_micros(20) * args.timers;
    let mut armed = AtOnce::arm(Rig::open, args.timers, args.payload_bytes as usize, lead).await?;
    let deadline = Duration::from_secs(60) + Duration::from_micros(500) * args.timers;
    let figures = armed.fire(deadline).await?;
    let stage = &armed.rig.stage;
    let left = stage.store.length(&stage.partition.stream()).await?;
    if left > 0 {
        return Err(Failure::new(Exit::CheckFailed, format!("{left} entries are left in the stream")));
    }
    Ok(figures)
}

fn write(measured: &Measured, args: &Burst, output: &mut Output) -> Result<(), Failure> {
    let of = |us: Option<f64>| us.map_or_else(|| "not known".to_owned(), |us| format!("{us:.2} µs"));
    let (timers, bytes) = (text::count(measured.timers), args.payload_bytes);
    output
        .say(format_args!("{timers} timeouts of {bytes} bytes, all due at once, one relay, one consumer"))?;
    output.say(format_args!(
        "a second           {}  from due to acknowledged",
        text::count(measured.burst.per_s)
    ))?;
    output.say(format_args!(
        "Redis              {}  of processor time for each",
        of(Some(measured.burst.redis_us))
    ))?;
    output.say(format_args!("relay + consumer   {}", of(measured.burst.our_us)))?;
    output.object(measured)
}
