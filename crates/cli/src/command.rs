//! The commands, one file each. To add one: its arguments in `args`, a file here, a line below.

mod audit;
mod bench;
mod cancel;
pub(crate) mod config;
mod consume;
mod dead;
mod demo;
mod discard;
mod doctor;
mod extras;
mod groups;
mod list;
mod pages;
mod pause;
mod place;
mod probe;
mod queues;
mod relay;
mod retries;
mod schedule;
mod show;
mod tail;
mod top;

use crate::args::Command;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::Settings;

/// Runs a command. Its answer goes to `output`, which the caller flushes.
///
/// # Errors
/// The command did not do what it should; the failure holds the exit code and what to say on stderr.
pub(crate) async fn run(command: &Command, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    match command {
        Command::Relay(args) => relay::run(args, settings, output).await,
        Command::Consume(args) => consume::run(args, settings, output).await,
        Command::Schedule(args) => schedule::run(args, settings, output).await,
        Command::Cancel(args) => cancel::run(args, settings, output).await,
        Command::Show(args) => show::run(args, settings, output).await,
        Command::List(args) => list::run(args, settings, output).await,
        Command::Tail(args) => tail::run(args, settings, output).await,
        Command::Discard(args) => discard::run(args, settings, output).await,
        Command::Queues(args) => queues::run(args, settings, output).await,
        Command::Groups(args) => groups::run(args, settings, output).await,
        Command::Pause(args) => pause::run(&args.queue, true, settings, output).await,
        Command::Resume(args) => pause::run(&args.queue, false, settings, output).await,
        Command::Dead(args) => dead::run(args, settings, output).await,
        Command::Doctor(args) => doctor::run(args, settings, output).await,
        Command::Top(args) => top::run(args, settings, output).await,
        Command::Audit(args) => audit::run(args, settings, output).await,
        Command::Demo(args) => demo::run(args, settings, output).await,
        Command::Bench(args) => bench::run(args, settings, output).await,
        Command::Probe(args) => probe::run(args, settings, output).await,
        Command::Extras(args) => extras::run(args, output),
        Command::Config(_) => unreachable!("config runs before the settings are known to be valid"),
    }
}
