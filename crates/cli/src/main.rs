//! The program `overdue`: wiring only. What is typed stands in [`args`], what is set in [`settings`], and
//! each command in a file of its own below [`command`].

#![allow(dead_code, reason = "the commands that read the rest of the settings are being built")]

mod args;
mod command;
mod exit;
mod handler;
mod interrupt;
mod output;
mod service;
mod settings;
mod stage;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use overdue_telemetry::logs;

use crate::args::{Cli, Command};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;
use crate::settings::layers::Layers;

/// How long tasks that were left behind may take to end.
const GOODBYE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let mut stderr = std::io::stderr().lock();
            for line in failure.lines() {
                // Nobody is left to tell when stderr is closed; the exit code still says it.
                let _ = writeln!(stderr, "overdue: {line}");
            }
            ExitCode::from(failure.exit() as u8)
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let mut output = Output::new(cli.everywhere.json);
    let mut flags = cli.everywhere.flags.given;
    flags.extend(cli.command.given());
    let layers = Layers::collect(cli.everywhere.config, flags, std::env::vars_os());
    if let Command::Config(config) = &cli.command {
        command::config::run(config, layers, &mut output)?;
        return output.flush();
    }
    let settings = Settings::resolve(layers).map_err(Failure::settings)?;
    start_logs(&settings, cli.command.logs())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::new(Exit::Usage, format!("cannot start threads: {e}")))?;
    let done = runtime.block_on(drive(&cli.command, &settings, &mut output));
    runtime.shutdown_timeout(GOODBYE);
    // What was found before the failure is worth reading too.
    let flushed = output.flush();
    done.and(flushed)
}

async fn drive(command: &Command, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    if command.is_service() {
        return command::run(command, settings, output).await;
    }
    tokio::select! {
        done = command::run(command, settings, output) => done,
        failure = interrupt::interrupted() => Err(failure),
    }
}

fn start_logs(settings: &Settings, default: &str) -> Result<(), Failure> {
    let filter = settings.log.filter.as_deref().unwrap_or(default);
    logs::init(settings.log.format, filter).map_err(|e| Failure::new(Exit::Usage, e.to_string()))
}
