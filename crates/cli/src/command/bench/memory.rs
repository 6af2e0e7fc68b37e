//! `overdue bench memory`: what one timer or timeout takes in Redis' memory.

use std::time::Duration;

use bytes::Bytes;
use overdue::{Queue, Raw, When};
use overdue_protocol::call::{From, Join, PAGE, Sweep};
use overdue_sandbox::Options;
use serde::Serialize;

use super::rig::hundredth;
use crate::args::bench::Memory;
use crate::exit::{Exit, Failure};
use crate::output::{Output, text};
use crate::stage::progress::Progress;
use crate::stage::{Stage, arm, blocking, now_us};

/// When timers that are to stay armed would be due.
const FAR: Duration = Duration::from_secs(86_400);
/// Entries in one read.
const READ: &str = "1000";

/// The last line with `--json`; bytes for each.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    timers: u32,
    payload_bytes: u32,
    armed_bytes: f64,
    keyed_bytes: f64,
    fired_bytes: f64,
    pending_bytes: f64,
}

/// A private Redis, what it used when it was empty, and how many are put into it.
struct Scale {
    stage: Stage,
    queue: Queue<Raw>,
    empty: u64,
    timers: u32,
}

/// Runs the command.
pub(super) async fn run(args: &Memory, output: &mut Output) -> Result<(), Failure> {
    let mut progress = Progress::new(output.is_json());
    progress.happened("armed");
    let armed_bytes = Scale::open(args).await?.armed(args, false).await?;
    progress.happened("keyed");
    let keyed_bytes = Scale::open(args).await?.armed(args, true).await?;
    progress.happened("fired");
    let scale = Scale::open(args).await?;
    let fired_bytes = scale.fired(args).await?;
    progress.happened("pending");
    let pending_bytes = scale.pending().await?;
    progress.end();
    let Memory { timers, payload_bytes } = *args;
    let bench = "memory";
    let measured =
        Measured { bench, timers, payload_bytes, armed_bytes, keyed_bytes, fired_bytes, pending_bytes };
    write(&measured, output)
}

impl Scale {
    async fn open(args: &Memory) -> Result<Self, Failure> {
        let stage = Stage::open(Options::default(), "bench").await?;
        let (partition, group) = (stage.partition.clone(), stage.group.clone());
        stage.store.run(&Join { partition, group, from: From::Oldest }).await?;
        let queue = stage.queue().await?;
        // So that scripts and connections are there already.
        queue.schedule("first", FAR, &Raw::default()).await?;
        queue.cancel("first").await?;
        let empty = stage.store.server().await?.used_memory;
        Ok(Self { stage, queue, empty, timers: args.timers })
    }

    /// What was added for each since it was empty.
    async fn weigh(&self) -> Result<f64, Failure> {
        let used = self.stage.store.server().await?.used_memory;
        Ok(hundredth(used.saturating_sub(self.empty) as f64 / f64::from(self.timers)))
    }

    /// Arms all, due in a day.
    async fn armed(&self, args: &Memory, keyed: bool) -> Result<f64, Failure> {
        self.arm(args, When::from(FAR), keyed).await?;
        self.weigh().await
    }

    /// Arms all as due, and fires them.
    async fn fired(&self, args: &Memory) -> Result<f64, Failure> {
        self.arm(args, When::UnixMs(now_us() / 1_000), false).await?;
        let (partition, sweeper) = (self.stage.partition.clone(), Bytes::from_static(b"bench"));
        let sweep = Sweep { partition, limit: PAGE, grace_ms: 0, sweeper };
        while self.stage.store.run(&sweep).await?.more {}
        let fired = self.stage.store.length(&self.stage.partition.stream()).await?;
        self.check(fired, "fired")?;
        self.weigh().await
    }

    /// Reads all that fired.
    async fn pending(&self) -> Result<f64, Failure> {
        let (redis, stream) = (self.stage.redis.clone(), self.stage.partition.stream());
        let group = self.stage.group.clone();
        let read = blocking(move || {
            let group = group.as_str().as_bytes();
            let read = [&b"XREADGROUP"[..], b"GROUP", group, b"bench", b"COUNT", READ.as_bytes(), b"STREAMS"];
            let read = [&read[..], &[&stream, b">"]].concat();
            let (mut redis, mut n) = (redis.connection()?, 0);
            while let Some(stream) = redis.call(&read)?.items().first() {
                n += stream.items().get(1).map_or(0, |entries| entries.items().len() as u64);
            }
            Ok(n)
        });
        self.check(read.await?, "read")?;
        self.weigh().await
    }

    async fn arm(&self, args: &Memory, when: When, keyed: bool) -> Result<(), Failure> {
        let payload = Raw::new(vec![b'x'; args.payload_bytes as usize]);
        let timer = |n| {
            let timer = self.queue.timer(format!("order-{n}")).at(when).payload(&payload);
            if keyed { timer.keyed() } else { timer }
        };
        arm(&self.queue, (0..args.timers).map(timer)).await.map(drop)
    }

    fn check(&self, n: u64, what: &str) -> Result<(), Failure> {
        let all = n == u64::from(self.timers);
        let what = || Failure::new(Exit::CheckFailed, format!("{n} of {} were {what}", self.timers));
        if all { Ok(()) } else { Err(what()) }
    }
}

fn write(measured: &Measured, output: &mut Output) -> Result<(), Failure> {
    let (timers, bytes) = (text::count(measured.timers.into()), measured.payload_bytes);
    output
        .say(format_args!("bytes of Redis' memory for each of {timers}, with a payload of {bytes} bytes"))?;
    for (name, bytes) in [
        ("armed", measured.armed_bytes),
        ("keyed", measured.keyed_bytes),
        ("fired", measured.fired_bytes),
        ("pending", measured.pending_bytes),
    ] {
        output.say(format_args!("{name:<8} {bytes:>8.1}"))?;
    }
    output.object(measured)
}
