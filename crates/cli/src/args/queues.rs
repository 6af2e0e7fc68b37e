//! Commands about queues and groups: `queues`, `groups`, `pause`, `resume`.

use clap::{Args, Subcommand};
use overdue_protocol::partition::MAX_PARTITIONS;
use overdue_protocol::{GroupName, QueueName};

/// `overdue queues ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Queues {
    /// List the queues: partitions, armed, overdue, retries, dead letters, paused.
    List,
    /// Create a queue. `schedule` does so by itself, with the default number of partitions.
    Create(Create),
}

/// Create a queue.
#[derive(Debug, Args)]
#[command(after_help = "\
A queue keeps its number of partitions for ever. One is right unless Redis is a
Cluster; there each partition can live on another node. A consumer holds one
blocked connection for each partition. A queue that is there with the same
number is no error; with another number: exit code 2.")]
pub(crate) struct Create {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Into how many hash slots it is shared, 1 to 1024. [default: 1; on Cluster 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PARTITIONS)))]
    pub(crate) partitions: Option<u32>,
}

/// `overdue groups ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Groups {
    /// List the groups: consumers, undelivered, pending, retries waiting.
    List(ListGroups),
    /// Delete a group with all it has not handled.
    Drop(DropGroup),
}

/// List groups.
#[derive(Debug, Args)]
pub(crate) struct ListGroups {
    /// Only of this queue. Not set = of every queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: Option<QueueName>,
}

/// Delete a group.
#[derive(Debug, Args)]
#[command(after_help = "\
Its retries go with it, and its part of the books. Stop its consumers first: a
running one creates it again and gets what is still in the stream.
Exit code 1 when there is no such group.")]
pub(crate) struct DropGroup {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The group.
    #[arg(value_name = "GROUP")]
    pub(crate) group: GroupName,
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
