//! `overdue tail`: follows the stream of a queue and acknowledges nothing.

mod follower;
mod line;

use overdue_store::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::follower::Follower;
use self::line::Line;
use super::place::Place;
use crate::args::consume::From;
use crate::args::timers::Tail;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;

/// Pages that wait for stdout; while it is slow nothing more is read.
const PAGES_AHEAD: usize = 4;

/// Runs the command: until Ctrl-C, an error that does not pass, or `--limit`.
pub(crate) async fn run(args: &Tail, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = Place::open(settings, &args.queue).await?;
    let (pages, mut read) = mpsc::channel(PAGES_AHEAD);
    let mut followers = JoinSet::new();
    for partition in place.partitions() {
        let follower = Follower::open(&place, &partition, args.from == From::Oldest).await?;
        followers.spawn(follower.run(pages.clone()));
    }
    drop(pages);
    let mut left = if args.limit == 0 { u64::MAX } else { args.limit };
    let mut table = output.table();
    while left > 0 {
        tokio::select! {
            page = read.recv() => {
                let Some(page): Option<Vec<Line>> = page else { return ended(&mut followers).await };
                let most = usize::try_from(left).unwrap_or(usize::MAX).min(page.len());
                left -= most as u64;
                table.page(&page[..most])?;
                table.flush()?;
            }
            failure = ended(&mut followers) => return failure,
        }
    }
    Ok(())
}

/// Waits for the first follower that ends: followers end only when they fail.
async fn ended(followers: &mut JoinSet<Result<(), Error>>) -> Result<(), Failure> {
    match followers.join_next().await {
        Some(Ok(ended)) => Ok(ended?),
        Some(Err(panic)) => Err(Failure::new(Exit::Usage, format!("a reader of the stream broke: {panic}"))),
        None => Ok(()),
    }
}
