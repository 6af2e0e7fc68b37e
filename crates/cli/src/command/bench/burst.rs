//! `overdue bench burst`: how many timeouts a second, when all are due at once.

use std::time::Duration;

use overdue::{Raw, When};
use serde::Serialize;

use super::rig::{Asked, Rig, per_s};
use crate::args::bench::Burst;
use crate::exit::{Exit, Failure};
use crate::output::{Output, text};
use crate::stage::{arm, now_us, sleep_until_ms};

/// How often arming may end too late; each time it gets twice as long.
const TRIES: u32 = 4;

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
    let mut lead = Duration::from_millis(1_500) + Duration::from_micros(20) * args.timers;
    for _ in 0..TRIES {
        let (rig, due_ms, armed_us) = armed(args, lead).await?;
        if armed_us < due_ms * 1_000 {
            return fired(args, rig, due_ms).await;
        }
        lead *= 2;
    }
    let what = format!("arming {} timers takes longer than {lead:?} here: try fewer", args.timers);
    Err(Failure::new(Exit::CheckFailed, what))
}

/// Arms all of them on a new rig; when they are due, and when arming ended.
async fn armed(args: &Burst, lead: Duration) -> Result<(Rig, u64, u64), Failure> {
    let rig = Rig::open().await?;
    let payload = Raw::new(vec![b'x'; args.payload_bytes as usize]);
    let due_ms = now_us() / 1_000 + u64::try_from(lead.as_millis()).unwrap_or(u64::MAX);
    let timer = |n| rig.queue.timer(format!("burst-{n}")).at(When::UnixMs(due_ms)).payload(&payload);
    arm(&rig.queue, (0..args.timers).map(timer)).await?;
    Ok((rig, due_ms, now_us()))
}

/// Waits for all, from just before they are due.
async fn fired(args: &Burst, mut rig: Rig, due_ms: u64) -> Result<Figures, Failure> {
    let n = u64::from(args.timers);
    sleep_until_ms(due_ms - 20).await;
    let (before, asked) = (rig.cpu().await?, Asked::so_far(&rig.stage).await?);
    let deadline = Duration::from_secs(60) + Duration::from_micros(500) * args.timers;
    let done_us = rig.await_done(n, deadline).await?;
    let (redis_us, our_us) = rig.cpu().await?.each(before, n);
    let Asked { scripts, reads } = Asked::so_far(&rig.stage).await?.since(asked);
    let left = rig.stage.store.length(&rig.stage.partition.stream()).await?;
    if left > 0 {
        return Err(Failure::new(Exit::CheckFailed, format!("{left} entries are left in the stream")));
    }
    let per_s = per_s(n, done_us.saturating_sub(due_ms * 1_000));
    Ok(Figures { per_s, redis_us, our_us, scripts, reads })
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
