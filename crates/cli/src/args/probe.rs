//! What health checks and packagers run: `probe`, and the hidden `extras`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const PROBE: &str = "\
Examples:
  overdue probe relay              exit code 0 when /readyz of it says 200
  overdue probe consume --live     the same of /livez
  OVERDUE_RELAY_LISTEN=0.0.0.0:9633 overdue probe relay

Asks where the settings say that the process of this machine listens; 0.0.0.0
is asked on loopback. Exit code 4 when it is not ready, or does not answer
within 5 s; its answer says why.";

/// Ask a relay or a consumer of this machine whether it is ready.
#[derive(Debug, Args)]
#[command(after_help = PROBE)]
pub(crate) struct Probe {
    /// What to ask.
    #[arg(value_name = "PROCESS")]
    pub(crate) process: Process,
    /// Ask whether it is alive, not whether it is ready.
    #[arg(long)]
    pub(crate) live: bool,
}

/// What runs for long, and listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Process {
    /// At relay.listen.
    Relay,
    /// At consume.listen.
    Consume,
}

/// Write the completions of shells and the man pages into a folder.
#[derive(Debug, Args)]
pub(crate) struct Extras {
    /// The folder; it gets `completions` and `man`.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
