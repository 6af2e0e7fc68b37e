//! `overdue bench lag`: how late the end of a key is told, beside keys that end far away.

mod moment;
mod plain;
mod row;

use std::sync::Arc;
use std::time::Duration;

use overdue::{Raw, When};
use overdue_sandbox::{Options, Redis};
use serde::Serialize;

use super::rig::Rig;
use crate::args::bench::Lag;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::output::text::count;
use crate::stage::progress::Progress;
use crate::stage::{Stage, arm, background, blocking, start};
use moment::{FIRST, Moment};
use row::{Handled, Row, table};

/// How many are due at one instant.
const OF: u32 = 1_000;
/// How long after that instant the last may come.
const PATIENCE: Duration = Duration::from_secs(15);
/// Writes keys, each with the end of its TTL.
const WRITE: &str = "for i, key in ipairs(KEYS) do redis.call('SET', key, 'x', 'PXAT', ARGV[i]) end";
/// What the names of the watched keys begin with.
const PREFIX: &str = "lag-key:";

/// The last line with `--json`.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    rows: Vec<Row>,
}

/// Runs the command.
pub(super) async fn run(args: &Lag, output: &mut Output) -> Result<(), Failure> {
    let mut progress = Progress::new(output.is_json());
    let (mut rows, mut wrong) = (vec![], vec![]);
    for &keys in &args.background {
        let (row, said) = measure(keys, &mut progress).await?;
        wrong.extend(said.into_iter().map(|what| format!("beside {} keys, {what}", count(keys.into()))));
        rows.push(row);
    }
    progress.end();
    output.say(format_args!("{} due at one instant; lateness from that instant", count(OF.into())))?;
    table(&rows).into_iter().try_for_each(|line| output.say(line))?;
    output.object(&Measured { bench: "lag", rows })?;
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(Exit::CheckFailed, wrong.join("; "))) }
}

/// One row, and what should not be in it.
async fn measure(keys: u32, progress: &mut Progress) -> Result<(Row, Vec<String>), Failure> {
    let redis = start(Options::default()).await?;
    let loading = redis.clone();
    blocking(move || background::load(&mut loading.connection()?, keys)).await?;
    let mut now = |what| progress.happened(&format!("{} background keys: {what}", count(keys.into())));
    now("plain listener");
    let plain = plain::measure(&redis).await?;
    now("watched keys");
    let watched = watched(&redis).await?;
    now("timers");
    let timers = timers(&redis).await?;
    let wrong = [("watched keys", &watched), ("timers", &timers)];
    let wrong = wrong.into_iter().filter_map(|(what, handled)| handled.wrong(what)).collect();
    Ok((Row::new(keys, &plain, &watched, &timers), wrong))
}

/// Keys that a relay watches, from due to handler start.
async fn watched(redis: &Arc<Redis>) -> Result<Handled, Failure> {
    let watch = format!("{PREFIX}*=lag-keys");
    let stage = Stage::on(redis.clone(), "lag-keys").await?;
    let rig = Rig::on(stage, &["--watch", &watch], &["--due-in-id"]).await?;
    let moment = Moment::soon();
    write(redis, moment.all(PREFIX)).await?;
    handled(rig, moment).await
}

/// Timers, from due to handler start.
async fn timers(redis: &Arc<Redis>) -> Result<Handled, Failure> {
    let stage = Stage::on(redis.clone(), "lag-timers").await?;
    let rig = Rig::on(stage, &[], &["--due-in-id"]).await?;
    let moment = Moment::soon();
    let timers = moment.all("lag:").into_iter();
    let timers =
        timers.map(|(id, due_ms)| rig.queue.timer(id).at(When::UnixMs(due_ms)).payload(&Raw::default()));
    arm(&rig.queue, timers).await?;
    handled(rig, moment).await
}

/// Waits for all, or until patience ends; what the consumer says.
async fn handled(mut rig: Rig, moment: Moment) -> Result<Handled, Failure> {
    moment.still_ahead()?;
    // How many came is for the consumer to say: each came once, or it shows there.
    let _ = rig.done_within((FIRST + OF).into(), moment.wait() + PATIENCE).await?;
    Ok(Handled(rig.report().await?))
}

/// Writes keys, each with the end of its TTL.
async fn write(redis: &Arc<Redis>, keys: Vec<(String, u64)>) -> Result<(), Failure> {
    let redis = redis.clone();
    blocking(move || {
        let mut redis = redis.connection()?;
        for some in keys.chunks(100) {
            let (names, dues): (Vec<_>, Vec<_>) =
                some.iter().map(|(key, due_ms)| (key.clone(), due_ms.to_string())).unzip();
            let begin = ["EVAL", WRITE, &some.len().to_string()].map(str::to_owned);
            redis.call(&[&begin[..], &names, &dues].concat())?;
        }
        Ok(())
    })
    .await
}
