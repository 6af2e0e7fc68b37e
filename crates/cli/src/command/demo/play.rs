//! The course of events.

use std::sync::Arc;
use std::time::Duration;

use overdue_sandbox::{Options, Redis};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::score::{Event, Listener, Score};
use super::verdict::Verdict;
use super::{audience, books, opening};
use crate::args::bench::Demo;
use crate::exit::{Exit, Failure};
use crate::output::text::count;
use crate::stage::program::Program;
use crate::stage::progress::Progress;
use crate::stage::{Stage, background, blocking, listener, now_us};

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
    /// The Redis that nobody watches.
    alone: Arc<Redis>,
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
    let options = || Options { notify: "Ex".into(), ..Options::default() };
    let stage = Stage::open(options(), QUEUE).await?;
    let alone = Arc::new(blocking(move || Redis::start(options())).await?);
    for redis in [&stage.redis, &alone] {
        let (redis, keys) = (redis.clone(), args.background_keys);
        blocking(move || background::load(&mut redis.connection()?, keys)).await?;
    }
    let keys = count(args.background_keys.into());
    progress.happened(&format!("two private Redis, each with {keys} keys that end far away"));

    let (mut relays, mut consumers) = cast(&stage)?;
    stage.await_ready(&mut relays.iter_mut().chain(&mut consumers).collect::<Vec<_>>()).await?;
    progress.happened("two relays and three consumers run on one; on each a plain keyspace listener");

    let (tx, events) = mpsc::channel(10_000);
    let stop = CancellationToken::new();
    audience::follow(&stage, tx.clone(), stop.clone()).await?;
    for (number, consumer) in consumers.iter_mut().enumerate() {
        audience::read_journal(number, consumer, tx.clone());
    }
    for (redis, listener) in [(&stage.redis, Listener::Beside), (&alone, Listener::Alone)] {
        let told = move |key, at_us| Event::Heard { listener, key, at_us };
        let listening = listener::listen(redis.addr(), tx.clone(), told);
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(listening).await });
    }
    drop(tx);

    let (score, first_ms) = opening::arm_all(args, &stage, &alone).await?;
    let (timers, keys) = (count(score.timers().expected()), count(score.keys().expected()));
    let (what, both) = ("timers armed and", "plain keys written on both with SET ... PX, due over");
    progress.happened(&format!("{timers} {what} {keys} {both} {} s", args.seconds));
    let span = Duration::from_secs(args.seconds.into());
    let mut play = Play { stage, alone, relays, consumers, score, events, stop, progress, first_ms, span };
    play.watch().await?;
    play.judge().await
}

/// Two relays that watch the plain keys, and three consumers.
fn cast(stage: &Stage) -> Result<(Vec<Program>, Vec<Program>), Failure> {
    let watch = format!("{}*={QUEUE}", opening::PREFIX);
    let relay = |name| stage.relay(name, &["--watch", &watch]);
    let lease = format!("{LEASE_S}s");
    let args = ["--journal", "--work", WORK, "--lease", &lease, "--concurrency", CONCURRENCY];
    let consumer = |name| stage.consumer(name, &args);
    let relays = vec![relay("relay 1")?, relay("relay 2")?];
    Ok((relays, vec![consumer("consumer 1")?, consumer("consumer 2")?, consumer("consumer 3")?]))
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
                    let (timers, keys) = (self.score.timers(), self.score.keys());
                    let (now, handled) = (Instant::now(), timers.handled() + keys.handled());
                    if now < end || handled > progress.0 {
                        progress = (handled, now.max(end));
                    }
                    let over = now > end && timers.is_done() && keys.is_done();
                    if now > progress.1 + PATIENCE || (over && self.is_settled().await?) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Cuts every connection that listens to notifications: the relays' and the plain listeners'.
    async fn cut(&mut self) -> Result<(), Failure> {
        let mut cut = 0;
        for redis in [self.stage.redis.clone(), self.alone.clone()] {
            let killed = blocking(move || redis.command(&["CLIENT", "KILL", "TYPE", "pubsub"])).await?;
            cut += killed.int().unwrap_or(0);
        }
        self.progress.happened(&format!("{cut} notification connections cut"));
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
        let (timers, keys) = (self.score.timers(), self.score.keys());
        let of = |n: u64, all: u64| format!("{} of {}", count(n), count(all));
        let (timers, due) = (of(timers.handled(), timers.expected()), keys.due(now_us()) as u64);
        let keys = of(keys.handled(), keys.expected());
        let plain = of(self.score.heard_alone(), due);
        self.progress.is_at(&format!(
            "handled {timers} timers, {keys} keys; without Overdue, {plain} ended keys were heard of"
        ));
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
