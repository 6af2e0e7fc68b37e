//! The course of events.

use std::time::Duration;

use overdue::{Client, Raw, When};
use overdue_protocol::tally;
use overdue_sandbox::Options;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::score::{Event, Score};
use super::verdict::Verdict;
use super::{audience, plain};
use crate::args::bench::Demo;
use crate::exit::{Exit, Failure};
use crate::output::text::count;
use crate::stage::program::{self, Program};
use crate::stage::{Stage, arm, blocking, now_us};

/// The queue.
const QUEUE: &str = "demo";
/// One timer in so many is keyed.
const KEYED: u32 = 10;
/// How long a timeout of a dead consumer is kept from the others, seconds.
const LEASE_S: u64 = 2;
/// How long a handler pretends to work: long enough that a killed consumer has some in hand.
const WORK: &str = "20ms";
/// How long after arming began the first timer is due; a millisecond more for each 50 timers.
const LEAD_MS: u64 = 2_000;
/// How long after the last due time all must be handled. What is not, counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long consumers may take to end, the audit to run, and the last words to arrive.
const END_DEADLINE: Duration = Duration::from_secs(20);
/// Background keys set by one script: Redis serves others in between.
const KEYS_PAGE: u32 = 10_000;

/// Everything that takes part.
struct Play {
    stage: Stage,
    relays: Vec<Program>,
    consumers: Vec<Program>,
    score: Score,
    events: mpsc::Receiver<Event>,
    stop: CancellationToken,
    progress: Progress,
    first_ms: u64,
    span: Duration,
}

/// Plays it, and judges.
pub(super) async fn run(args: &Demo, mut progress: Progress) -> Result<Verdict, Failure> {
    let stage = Stage::open(Options { notify: "Ex".into(), ..Options::default() }, QUEUE).await?;
    let (redis, keys) = (stage.redis.clone(), args.background_keys);
    blocking(move || load(&mut redis.connection()?, keys)).await?;
    progress.happened(&format!("a private Redis with {} keys that end far away", count(keys.into())));

    let mut relays = vec![stage.relay("relay 1")?, stage.relay("relay 2")?];
    let lease = format!("{LEASE_S}s");
    let consumer = |name| stage.consumer(name, &["--journal", "--work", WORK, "--lease", &lease]);
    let mut consumers = vec![consumer("consumer 1")?, consumer("consumer 2")?, consumer("consumer 3")?];
    stage.await_ready(&mut relays.iter_mut().chain(&mut consumers).collect::<Vec<_>>()).await?;
    progress.happened("two relays and three consumers run; beside them a plain keyspace listener");

    let (tx, events) = mpsc::channel(10_000);
    let stop = CancellationToken::new();
    audience::follow(&stage, tx.clone(), stop.clone()).await?;
    for (number, consumer) in consumers.iter_mut().enumerate() {
        audience::read_journal(number, consumer, tx.clone());
    }
    let listener = plain::listen(stage.redis.addr(), tx);
    let stopped = stop.clone();
    tokio::spawn(async move { stopped.run_until_cancelled(listener).await });

    let (score, first_ms) = arm_all(args, &stage).await?;
    progress.happened(&format!("{} timers armed, due over {} s", count(score.armed()), args.seconds));
    let span = Duration::from_secs(args.seconds.into());
    let mut play = Play { stage, relays, consumers, score, events, stop, progress, first_ms, span };
    play.watch().await?;
    play.judge().await
}

/// Sets keys that end in a day or later.
fn load(redis: &mut overdue_sandbox::Connection, keys: u32) -> Result<(), overdue_sandbox::Error> {
    const SCRIPT: &str =
        "for i = ARGV[1], ARGV[2] do redis.call('SET', 'session:' .. i, 'x', 'EX', 86400 + i % 86400) end";
    for first in (1..=keys).step_by(KEYS_PAGE as usize) {
        let last = keys.min(first + KEYS_PAGE - 1);
        redis.call(&["EVAL", SCRIPT, "0", &first.to_string(), &last.to_string()])?;
    }
    Ok(())
}

/// Arms the timers; the score that knows them, and when the first is due.
async fn arm_all(args: &Demo, stage: &Stage) -> Result<(Score, u64), Failure> {
    let client = Client::connect(stage.redis.url()).await?;
    let queue = client.queue::<Raw>(QUEUE).await?;
    let first_ms = now_us() / 1_000 + LEAD_MS + u64::from(args.timers) / 50;
    let due_ms = |n: u32| first_ms + u64::from(n) * u64::from(args.seconds) * 1_000 / u64::from(args.timers);
    let id = |n: u32| format!("order-{n}");
    let timer = |n: u32| {
        let timer = queue.timer(id(n)).at(When::UnixMs(due_ms(n))).payload(&Raw::text(format!("order {n}")));
        if n.is_multiple_of(KEYED) { timer.keyed() } else { timer }
    };
    let armed = arm(&queue, (0..args.timers).map(timer)).await?;
    let keys = (0..args.timers).filter(|n| n.is_multiple_of(KEYED)).map(|n| {
        let id = overdue::TimerId::new(id(n)).expect("a short id");
        (stage.partition.timer_key(&id), due_ms(n))
    });
    client.close().await;
    Ok((Score::new(armed.into_iter().map(|scheduled| scheduled.generation), keys), first_ms))
}

