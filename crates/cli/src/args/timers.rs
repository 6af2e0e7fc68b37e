//! Commands about single timers: `cancel`, `show`, `list`, `tail`, `discard`.

use clap::Args;
use overdue_protocol::{Due, GroupName, QueueName, TimerId};

use super::consume::From;
use super::{value, when};

const CANCEL: &str = "\
Examples:
  overdue cancel orders order-1001
  overdue list orders --json | jq -r .id | xargs -d '\\n' overdue cancel orders

Exit code 1 when one of the ids was not armed; the others are disarmed all the
same.";

/// Disarm timers.
#[derive(Debug, Args)]
#[command(after_help = CANCEL)]
pub(crate) struct Cancel {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The ids of the timers.
    #[arg(value_name = "ID", required = true, value_parser = value::timer_id())]
    pub(crate) ids: Vec<TimerId>,
}

const SHOW: &str = "\
Looks everywhere, and shows each place that holds something of the id:
  armed      a timer waits for its deadline
  watched    a key with this name is watched, and when it will end
  unread     fired; the group was not given it yet
  held       a consumer of the group works on it, or died over it
  finished   the group has finished it; the entry is there for other groups
  waiting    a retry waits for its time
  dead       a dead letter: overdue dead show, replay or purge
  done       finished, while the queue keeps a history: overdue queues set

Example: overdue show orders order-1001

Exit code 1 when no place holds anything of it.";

/// Show all that is known of an id.
#[derive(Debug, Args)]
#[command(after_help = SHOW)]
pub(crate) struct Show {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The id of the timer, or the name of the watched key.
    #[arg(value_name = "ID", value_parser = value::id_or_key())]
    pub(crate) id: TimerId,
    /// Stop after this many places; 0 = no limit.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,
}

/// List armed timers.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  overdue list orders --due-before 2026-01-01T00:00:00Z --limit 10")]
pub(crate) struct List {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Only what is due before this: 2026-01-01T09:30:00Z, 2026-01-01T10:30:00+01:00 or unix milliseconds.
    #[arg(long, value_name = "TIME", value_parser = when::parse_at)]
    pub(crate) due_before: Option<Due>,
    /// Stop after this many; 0 = no limit.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,
}

/// Follow the stream of a queue.
#[derive(Debug, Args)]
#[command(after_help = "Reads with XREAD: it joins no group, and consumers miss nothing.")]
pub(crate) struct Tail {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Begin with what is in the stream, or with what fires from now on.
    #[arg(long, value_name = "WHERE", default_value = "new")]
    pub(crate) from: From,
    /// Stop after this many; 0 = go on until Ctrl-C.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) limit: u64,
}

/// Throw away what has fired.
#[derive(Debug, Args)]
#[command(after_help = "\
Cancel never touches what has fired; this does. It takes out the waiting retries
of the id and its timeouts that no handler has finished: nobody handles them,
and the books show them as discarded. A handler that is at work on one goes on,
but its outcome counts for nothing. A timeout that other groups need too can be
discarded for a group only after that group has read it.
Exit code 1 when there is nothing to discard.")]
pub(crate) struct Discard {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The id of the timer, or the name of the watched key.
    #[arg(value_name = "ID", value_parser = value::id_or_key())]
    pub(crate) id: TimerId,
    /// Only for this group. Not set = for every group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<GroupName>,
}
