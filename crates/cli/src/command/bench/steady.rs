//! `overdue bench steady`: how late timeouts are handled, at a steady rate.

use std::time::Duration;

use overdue::{Raw, When};
use serde::Serialize;

use super::rig::{Rig, per_s};
use crate::args::bench::Steady;
use crate::exit::{Exit, Failure};
use crate::output::{Output, text};
use crate::stage::{arm, ms, now_us, sleep_until_ms};

/// How long before its due time each timer is armed.
const AHEAD_MS: u64 = 2_000;
/// Timers are armed in this rhythm: a steady load too, in calls so small that nothing waits long behind one.
const RHYTHM_MS: u64 = 10;
/// Arming that is so late is no steady load any more.
const BEHIND_MS: u64 = AHEAD_MS / 2;
/// When the ballast would be due.
const FAR: Duration = Duration::from_secs(86_400);
/// How long after the last due time the last acknowledgement may come.
const DEADLINE: Duration = Duration::from_secs(60);

/// The last line with `--json`.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    rate: u32,
    armed: u32,
    seconds: u32,
    handled: u64,
    /// From the first due time to the last acknowledgement.
    per_s: u64,
    /// How late arming was at worst.
    arming_behind_ms: u64,
    /// From the due time that was asked for to the start of the handler, on one clock.
    lateness_ms: Lateness,
    /// Processor time of Redis for each timeout, from arming to acknowledged.
    redis_us: f64,
    /// The same of relay and consumer.
    our_us: Option<f64>,
}

#[derive(Serialize)]
struct Lateness {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// Runs the command.
pub(super) async fn run(args: &Steady, output: &mut Output) -> Result<(), Failure> {
    let mut rig = Rig::open().await?;
    let payload = Raw::new(vec![b'x'; args.payload_bytes as usize]);
    let ballast =
        |n| rig.queue.timer(format!("ballast-{n}")).at(FAR + Duration::from_millis(n)).payload(&payload);
    arm(&rig.queue, (0..u64::from(args.armed)).map(ballast)).await?;
    let first_ms = now_us() / 1_000 + AHEAD_MS + RHYTHM_MS;
    let before = rig.cpu().await?;
    let arming_behind_ms = arm_steadily(args, &rig, &payload, first_ms).await?;
    let total = u64::from(args.rate) * u64::from(args.seconds);
    let done_us = rig.await_done(total, DEADLINE).await?;
    let per_s = per_s(total, done_us.saturating_sub(first_ms * 1_000));
    let (redis_us, our_us) = rig.cpu().await?.each(before, total);
    let report = rig.report().await?;
    if report.handled < total || report.early > 0 {
        let what = format!("{} of {total} were handled, {} of them early", report.handled, report.early);
        return Err(Failure::new(Exit::CheckFailed, what));
    }
    let lateness_ms = Lateness {
        p50: ms(report.p50_us),
        p99: ms(report.p99_us),
        p999: ms(report.p999_us),
        max: ms(report.max_us),
    };
    let Steady { rate, armed, seconds, .. } = *args;
    let (bench, handled) = ("steady", report.handled);
    let measured = Measured {
        bench,
        rate,
        armed,
        seconds,
        handled,
        per_s,
        arming_behind_ms,
        lateness_ms,
        redis_us,
        our_us,
    };
    write(&measured, output)
}

/// Arms what is due in each beat of the rhythm, a fixed time ahead; how late it was at worst, milliseconds.
async fn arm_steadily(args: &Steady, rig: &Rig, payload: &Raw, first_ms: u64) -> Result<u64, Failure> {
    let (rate, total) = (u64::from(args.rate), u64::from(args.rate) * u64::from(args.seconds));
    let timer = |n| {
        let due = When::UnixMs(first_ms + n * 1_000 / rate);
        rig.queue.timer(format!("steady-{n}")).at(due).payload(payload)
    };
    let (mut next, mut behind) = (0, 0);
    for beat in 1.. {
        let until = (beat * RHYTHM_MS * rate / 1_000).min(total);
        arm(&rig.queue, (next..until).map(timer)).await?;
        next = until;
        let end_ms = first_ms - AHEAD_MS + beat * RHYTHM_MS;
        behind = behind.max((now_us() / 1_000).saturating_sub(end_ms));
        if behind > BEHIND_MS {
            let what = format!("{rate} a second can't be armed here: {behind} ms behind; try a lower --rate");
            return Err(Failure::new(Exit::CheckFailed, what));
        }
        if next == total {
            break;
        }
        sleep_until_ms(end_ms).await;
    }
    Ok(behind)
}

fn write(measured: &Measured, output: &mut Output) -> Result<(), Failure> {
    let Lateness { p50, p99, p999, max } = measured.lateness_ms;
    let (handled, rate) = (text::count(measured.handled), text::count(measured.rate.into()));
    let armed = text::count(measured.armed.into());
    output.say(format_args!("{handled} timeouts, {rate} a second, with {armed} more timers armed"))?;
    output.say("lateness, from due to handler start:")?;
    output.say(format_args!("  p50 {p50:.1} ms   p99 {p99:.1} ms   p99.9 {p999:.1} ms   max {max:.1} ms"))?;
    let ours = measured.our_us.map_or_else(|| "not known".to_owned(), |us| format!("{us:.1} µs"));
    output.say(format_args!("arming was at most {} ms behind", measured.arming_behind_ms))?;
    output.say("processor time for each, from armed to acknowledged:")?;
    output.say(format_args!("  Redis {:.1} µs   relay + consumer {ours}", measured.redis_us))?;
    output.object(measured)
}
