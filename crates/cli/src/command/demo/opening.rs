//! What is there before the first timer is due: keys that end far away, and the timers.

use overdue::{Client, Raw, TimerId, When};
use overdue_sandbox::{Connection, Error};

use super::play::QUEUE;
use super::score::Score;
use crate::args::bench::Demo;
use crate::exit::Failure;
use crate::stage::{Stage, arm, now_us};

/// One timer in so many is keyed.
const KEYED: u32 = 10;
/// How long after arming began the first timer is due; a millisecond more for each 50 timers.
const LEAD_MS: u64 = 2_000;
/// Background keys set by one script: Redis serves others in between.
const KEYS_PAGE: u32 = 10_000;

/// Sets keys that end in a day or later.
pub(super) fn load(redis: &mut Connection, keys: u32) -> Result<(), Error> {
    const SCRIPT: &str =
        "for i = ARGV[1], ARGV[2] do redis.call('SET', 'session:' .. i, 'x', 'EX', 86400 + i % 86400) end";
    for first in (1..=keys).step_by(KEYS_PAGE as usize) {
        let last = keys.min(first + KEYS_PAGE - 1);
        redis.call(&["EVAL", SCRIPT, "0", &first.to_string(), &last.to_string()])?;
    }
    Ok(())
}

/// Arms the timers; the score that knows them, and when the first is due.
pub(super) async fn arm_all(args: &Demo, stage: &Stage) -> Result<(Score, u64), Failure> {
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
        let id = TimerId::new(id(n)).expect("a short id");
        (stage.partition.timer_key(&id), due_ms(n))
    });
    client.close().await;
    Ok((Score::new(armed.into_iter().map(|scheduled| scheduled.generation), keys), first_ms))
}
