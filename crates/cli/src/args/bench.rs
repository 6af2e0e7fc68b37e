//! `overdue demo` and `overdue bench ...`: both start a Redis of their own and touch no other.

use std::time::Duration;

use clap::{Args, Subcommand};
use overdue_protocol::{GroupName, QueueName};

/// See it work.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts a private Redis with many far-away TTL keys, two relays and three
consumers. Timers are armed, and plain keys written with SET ... PX that the
relays watch. Half-way one relay and one consumer are killed, and the
notification connections cut. The table at the end counts what was lost, doubled
or late, and what the plain keyspace listener that people write by hand heard of
the very same keys: beside Overdue, and on a second Redis that nobody watches.
Needs redis-server in PATH, or OVERDUE_REDIS_SERVER. Exit code 0 only if nothing
was lost, doubled or early and the books balance; else 4.")]
pub(crate) struct Demo {
    /// Timers to arm.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub(crate) timers: u32,
    /// Plain keys to write with SET ... PX, due in the same time.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) keys: u32,
    /// Over how many seconds their due times are spread.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=600))]
    pub(crate) seconds: u32,
    /// Keys with a TTL far away, which make plain notifications late.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(0..=5_000_000))]
    pub(crate) background_keys: u32,
}

/// `overdue bench ...`
#[derive(Debug, Subcommand)]
#[command(after_help = "Starts a private Redis, a relay and a consumer as processes of their own.")]
pub(crate) enum Bench {
    /// How many timeouts a second, from due to acknowledged, when all are due at once.
    Burst(Burst),
    /// How late, at a steady rate.
    Steady(Steady),
    /// How late the end of a key is told, beside keys that end far away: a plain listener, a watched key, a timer.
    Lag(Lag),
    /// The consumer of demo and bench: its handler only measures. Writes its report to stdout at the end.
    #[command(hide = true)]
    Consumer(BenchConsumer),
}

/// Throughput.
#[derive(Debug, Args)]
#[command(after_help = "\
Counts from the due time of all to the last acknowledgement. The processor time
is for each timeout, of Redis and of relay and consumer; arming is left out.")]
pub(crate) struct Burst {
    /// Timers to arm.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub(crate) timers: u32,
    /// Bytes of payload in each.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    pub(crate) payload_bytes: u32,
}

/// Lateness.
#[derive(Debug, Args)]
#[command(after_help = "\
Lateness is from the due time that was asked for to the start of the handler.
The processor time is for each timeout, of Redis and of relay and consumer, from
arming to acknowledged.")]
pub(crate) struct Steady {
    /// Timeouts a second.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub(crate) rate: u32,
    /// Timers armed far away, as ballast.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) armed: u32,
    /// How long to measure, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) seconds: u32,
    /// Bytes of payload in each.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    pub(crate) payload_bytes: u32,
}

/// Three ways to hear of the same instant.
#[derive(Debug, Args)]
#[command(after_help = "\
For each number of background keys, on a private Redis of its own, 1,000 are due
at one instant, three times: keys that only a plain keyspace listener hears of,
with no relay; keys that a relay watches; timers. What has not come 15 s after
the instant does not count. Lateness is from the instant that was asked for to
hearing of it, or to the start of the handler in a consumer that has handled a
few before.

Examples:
  overdue bench lag                              four rows, in two minutes
  overdue bench lag --background 100000 --json   one row, for machines

Exit code 0 only if all 1,000 watched keys and timers were handled once, and
none early; else 4.")]
pub(crate) struct Lag {
    /// Keys with a TTL far away: a row for each number.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "0,10000,100000,1000000", value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) background: Vec<u32>,
}

/// The consumer of demo and bench, a process of its own.
#[derive(Debug, Args)]
pub(crate) struct BenchConsumer {
    /// The queue to read.
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The group to read for.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: GroupName,
    /// Timeouts handled at the same time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) concurrency: usize,
    /// How long a timeout stays its own without renewal.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) lease: Duration,
    /// How long the handler pretends to work.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    pub(crate) work: Duration,
    /// Measure from the due time that the id ends with, `...:<unix ms>`, whatever the timeout says. What has none is
    /// not measured.
    #[arg(long)]
    pub(crate) due_in_id: bool,
    /// Write a line to stdout when a handler starts and when it ends, instead of a report.
    #[arg(long)]
    pub(crate) journal: bool,
}
