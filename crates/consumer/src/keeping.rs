//! What a consumer looks at now and then: its queue, the clock, itself among the members, the dead of its group.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use overdue_protocol::QueueInfo;
use overdue_protocol::call::From;
use overdue_protocol::member::{HEARTBEAT_MS, Member};
use overdue_store::{Error, ErrorKind};
use overdue_telemetry::Metric;
use overdue_telemetry::Progress;
use overdue_telemetry::label::{Loop, Role};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::crew::{Crew, host_name};
use crate::pause::jittered;
use crate::run::Floor;
use crate::station::Station;

/// How often the queue is looked at: whether it is paused, and how many partitions it has.
const LOOK: Duration = Duration::from_secs(1);
/// How often consumers that left nothing behind are looked for.
const RETIRE: Duration = Duration::from_secs(60);
/// How long such a consumer must have been idle, at least.
const IDLE: Duration = Duration::from_secs(3600);
/// How long the heartbeat may fail until this process is not ready.
const READY: Duration = Duration::from_secs(30);

pub(crate) struct Keeping {
    progress: Progress,
    member: Member,
    beat_at: Instant,
    retire_at: Instant,
    reconnects: watch::Receiver<u64>,
    /// How many connections were made, as far as it was counted.
    made: u64,
}

impl Keeping {
    pub(crate) fn new(crew: &Crew) -> Self {
        let member = Member {
            role: "consumer".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            host: host_name(),
            pid: std::process::id(),
            started: crew.clock.now_ms(),
            seen: 0,
            queues: vec![format!("{}/{}", crew.queue, crew.group)],
            rules: String::new(),
            trouble: String::new(),
        };
        let reconnects = crew.store.reconnects();
        let made = (*reconnects.borrow()).max(1);
        Self {
            made,
            progress: crew.options.health.register(Loop::Member, &crew.name, READY),
            member,
            beat_at: Instant::now(),
            retire_at: Instant::now() + jittered(RETIRE),
            reconnects,
        }
    }

    /// Goes on until this version must not touch the queue any more.
    pub(crate) async fn run(mut self, floor: &mut Floor) -> Error {
        let mut tick = interval(LOOK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if let Err(error) = self.turn(floor).await {
                if error.kind() == ErrorKind::NewerFormat {
                    return error;
                }
                let silent = matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::OutcomeUnknown);
                floor.crew.options.health.redis_answered(!silent);
                self.progress.fail(error.kind().as_str());
                floor.crew.fault("keeping", &error);
            }
        }
    }

    async fn turn(&mut self, floor: &mut Floor) -> Result<(), Error> {
        let crew = floor.crew.clone();
        let held: usize = floor.stations.iter().map(|station| station.hands.len()).sum();
        crew.counts.in_flight.set(held as f64);
        self.show_reach(&crew);
        let made = *self.reconnects.borrow();
        if made > self.made {
            Metric::Reconnects.count(made - self.made, &[Role::Command.as_str()]);
            self.made = made;
        }
        let info = look(floor).await?;
        crew.options.health.redis_answered(true);
        crew.answered();
        crew.history.store(info.history, Ordering::Relaxed);
        if crew.paused.swap(info.paused, Ordering::Relaxed) != info.paused {
            tracing::info!(queue = %crew.queue, "the queue is {}", if info.paused { "paused" } else { "resumed" });
            for station in floor.stations.iter().filter(|_| info.paused) {
                station.unblock().await;
            }
        }
        floor.grow(info.partitions, From::Oldest).await?;
        if self.beat_at <= Instant::now() {
            self.beat_at = Instant::now() + jittered(Duration::from_millis(HEARTBEAT_MS));
            crew.clock.set(&crew.store).await?;
            self.member.seen = crew.clock.now_ms();
            // Being on the list is no work of ours: a full Redis refuses it while acknowledging goes on.
            if let Err(error) = crew.store.beat(&crew.name, &self.member).await {
                crew.warn("beat", error);
            }
        }
        if self.retire_at <= Instant::now() {
            self.retire_at = Instant::now() + jittered(RETIRE);
            retire_idle(&crew, &floor.stations).await?;
        }
        self.progress.succeed();
        Ok(())
    }

    /// Whether what the handlers work with is reached: a gauge, a line of the members, and of `/readyz`.
    fn show_reach(&mut self, crew: &Crew) {
        let (gauge, trouble) = (crew.reaches.gauge(), crew.reaches.trouble());
        crew.counts.endpoint_up.set(gauge);
        let (health, what) = (&crew.options.health, format!("handlers of {}/{}", crew.queue, crew.group));
        let (down, halted) =
            ((gauge == 0.0).then(|| trouble.clone()), (gauge < 0.0).then(|| trouble.clone()));
        health.set_degraded(&what, down);
        health.set_broken(&what, halted);
        if self.member.trouble.is_empty() != trouble.is_empty() {
            // Not only at the next beat.
            self.beat_at = Instant::now();
        }
        self.member.trouble = trouble;
    }
}

/// The queue as it stands. One that is gone (a flush) is written back, so that nobody makes it with another number.
async fn look(floor: &Floor) -> Result<QueueInfo, Error> {
    let crew = &floor.crew;
    if let Some(info) = crew.store.queue(&crew.queue).await? {
        return Ok(info);
    }
    let partitions = u32::try_from(floor.stations.len()).unwrap_or(1).max(1);
    let (info, created) = crew.store.create_queue(&crew.queue, partitions).await?;
    if created {
        crew.warn("queue", format_args!("queue {} was gone and is written back", crew.queue));
    }
    Ok(info)
}

/// Consumers that ended without a word and left nothing behind would pile up in the group.
async fn retire_idle(crew: &Crew, stations: &[Arc<Station>]) -> Result<(), Error> {
    let idle = IDLE.max(crew.options.lease * 10);
    for station in stations {
        let retired =
            crew.store.retire_idle(&station.standing.partition, &crew.group, idle, &crew.name).await?;
        for consumer in retired {
            tracing::info!(queue = %crew.queue, consumer, "retired a consumer that was idle for long");
        }
    }
    Ok(())
}
