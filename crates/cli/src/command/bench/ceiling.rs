//! `overdue bench ceiling`: the most this Redis can do of a burst's work, and how much of it a burst reaches.

mod raw;

use overdue::{Raw, When};
use overdue_protocol::tally::GroupCounter;
use overdue_sandbox::Options;
use serde::Serialize;

use super::at_once::Figures;
use super::burst;
use super::rig::{Asked, each, hundredth, per_s};
use crate::args::bench::{Burst, Ceiling};
use crate::exit::{Exit, Failure};
use crate::output::{Output, text};
use crate::stage::progress::Progress;
use crate::stage::{Stage, arm, blocking, now_us};

/// The last line with `--json`; medians of all runs.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    timers: u32,
    runs: u32,
    /// Timeouts a second that Redis can do, and what it uses for each.
    per_s: u64,
    redis_us: f64,
    /// What Redis was asked in the last run.
    scripts: u64,
    reads: u64,
    /// The burst in the same run.
    burst: Figures,
    percent_of_ceiling: f64,
}

/// Runs the command.
pub(super) async fn run(args: &Ceiling, output: &mut Output) -> Result<(), Failure> {
    let mut progress = Progress::new(output.is_json());
    let burst = Burst { timers: args.timers, payload_bytes: args.payload_bytes };
    let (mut ceilings, mut bursts) = (vec![], vec![]);
    for run in 1..=args.runs {
        let ceiling = measure(args).await?;
        progress.happened(&format!("run {run}: ceiling {} a second", text::count(ceiling.per_s)));
        let burst = burst::measure(&burst).await?;
        progress.happened(&format!("run {run}: burst   {} a second", text::count(burst.per_s)));
        ceilings.push(ceiling);
        bursts.push(burst);
    }
    progress.end();
    let (ceiling, burst) = (median(ceilings), median(bursts));
    let percent_of_ceiling = hundredth(100.0 * burst.per_s as f64 / ceiling.per_s as f64);
    let Figures { per_s, redis_us, scripts, reads, .. } = ceiling;
    let (timers, runs) = (args.timers, args.runs);
    let measured = Measured {
        bench: "ceiling",
        timers,
        runs,
        per_s,
        redis_us,
        scripts,
        reads,
        burst,
        percent_of_ceiling,
    };
    write(&measured, args, output)
}

/// One run on a private Redis of its own.
async fn measure(args: &Ceiling) -> Result<Figures, Failure> {
    let stage = Stage::open(Options::default(), "bench").await?;
    let n = u64::from(args.timers);
    let queue = stage.queue().await?;
    let payload = Raw::new(vec![b'x'; args.payload_bytes as usize]);
    // Due already: they wait for the first sweep.
    let due = When::UnixMs(now_us() / 1_000);
    let timer = |n| queue.timer(format!("burst-{n}")).at(due).payload(&payload);
    arm(&queue, (0..args.timers).map(timer)).await?;
    let (redis, partition, group) = (stage.redis.clone(), stage.partition.clone(), stage.group.clone());
    let crew = blocking(move || raw::Crew::join(&redis, partition, &group)).await?;
    let (before, asked) = (stage.store.server().await?.cpu_us, Asked::so_far(&stage).await?);
    let start_us = now_us();
    blocking(move || crew.run(n)).await?;
    let done_us = now_us();
    let redis_us = each(stage.store.server().await?.cpu_us, before, n);
    let Asked { scripts, reads } = Asked::so_far(&stage).await?.since(asked);
    check(&stage, n).await?;
    Ok(Figures { per_s: per_s(n, done_us - start_us), redis_us, our_us: None, scripts, reads })
}

/// Nothing is left, and the books say that all is done.
async fn check(stage: &Stage, n: u64) -> Result<(), Failure> {
    let field = GroupCounter::Done.field(&stage.group);
    let (redis, tally) = (stage.redis.clone(), stage.partition.tally());
    let done = blocking(move || Ok(redis.command(&[&b"HGET"[..], &tally, field.as_bytes()])?.int())).await?;
    let armed = stage.store.depth(&stage.partition).await?;
    let left = stage.store.length(&stage.partition.stream()).await?;
    if (done, armed, left) == (i64::try_from(n).ok(), 0, 0) {
        return Ok(());
    }
    let done = done.unwrap_or(0);
    let what =
        format!("{done} of {n} are done, {armed} are still armed, {left} entries are left in the stream");
    Err(Failure::new(Exit::CheckFailed, what))
}

/// The one in the middle by what it does a second.
fn median(mut all: Vec<Figures>) -> Figures {
    all.sort_by_key(|figures| figures.per_s);
    all[all.len() / 2]
}

fn write(measured: &Measured, args: &Ceiling, output: &mut Output) -> Result<(), Failure> {
    let (timers, bytes, burst) = (text::count(args.timers.into()), args.payload_bytes, &measured.burst);
    output.say(format_args!(
        "{timers} timeouts of {bytes} bytes; medians of {} runs, in turns",
        measured.runs
    ))?;
    let line = |name, per_s, redis_us: f64| {
        format!(
            "{name:<10} {:>10} a second   Redis {redis_us:.2} µs of processor time for each",
            text::count(per_s)
        )
    };
    output.say(line("ceiling", measured.per_s, measured.redis_us))?;
    output.say(line("burst", burst.per_s, burst.redis_us))?;
    output.say(format_args!("a burst reaches {:.1} % of the ceiling", measured.percent_of_ceiling))?;
    output.object(measured)
}
