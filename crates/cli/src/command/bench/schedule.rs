//! `overdue bench schedule`: how many timers a client arms a second, many with one call and one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use overdue::{Queue, Raw};
use overdue_sandbox::Options;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::rig::{each, per_s};
use crate::args::bench::ScheduleBench;
use crate::exit::{Exit, Failure};
use crate::output::{Output, text};
use crate::stage::progress::Progress;
use crate::stage::{Stage, arm, cpu};

/// When the timers would be due.
const FAR: Duration = Duration::from_secs(86_400);

/// The last line with `--json`.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    timers: u32,
    callers: u32,
    /// Timers a second; processor time of Redis and of this process for each.
    many_per_s: u64,
    many_redis_us: f64,
    many_our_us: Option<f64>,
    single_per_s: u64,
    single_redis_us: f64,
    single_our_us: Option<f64>,
}

/// One way of arming, from its first call on.
struct Watch {
    start: Instant,
    redis: u64,
    ours: Option<u64>,
}

impl Watch {
    async fn start(stage: &Stage) -> Result<Self, Failure> {
        let redis = stage.store.server().await?.cpu_us;
        Ok(Self { redis, ours: cpu::of_process(std::process::id()), start: Instant::now() })
    }

    /// Timers a second; processor time for each of Redis, and of this process.
    async fn stop(self, stage: &Stage, n: u32) -> Result<(u64, f64, Option<f64>), Failure> {
        let took = self.start.elapsed();
        let (n, ours) = (u64::from(n), cpu::of_process(std::process::id()));
        let redis = each(stage.store.server().await?.cpu_us, self.redis, n);
        let ours = ours.zip(self.ours).map(|(now, then)| each(now, then, n));
        Ok((per_s(n, took.as_micros() as u64), redis, ours))
    }
}

/// Runs the command.
pub(super) async fn run(args: &ScheduleBench, output: &mut Output) -> Result<(), Failure> {
    let mut progress = Progress::new(output.is_json());
    let stage = Stage::open(Options::default(), "bench").await?;
    let queue = stage.queue().await?;
    let payload = Raw::new(vec![b'x'; args.payload_bytes as usize]);
    let (timers, callers) = (args.timers, args.callers);

    progress.happened("many with one call");
    let watch = Watch::start(&stage).await?;
    let many = (0..timers).map(|n| queue.timer(format!("many-{n}")).at(FAR).payload(&payload));
    arm(&queue, many).await?;
    let (many_per_s, many_redis_us, many_our_us) = watch.stop(&stage, timers).await?;

    progress.happened("one by one");
    let watch = Watch::start(&stage).await?;
    one_by_one(&queue, &payload, timers, callers).await?;
    let (single_per_s, single_redis_us, single_our_us) = watch.stop(&stage, timers).await?;
    progress.end();

    let armed = stage.store.depth(&stage.partition).await?;
    if armed != 2 * u64::from(timers) {
        return Err(Failure::new(Exit::CheckFailed, format!("{armed} timers are armed, not {}", 2 * timers)));
    }
    let measured = Measured {
        bench: "schedule",
        timers,
        callers,
        many_per_s,
        many_redis_us,
        many_our_us,
        single_per_s,
        single_redis_us,
        single_our_us,
    };
    write(&measured, args, output)
}

/// Callers that each wait for an answer before they arm the next.
async fn one_by_one(queue: &Queue<Raw>, payload: &Raw, timers: u32, callers: u32) -> Result<(), Failure> {
    let next = Arc::new(AtomicU32::new(0));
    let mut at_work = JoinSet::new();
    for _ in 0..callers {
        let (queue, payload, next) = (queue.clone(), payload.clone(), next.clone());
        at_work.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= timers {
                    return Ok(());
                }
                queue.schedule(format!("single-{n}"), FAR, &payload).await?;
            }
        });
    }
    while let Some(done) = at_work.join_next().await {
        done.expect("it is not aborted, and a panic in it goes on").map_err(|error: overdue::Error| error)?;
    }
    Ok(())
}

fn write(measured: &Measured, args: &ScheduleBench, output: &mut Output) -> Result<(), Failure> {
    let (timers, bytes) = (text::count(args.timers.into()), args.payload_bytes);
    output.say(format_args!("{timers} timers of {bytes} bytes armed in each way, due in a day"))?;
    let line = |name: &str, per_s, redis_us: f64, our_us: Option<f64>| {
        let ours = our_us.map_or_else(|| "not known".to_owned(), |us| format!("{us:.2} µs"));
        let per_s = text::count(per_s);
        format!("{name:<16} {per_s:>10} a second   for each: Redis {redis_us:.2} µs, this process {ours}")
    };
    let Measured { many_per_s, many_redis_us, many_our_us, .. } = *measured;
    output.say(line("many", many_per_s, many_redis_us, many_our_us))?;
    let name = format!("from {} callers", args.callers);
    output.say(line(&name, measured.single_per_s, measured.single_redis_us, measured.single_our_us))?;
    output.object(measured)
}
