//! What is there before the first of all is due: timers, and plain keys on both servers.

use std::sync::Arc;

use overdue::{Client, Raw, When};
use overdue_sandbox::{Error, Redis};

use super::ledger::Ledger;
use super::play::QUEUE;
use super::score::Score;
use crate::args::bench::Demo;
use crate::exit::Failure;
use crate::stage::{Stage, arm, blocking, now_us};

/// What the names of the plain keys begin with.
pub(super) const PREFIX: &str = "demo-key:";
/// How long after arming began the first is due, and a millisecond more for so many timers or keys.
const LEAD_MS: u64 = 2_000;
const TIMERS_A_MS: u64 = 50;
const KEYS_A_MS: u64 = 5;

/// Arms the timers, and writes the keys both where they are watched and where not; the score that knows them, and when
/// the first is due.
pub(super) async fn arm_all(args: &Demo, stage: &Stage, alone: &Arc<Redis>) -> Result<(Score, u64), Failure> {
    let (timers, keys) = (u64::from(args.timers), u64::from(args.keys));
    let first_ms = now_us() / 1_000 + LEAD_MS + timers / TIMERS_A_MS + keys / KEYS_A_MS;
    let spread = |n: u64, of: u64| first_ms + n * u64::from(args.seconds) * 1_000 / of;

    let client = Client::connect(stage.redis.url()).await?;
    let queue = client.queue::<Raw>(QUEUE).await?;
    let id = |n| format!("order-{n}");
    let timer = |n| {
        let when = When::UnixMs(spread(n, timers));
        queue.timer(id(n)).at(when).payload(&Raw::text(format!("order {n}")))
    };
    let armed = arm(&queue, (0..timers).map(timer)).await?;
    client.close().await;
    let timers = armed.iter().zip(0..).map(|(armed, n)| (id(n), spread(n, timers), Some(armed.generation)));

    let keys: Vec<(String, u64)> = (0..keys).map(|n| (format!("{PREFIX}{n}"), spread(n, keys))).collect();
    for redis in [&stage.redis, alone] {
        let (redis, keys) = (redis.clone(), keys.clone());
        blocking(move || write(&redis, &keys)).await?;
    }
    let keys = keys.into_iter().map(|(key, due_ms)| (key, due_ms, None));
    Ok((Score::new(Ledger::new(timers), Ledger::new(keys)), first_ms))
}

/// Writes keys as any program does that has never heard of Overdue: SET ... PX, one after the other.
///
/// Redis counts from when it gets the command: a key never ends before the time that was meant for it.
fn write(redis: &Redis, keys: &[(String, u64)]) -> Result<(), Error> {
    let mut redis = redis.connection()?;
    for (key, due_ms) in keys {
        let ttl_ms = due_ms.saturating_sub(now_us() / 1_000).max(1);
        redis.call(&["SET", key, "x", "PX", &ttl_ms.to_string()])?;
    }
    Ok(())
}
