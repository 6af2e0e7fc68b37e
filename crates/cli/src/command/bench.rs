//! `overdue bench`: measures on a private Redis, with a relay and a consumer as processes of their own.

mod at_once;
mod burst;
mod ceiling;
mod idle;
mod lag;
mod memory;
mod rig;
mod scale;
mod schedule;
mod scripts;
mod steady;

use crate::args::bench::Bench;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::Settings;
use crate::stage::consumer;

/// Runs the command.
pub(crate) async fn run(args: &Bench, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    match args {
        Bench::Burst(args) => burst::run(args, output).await,
        Bench::Steady(args) => steady::run(args, output).await,
        Bench::Lag(args) => lag::run(args, output).await,
        Bench::Scripts(args) => scripts::run(args, output).await,
        Bench::Ceiling(args) => ceiling::run(args, output).await,
        Bench::Schedule(args) => schedule::run(args, output).await,
        Bench::Idle(args) => idle::run(args, output).await,
        Bench::Memory(args) => memory::run(args, output).await,
        Bench::Scale(args) => scale::run(args, output).await,
        Bench::Consumer(args) => consumer::run(args, settings, output).await,
    }
}