impl Play {
    /// Counts until everything is handled, and does harm on the way.
    async fn watch(&mut self) -> Result<(), Failure> {
        let start = Instant::now() + Duration::from_micros((self.first_ms * 1_000).saturating_sub(now_us()));
        let (cut, kill) = (sleep_until(start + self.span / 3), sleep_until(start + self.span / 2));
        let end = start + self.span;
        tokio::pin!(cut, kill);
        let (mut was_cut, mut was_killed) = (false, false);
        let mut tick = interval(Duration::from_millis(100));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.score.note(event),
                    None => return Err(Failure::new(Exit::CheckFailed, "nobody watches any more")),
                },
                () = &mut cut, if !was_cut => {
                    was_cut = true;
                    self.cut().await?;
                }
                () = &mut kill, if !was_killed => {
                    was_killed = true;
                    self.kill();
                }
                _ = tick.tick() => {
                    self.say_how_far();
                    let over = Instant::now() > end && self.score.handled() == self.score.armed();
                    if Instant::now() > end + PATIENCE || (over && self.is_settled().await?) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Cuts every connection that listens to notifications: the relays' and the plain listener's.
    async fn cut(&mut self) -> Result<(), Failure> {
        let redis = self.stage.redis.clone();
        let cut = blocking(move || redis.command(&["CLIENT", "KILL", "TYPE", "pubsub"])).await?;
        self.progress.happened(&format!("{} notification connections cut", cut.text()));
        Ok(())
    }

    fn kill(&mut self) {
        for program in [&mut self.relays[0], &mut self.consumers[0]] {
            program.kill9();
            self.progress.happened(&format!("{} killed (SIGKILL)", program.name()));
        }
    }

    fn say_how_far(&mut self) {
        let (heard, due) = self.score.heard(now_us());
        let (handled, armed) = (count(self.score.handled()), count(self.score.armed()));
        let plain = format!("the plain listener heard of {heard} of {due} keys that ended");
        self.progress.is_at(&format!("{handled} of {armed} handled; {plain}"));
    }

    /// Whether nothing is pending any more, what was done but not acknowledged included.
    async fn is_settled(&self) -> Result<bool, Failure> {
        let (store, partition) = (&self.stage.store, &self.stage.partition);
        Ok(store.length(&partition.stream()).await? == 0 && store.retry_depth(partition).await? == 0)
    }

    /// Ends the consumers, takes in what they said last, and asks the books.
    async fn judge(mut self) -> Result<Verdict, Failure> {
        for consumer in &mut self.consumers {
            consumer.end(END_DEADLINE).await;
        }
        self.stop.cancel();
        let end = Instant::now() + END_DEADLINE;
        while let Ok(Some(event)) = timeout_at(end, self.events.recv()).await {
            self.score.note(event);
        }
        let entries = self.entries().await?;
        let unbalanced = self.audit().await?;
        self.progress.end();
        Ok(Verdict { counts: self.score.counts(entries), unbalanced, lease_s: LEASE_S })
    }

    /// How many entries were put in by firing, as Redis counts (from 7.0 on): all ever added, less those that are
    /// addressed to one group, which are retries.
    async fn entries(&self) -> Result<Option<u64>, Failure> {
        let (redis, stream) = (self.stage.redis.clone(), self.stage.partition.stream());
        let info = blocking(move || redis.command(&[&b"XINFO"[..], b"STREAM", &stream])).await?;
        let added = info.items().chunks(2).find(|pair| pair[0].text() == "entries-added");
        let added = added.and_then(|pair| pair[1].int()).and_then(|added| u64::try_from(added).ok());
        let tally = self.stage.store.tally(&self.stage.partition).await?;
        let addressed = tally.get(tally::ADDRESSED).and_then(|n| n.parse().ok()).unwrap_or(0);
        Ok(added.map(|added| added.saturating_sub(addressed)))
    }

    /// Runs `overdue audit`: what it says when the books don't balance.
    async fn audit(&self) -> Result<Option<String>, Failure> {
        let failed =
            |error: std::io::Error| Failure::new(Exit::Usage, format!("cannot run the audit: {error}"));
        let mut command = tokio::process::Command::from(program::command(&self.stage.redis).map_err(failed)?);
        command.args(["audit", QUEUE]).kill_on_drop(true);
        let Ok(output) = timeout(END_DEADLINE, command.output()).await else {
            return Ok(Some(format!("the audit has not ended after {END_DEADLINE:?}")));
        };
        let output = output.map_err(failed)?;
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said).lines().map(str::trim).collect::<Vec<_>>().join(" | ");
        Ok((!output.status.success()).then_some(said))
    }
}
