//! `overdue bench idle`: what relay and consumer use while nothing happens.

use std::time::Duration;

use overdue::Raw;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::rig::{Rig, hundredth};
use crate::args::bench::Idle;
use crate::exit::Failure;
use crate::output::{Output, text};
use crate::stage::arm;
use crate::stage::progress::Progress;

/// When the armed timers would be due.
const FAR: Duration = Duration::from_secs(86_400);
/// What arming has stirred up is over by then.
const SETTLE: Duration = Duration::from_secs(3);

/// The last line with `--json`; percent of one core.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    armed: u32,
    seconds: u32,
    /// Of the relay.
    cpu_percent: Option<f64>,
    consumer_cpu_percent: Option<f64>,
    redis_cpu_percent: f64,
}

/// Runs the command.
pub(super) async fn run(args: &Idle, output: &mut Output) -> Result<(), Failure> {
    let mut progress = Progress::new(output.is_json());
    let rig = Rig::open().await?;
    let payload = Raw::new(vec![b'x'; args.payload_bytes as usize]);
    progress.happened("timers are armed");
    let timer = |n| rig.queue.timer(format!("idle-{n}")).at(FAR).payload(&payload);
    arm(&rig.queue, (0..args.armed).map(timer)).await?;
    sleep(SETTLE).await;
    progress.happened("nothing happens");
    let (start, before) = (Instant::now(), rig.cpu().await?);
    sleep(Duration::from_secs(args.seconds.into())).await;
    let (after, took) = (rig.cpu().await?, start.elapsed());
    progress.end();
    let percent =
        |now: u64, then: u64| hundredth(100.0 * now.saturating_sub(then) as f64 / took.as_micros() as f64);
    let known = |now: Option<u64>, then: Option<u64>| now.zip(then).map(|(now, then)| percent(now, then));
    let Idle { armed, seconds, .. } = *args;
    let measured = Measured {
        bench: "idle",
        armed,
        seconds,
        cpu_percent: known(after.relay, before.relay),
        consumer_cpu_percent: known(after.consumers, before.consumers),
        redis_cpu_percent: percent(after.redis, before.redis),
    };
    write(&measured, output)
}

fn write(measured: &Measured, output: &mut Output) -> Result<(), Failure> {
    let of = |percent: Option<f64>| percent.map_or_else(|| "not known".to_owned(), |n| format!("{n:.2} %"));
    let (armed, seconds) = (text::count(measured.armed.into()), measured.seconds);
    output.say(format_args!("{seconds} s of nothing, with {armed} timers armed; in percent of one core"))?;
    output.say(format_args!("relay      {}", of(measured.cpu_percent)))?;
    output.say(format_args!("consumer   {}", of(measured.consumer_cpu_percent)))?;
    output.say(format_args!("Redis      {}", of(Some(measured.redis_cpu_percent))))?;
    output.object(measured)
}
