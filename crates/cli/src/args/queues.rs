//! Commands about queues and groups: `queues`, `groups`, `pause`, `resume`.

use clap::{Args, Subcommand};
use overdue_protocol::partition::MAX_PARTITIONS;
use overdue_protocol::{GroupName, QueueName};

/// `overdue queues ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Queues {
    /// List the queues: partitions, armed, overdue, retries, dead letters, history, paused.
    List,
    /// Create a queue. `schedule` does so by itself, with the default number of partitions.
    Create(Create),
    /// Change what a queue keeps.
    Set(Set),
}

/// The longest history: some 100 bytes for each timeout, in each partition.
const MAX_HISTORY: i64 = 1_000_000;

/// Create a queue.
#[derive(Debug, Args)]
#[command(after_help = "\
A queue keeps its number of partitions for ever. One is right unless Redis is a
Cluster; there each partition can live on another node. A consumer holds one
blocked connection for each partition. A queue that is there with the same
number is no error; with another number or history: exit code 2.")]
pub(crate) struct Create {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Into how many hash slots it is shared, 1 to 1024. [default: 1; on Cluster 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PARTITIONS)))]
    pub(crate) partitions: Option<u32>,
    /// How many finished timeouts each partition remembers, for `overdue show`. [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_HISTORY))]
    pub(crate) history: Option<u32>,
}

/// Change a queue.
#[derive(Debug, Args)]
#[command(after_help = "\
With a history `overdue show` finds what is done: when, by whom, at which
attempt. Each partition remembers its last N finished timeouts of all groups,
without payload, in some 100 bytes each; N = 0 deletes what is remembered.
Consumers follow within 10 s. Plain groups, which only XACK, leave no history.
Exit code 1 when there is no such queue.

Example: overdue queues set orders --history 1000")]
pub(crate) struct Set {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// How many finished timeouts each partition remembers, 0 to 1000000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MAX_HISTORY))]
    pub(crate) history: u32,
}

/// `overdue groups ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Groups {
    /// List the groups: who reads, what waits for them, and for how long.
    List(ListGroups),
    /// Delete a group with all it has not handled.
    Drop(DropGroup),
}

const LIST: &str = "\
KIND         overdue: its consumers are Overdue's; plain: they only XACK, and a
             relay looks after them ([[group]]); foreign: nobody of ours joined
             it, and it has no books; gone: it has books, but was removed
LIVE         consumers that were seen in the last 15 s
BACKLOG      all that it has before it, by its books
UNDELIVERED  fired, and not given to it yet; ? = Redis does not know
PENDING      given to a consumer, and not acknowledged
RETRIES      waiting for their time
OLDEST       how long ago the oldest entry fired that it has not finished";

/// List groups.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(crate) struct ListGroups {
    /// Only of this queue. Not set = of every queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: Option<QueueName>,
}

/// Delete a group.
#[derive(Debug, Args)]
#[command(after_help = "\
What it was not given, what its consumers hold and its retries go with it, and
its part of the books; its dead letters stay. It says how many of each;
--dry-run says so and does nothing. Other groups lose nothing.

Stop its consumers first, and for a plain group take it out of the relays'
settings ([[group]]): whoever runs creates it again and gets what is still in
the stream. Exit code 1 when there is no such group.")]
pub(crate) struct DropGroup {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The group.
    #[arg(value_name = "GROUP")]
    pub(crate) group: GroupName,
    /// Say what would go, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Pause a queue.
#[derive(Debug, Args)]
#[command(after_help = "\
Within a second consumers read and claim nothing new; what they have in hand
they finish. Timers fire on, into the stream. Readers that are not Overdue's
own don't know of it.")]
pub(crate) struct Pause {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
}

/// Resume a queue.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
}
