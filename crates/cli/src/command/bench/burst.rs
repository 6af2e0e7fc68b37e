//! `overdue bench burst`: how many timeouts a second, when all are due at once.

use std::time::Duration;

use serde::Serialize;

use super::at_once::{self, AtOnce};
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

/// What came out of one burst.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Figures {
    /// Timeouts a second, from due to the last acknowledgement.
    pub(super) per_s: u64,
    /// Processor time of Redis for each timeout, without arming it.
    pub(super) redis_us: f64,
    /// The same of relay and consumer.
    pub(super) our_us: Option<f64>,
    /// What Redis was asked: scripts, and reads of the stream.
    pub(super) scripts: u64,
    pub(super) reads: u64,
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
    let at_once::Figures { per_s, redis_us, our_us, asked } = armed.fire(deadline).await?;
    let stage = &armed.rig.stage;
    let left = stage.store.length(&stage.partition.stream()).await?;
    if left > 0 {
        return Err(Failure::new(Exit::CheckFailed, format!("{left} entries are left in the stream")));
    }
    Ok(Figures { per_s, redis_us, our_us, scripts: asked.scripts, reads: asked.reads })
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
