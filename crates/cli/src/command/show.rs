//! `overdue show`: looks for an id in every place that can hold something of it.

mod lines;
mod search;
mod sight;

use self::search::Search;
use super::place::Place;
use crate::args::timers::Show;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::output::text;
use crate::settings::Settings;

/// How often everything is looked at when nothing is found: a timeout may have moved from a place that was not looked at
/// yet to one that was.
const TRIES: u32 = 2;

/// Runs the command. Exit code 1 when no place holds anything of the id.
pub(crate) async fn run(args: &Show, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = Place::open(settings, &args.queue).await?;
    let mut search = Search::new(args, &place, output);
    for _ in 0..TRIES {
        search.look().await?;
        if search.found() {
            return search.finish();
        }
    }
    let (queue, id) = (&place.queue, text::printable(args.id.as_bytes()));
    let done = match place.info.history {
        0 => format!("or is done (`overdue queues set {queue} --history 1000` would remember it)"),
        n => format!("or was done before the last {n} of its partition"),
    };
    let problem = format!(
        "nothing is known of {id} in {queue}: it was never armed, was cancelled or discarded, its dead letter was purged, {done}"
    );
    Err(Failure::new(Exit::NotThere, problem))
}
