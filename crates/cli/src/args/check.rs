//! Commands that look and change nothing: `doctor` (but for a few keys that live for a moment), `top`, `audit`,
//! `config`.

use clap::{Args, Subcommand};
use overdue_protocol::QueueName;

/// Find what is wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Worst first, each finding with what to do about it; exit code 4 when something
must be done. Among those that are as bad, what keeps timeouts from being
handled comes first: no relay alive, a pause, an endpoint that is down, groups
without a consumer, overdue timers, relays that hear no notifications, new dead
letters. Then what makes Redis unsafe for this: rights, version, role, replicas,
persistence, eviction, memory for the timers that are armed, a TTL on a key of
ours, clocks, notification flags.

When a relay watches keys, or the settings of this call have [[watch]]: also at
channels and keys that are refused, output buffers of the server, rules that
differ between relays, watched keys that nobody settles, and how late this
server's own `expired` is now. For that it writes 20 keys that live for 50 ms,
and takes up to 3 s. Give it the --config of the relays.")]
pub(crate) struct Doctor {}

/// Watch queues, groups and processes at work.
#[derive(Debug, Args)]
#[command(after_help = "\
Once a second, what needs a person on top: red for what keeps timeouts from
being handled, yellow for what is worth a look. It ends on q, Esc or Ctrl-C.
`overdue doctor` says what to do about what is red.

  NEXT       when the earliest timer or retry is due, or how long ago it was
  OVERDUE    timers that are due and have not fired
  STREAM     timeouts that have fired and that some group has not finished
  LATENESS   how long after its due the newest timeout that was seen in the
             stream fired; what is handled at once is not seen there
  LIVE       consumers that were seen in the last 15 s
  BACKLOG    what waits for a group: unread, in hand, or for its next attempt
  OLDEST     how long ago the oldest fired that the group has not finished
  FIRED/S, DONE/S   since the reading before

Where stdout is no terminal it is as with --once. With --json the frame is one
object. When a reading takes more than half a second, there are fewer of them.

Examples:
  overdue top
  overdue top --once --json | jq '.queues[] | select(.overdue > 0)'")]
pub(crate) struct Top {
    /// Print one frame as plain text, and end. It reads twice, a second apart: rates need two.
    #[arg(long)]
    pub(crate) once: bool,
}

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
