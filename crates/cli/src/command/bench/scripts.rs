//! `overdue bench scripts`: what each hot script costs Redis, by Redis' own clock.

mod lab;
mod orders;
mod round;
mod row;
mod texts;

use std::sync::Arc;

use overdue_sandbox::{Options, Redis};
use serde::Serialize;

use crate::args::bench::Scripts;
use crate::exit::Failure;
use crate::output::Output;
use crate::stage::progress::Progress;
use crate::stage::{cannot, start};
use lab::Lab;
use orders::Orders;
use round::{Round, prepare};
use row::{Row, Samples, table};

/// Timers that stay armed.
const ARMED: usize = 10_240;
/// In calls that name fewer, a round takes ten times as long, and so has a quarter of the items.
const SMALL: u32 = 16;

/// The last line with `--json`.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    rounds: u32,
    rows: Vec<Row>,
}

/// Runs the command.
pub(super) async fn run(args: &Scripts, output: &mut Output) -> Result<(), Failure> {
    let redis = start(Options::default()).await?;
    let progress = Progress::new(output.is_json());
    let (of, rounds) = (args.clone(), args.rounds);
    let work = move || measure(&redis, &of, progress);
    let rows = tokio::task::spawn_blocking(work).await.expect("it is not aborted, and a panic goes on")?;
    output.say("what a script takes for each item, by Redis' own clock (EVALSHA in INFO commandstats)")?;
    table(&rows).into_iter().try_for_each(|line| output.say(line))?;
    output.object(&Measured { bench: "scripts", rounds, rows })
}

/// All rounds; blocks.
fn measure(redis: &Arc<Redis>, args: &Scripts, mut progress: Progress) -> Result<Vec<Row>, Failure> {
    let mut connection = redis.connection().map_err(cannot)?;
    let folders = [None].into_iter().chain(args.lua.as_deref().map(Some));
    let sets = folders.map(|folder| texts::load(&mut connection, folder)).collect::<Result<Vec<_>, _>>()?;
    let orders = Orders::new(args.payload_bytes as usize);
    prepare(&mut Lab { redis: &mut connection, digests: &sets[0] }, &orders, ARMED)?;
    let mut samples = Samples::default();
    // The first round warms caches, and is not counted.
    for number in 0..=args.rounds {
        progress.is_at(&format!("round {number} of {}", args.rounds));
        for &batch in &args.batch {
            let items = if batch < SMALL { args.items / 4 } else { args.items } as usize;
            let round = Round { orders: &orders, items, batch: batch as usize };
            let mut run = |digests| round.run(&mut Lab { redis: &mut connection, digests });
            let taken = sets.iter().map(&mut run).collect::<Result<Vec<_>, _>>()?;
            if number > 0 {
                samples.note(batch, items, &taken);
            }
        }
    }
    progress.end();
    Ok(samples.rows())
}
