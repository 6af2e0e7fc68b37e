//! `overdue dead ...`

use clap::{Args, Subcommand};
use overdue_protocol::{GroupName, QueueName};

use super::value::Letter;

/// `overdue dead ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    /// List dead letters, oldest first: id, group, attempts, reason.
    List(ListDead),
    /// Show one dead letter whole, with its payload.
    Show(ShowDead),
    /// Hand dead letters to their group again, as attempt 1 with the same idempotency key.
    Replay(ChooseDead),
    /// Delete dead letters for good.
    Purge(ChooseDead),
}

/// List dead letters.
#[derive(Debug, Args)]
pub(crate) struct ListDead {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Only those of this group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<GroupName>,
    /// Stop after this many; 0 = no limit.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,
}

/// Show one dead letter.
#[derive(Debug, Args)]
pub(crate) struct ShowDead {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The dead letter, as `dead list` prints it: 0/1767225600000-0.
    #[arg(value_name = "LETTER")]
    pub(crate) letter: Letter,
}

/// Choose dead letters: by name, or all of a queue or group.
#[derive(Debug, Args)]
#[command(after_help = "Exit code 1 when one of the letters is not there; the others are done.")]
pub(crate) struct ChooseDead {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The dead letters, as `dead list` prints them: 0/1767225600000-0.
    #[arg(value_name = "LETTER", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) letters: Vec<Letter>,
    /// All that are there when the command starts.
    #[arg(long)]
    pub(crate) all: bool,
    /// With --all: only those of this group.
    #[arg(long, value_name = "GROUP", requires = "all")]
    pub(crate) group: Option<GroupName>,
}
