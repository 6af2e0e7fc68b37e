//! `overdue demo`: shows it at work on a private Redis, with processes killed half-way.

mod audience;
mod books;
mod ledger;
mod opening;
mod play;
mod score;
mod verdict;

use crate::args::bench::Demo;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;
use crate::stage::progress::Progress;

/// Runs the command.
pub(crate) async fn run(args: &Demo, _settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let progress = Progress::new(output.is_json());
    let verdict = play::run(args, progress).await?;
    verdict.write(output)?;
    if verdict.is_good() { Ok(()) } else { Err(Failure::silent(Exit::CheckFailed)) }
}
