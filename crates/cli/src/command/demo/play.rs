//! The course of events.

use std::time::Duration;

use overdue_sandbox::Options;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::score::{Event, Score};
use super::verdict::Verdict;
use super::{audience, books, opening, plain};
use crate::args::bench::Demo;
use crate::exit::{Exit, Failure};
use crate::output::text::count;
use crate::stage::program::Program;
use crate::stage::{Stage, blocking, now_us};

/// The queue.
pub(super) const QUEUE: &str = "demo";
/// How long a timeout of a dead consumer is kept from the others, seconds.
const LEASE_S: u64 = 2;
/// How long a handler pretends to work: long enough that a killed consumer has some in hand.
const WORK: &str = "20ms";
/// How many handlers a consumer runs at once.
const CONCURRENCY: &str = "512";
/// How long after the last due time nothing may be handled. What is missing then counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long consumers may take to end, and the last words to arrive.
const END_DEADLINE: Duration = Duration::from_secs(20);

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
    blocking(move || opening::load(&mut redis.connection()?, keys)).await?;
    progress.happened(&format!("a private Redis with {} keys that end far away", count(keys.into())));

    let mut relays = vec![stage.relay("relay 1")?, stage.relay("relay 2")?];
    let lease = format!("{LEASE_S}s");
    let args_of_all = ["--journal", "--work", WORK, "--lease", &lease, "--concurrency", CONCURRENCY];
    let consumer = |name| stage.consumer(name, &args_of_all);
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

    let (score, first_ms) = opening::arm_all(args, &stage).await?;
    progress.happened(&format!("{} timers armed, due over {} s", count(score.armed()), args.seconds));
    let span = Duration::from_secs(args.seconds.into());
    let mut play = Play { stage, relays, consumers, score, events, stop, progress, first_ms, span };
    play.watch().await?;
    play.judge().await
}

impl Play {
    /// Counts until everything is handled, and does harm on the way.
    async fn watch(&mut self) -> Result<(), Failure> {
        let start = Instant::now() + Duration::from_micros((self.first_ms * 1_000).saturating_sub(now_us()));
        let (cut, kill) = (sleep_until(start + self.span / 3), sleep_until(start + self.span / 2));
        let end = start + self.span;
        let mut progress = (0, end);
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
                    self.check(was_killed)?;
                    let (now, handled) = (Instant::now(), self.score.handled());
                    if now < end || handled > progress.0 {
                        progress = (handled, now.max(end));
                    }
                    let over = now > end && handled == self.score.armed();
                    if now > progress.1 + PATIENCE || (over && self.is_settled().await?) {
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

    /// Nobody but us ends a program here.
    fn check(&mut self, was_killed: bool) -> Result<(), Failure> {
        let killed = usize::from(was_killed);
        let mut left = self.relays.iter_mut().skip(killed).chain(self.consumers.iter_mut().skip(killed));
        left.try_for_each(Program::check)
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
        let last_us = self.first_ms * 1_000 + u64::try_from(self.span.as_micros()).unwrap_or(0);
        let after_us = now_us().saturating_sub(last_us);
        for consumer in &mut self.consumers {
            consumer.end(END_DEADLINE).await;
        }
        self.stop.cancel();
        let end = Instant::now() + END_DEADLINE;
        while let Ok(Some(event)) = timeout_at(end, self.events.recv()).await {
            self.score.note(event);
        }
        let entries = books::entries(&self.stage).await?;
        let unbalanced = books::audit(&self.stage).await?;
        self.progress.end();
        Ok(Verdict { counts: self.score.counts(entries), unbalanced, lease_s: LEASE_S, after_us })
    }
}
