//! Commands that look and change nothing: `doctor` (but for a few keys that live for a moment), `audit`, `config`.

use clap::{Args, Subcommand};
use overdue_protocol::QueueName;

/// Find what is wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Looks at reach and rights, version, role, persistence, eviction policy,
notification flags, relays alive, queues without a group, groups without a
consumer, and the oldest overdue timer. Exit code 4 when something must be done.

When a relay watches keys, or the settings of this call have [[watch]]: also at
channels and keys that are refused, output buffers of the server, rules that
differ between relays, watched keys that nobody settles, and how late this
server's own `expired` is now. For that it writes 20 keys that live for 50 ms,
and takes up to 3 s. Give it the --config of the relays.")]
pub(crate) struct Doctor {}

/// Prove that the books balance.
#[derive(Debug, Args)]
#[command(after_help = "\
Counts what was armed against what fired, was cancelled or waits, and for each
group what fired against what was handled. While timers keep moving it tries 5
times, then says `moving` and exits 0. A difference is loss or duplicates:
exit code 4.")]
pub(crate) struct Audit {
    /// Only this queue. Not set = every queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: Option<QueueName>,
}

/// `overdue config ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Write a settings file with every setting in it, commented out.
    #[command(after_help = "Example:\n  overdue config sample > overdue.toml")]
    Sample,
    /// Check flags, environment and file; say `ok`, or all that is wrong (exit code 2).
    Check,
    /// Show every setting in effect, and where it comes from. Passwords show as ***.
    Show,
}
