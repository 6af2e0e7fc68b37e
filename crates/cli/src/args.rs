//! What is typed on the command line. Flags that are settings are made from the settings table
//! ([`crate::settings::flags`]); all others stand here, one file for each family of commands.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod consume;
pub(crate) mod dead;
pub(crate) mod probe;
pub(crate) mod queues;
pub(crate) mod relay;
pub(crate) mod schedule;
pub(crate) mod timers;
pub(crate) mod value;
pub(crate) mod when;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::flags::{self, Flags};
use crate::settings::layers::Given;

const EXAMPLES: &str = "\
First steps:
  overdue relay &                          fires timers; run one or more
  overdue schedule orders order-1001 --in 15m --payload hello
  overdue consume --queue orders --group billing --print

At night:
  overdue doctor                           what is wrong, and what to do
  overdue top                              watch it at work
  overdue audit                            is anything lost or doubled
  overdue show orders order-1001           where is this timeout
  overdue dead list orders                 timeouts that failed too often
  overdue pause orders                     fire on, but hand nothing out

Settings: flags, then OVERDUE_... variables, then the file of --config.
`overdue config sample` lists them all; -h is short, --help is whole.

Exit codes: 0 done, 1 not there, 2 settings or usage, 3 Redis can't be reached
or refuses, 4 a check failed, 101 a fault of ours, 130 interrupted.";

/// Timers and key expirations in Redis that become work which is never lost.
#[derive(Debug, Parser)]
#[command(name = "overdue", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true, infer_subcommands = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Everywhere {
    #[command(flatten)]
    pub(crate) flags: Flags<flags::Everywhere>,
    /// The settings file (TOML)
    ///
    /// [env: OVERDUE_CONFIG]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Everywhere")]
    pub(crate) config: Option<PathBuf>,
    /// Write JSON for machines: one object a line.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
}

/// One command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fire timers when they are due, and watched keys when they end. Run one or more; any number may run.
    Relay(relay::Relay),
    /// Handle the timeouts of a queue for a group.
    Consume(consume::Consume),
    /// Arm a timer, or arm it again.
    Schedule(schedule::Schedule),
    /// Disarm timers. What has fired is not touched.
    Cancel(timers::Cancel),
    /// Show where a timeout is: armed, fired and unread, held, waiting for a retry, dead or done.
    Show(timers::Show),
    /// List armed timers by due time.
    List(timers::List),
    /// Follow the timeouts of a queue as they fire. Acknowledges nothing.
    Tail(timers::Tail),
    /// Throw away the waiting retries of one id, and its fired, unhandled timeouts.
    Discard(timers::Discard),
    /// List, create or change queues.
    #[command(subcommand)]
    Queues(queues::Queues),
    /// List or drop the groups that read a queue.
    #[command(subcommand)]
    Groups(queues::Groups),
    /// Hand out nothing more of a queue. Timers go on firing into its stream.
    Pause(queues::Pause),
    /// Hand out a paused queue again.
    Resume(queues::Resume),
    /// Look at dead letters, hand them out again, or delete them.
    #[command(subcommand)]
    Dead(dead::Dead),
    /// Find what is wrong, and say what to do about it.
    Doctor(check::Doctor),
    /// Watch queues, groups and processes at work, in the terminal.
    Top(check::Top),
    /// Prove that the books balance: nothing lost, nothing twice.
    Audit(check::Audit),
    /// Ask a relay or a consumer of this machine whether it is ready. For health checks.
    Probe(probe::Probe),
    /// Write, check or show the settings.
    #[command(subcommand)]
    Config(check::Config),
    /// See it work in under a minute, on a private Redis, with processes killed half-way.
    Demo(bench::Demo),
    /// Measure on a private Redis.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Write the completions of shells and the man pages into a folder.
    #[command(hide = true)]
    Extras(probe::Extras),
}

impl Command {
    /// The settings that were typed for this command alone.
    pub(crate) fn given(&self) -> Vec<Given> {
        match self {
            Self::Relay(relay) => relay.flags.given.clone(),
            Self::Consume(consume) => consume.flags.given.clone(),
            _ => vec![],
        }
    }

    /// What it logs when no filter is set: a view that fills the terminal has no place for lines.
    pub(crate) fn logs(&self) -> &'static str {
        match self {
            Self::Top(_) => "off",
            _ if self.is_service() => "info",
            _ => "warn",
        }
    }

    /// Whether it drains its work on Ctrl-C and SIGTERM by itself, and logs what it does.
    pub(crate) fn is_service(&self) -> bool {
        matches!(self, Self::Relay(_) | Self::Consume(_) | Self::Bench(bench::Bench::Consumer(_)))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_flag_has_help() {
        fn walk(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} of {} has no help", arg.get_id(), command.get_name());
            }
            command.get_subcommands().for_each(walk);
        }
        walk(&Cli::command());
    }

    #[test]
    fn examples_fit_80_columns() {
        fn walk(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let long: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty(), "{}: {long:#?}", command.get_name());
            command.get_subcommands().for_each(walk);
        }
        walk(&Cli::command());
    }

    #[test]
    fn settings_flags_stand_before_or_after_the_command() {
        let given = |line: &str| {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let given: Vec<_> =
                cli.everywhere.flags.given.iter().chain(&cli.command.given()).cloned().collect();
            given.into_iter().map(|g| format!("{}={}", g.entry.path, g.text)).collect::<Vec<_>>()
        };
        assert_eq!(given("overdue --redis redis://a/ doctor"), ["redis.url=redis://a/"]);
        assert_eq!(given("overdue doctor --redis redis://a/"), ["redis.url=redis://a/"]);
        assert_eq!(
            given("overdue relay --queue a --queue b --listen off --namespace x"),
            ["namespace=x", "relay.queues=a,b", "relay.listen=off"]
        );
    }
}
