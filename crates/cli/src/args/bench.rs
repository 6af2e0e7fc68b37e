//! `overdue demo` and `overdue bench ...`: both start a Redis of their own and touch no other.

use std::path::PathBuf;
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
    /// The most that this Redis can do of the same work, and how much of that a burst reaches.
    Ceiling(Ceiling),
    /// How late, at a steady rate.
    Steady(Steady),
    /// How many timers are armed a second: many with one call, and one by one from many callers.
    Schedule(ScheduleBench),
    /// The processor time of a relay and a consumer that have nothing to do, beside armed timers.
    Idle(Idle),
    /// Bytes of Redis' memory for each armed timer, unread timeout, and timeout in hand.
    Memory(Memory),
    /// How much more several consumer processes do than one, when the handler is what takes time.
    Scale(Scale),
    /// How late the end of a key is told, beside keys that end far away: a plain listener, a watched key, a timer.
    Lag(Lag),
    /// What each script costs Redis, for each item, in calls of several sizes.
    Scripts(Scripts),
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

/// The bound of throughput.
#[derive(Debug, Args)]
#[command(after_help = "\
The same timers, scripts, calls of the same size and as many connections as in a
burst, but raw sockets in place of relay and consumer: calls are sent before the
answers to those before have come, so that Redis always has the next one, and
answers are only looked at for ids. Nothing handles anything. In each run first
this, then a burst, each on a private Redis of its own; at the end of both the
stream must be empty and the books must say that all is done. The result is the
median of all runs.")]
pub(crate) struct Ceiling {
    /// Timers to arm.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub(crate) timers: u32,
    /// Bytes of payload in each.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    pub(crate) payload_bytes: u32,
    /// How often each is measured, in turns.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) runs: u32,
}

/// Lateness.
#[derive(Debug, Args)]
#[command(after_help = "\
Timers are armed 2 s before they are due, every 10 ms what is due in 10 ms.
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

/// Arming.
#[derive(Debug, Args)]
#[command(after_help = "\
No relay and no consumer: a client alone on a private Redis arms timers that are
due in a day, first with schedule_many, 10,000 a call, then as many others with
schedule from callers that each wait for the answer before they arm the next.
A second counts from the first call to the last answer. The processor time is
for each timer, of Redis and of this process.")]
pub(crate) struct ScheduleBench {
    /// Timers to arm in each way.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub(crate) timers: u32,
    /// Bytes of payload in each.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    pub(crate) payload_bytes: u32,
    /// Who arm one by one, at the same time.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) callers: u32,
}

/// Nothing to do.
#[derive(Debug, Args)]
#[command(after_help = "\
One relay and one consumer, with timers armed that are due in a day. Counts, in
percent of one core, what each uses while nothing happens, after a few seconds
in which they settle. cpu_percent is that of the relay.")]
pub(crate) struct Idle {
    /// Timers armed far away.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(crate) armed: u32,
    /// How long to measure, in seconds.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub(crate) seconds: u32,
    /// Bytes of payload in each.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    pub(crate) payload_bytes: u32,
}

/// Bytes.
#[derive(Debug, Args)]
#[command(after_help = "\
What used_memory grows by on a private Redis that nobody else uses, for each:
armed      a timer that waits
keyed      the same with a plain key that ends with it
fired      a timeout in the stream that nobody has read
pending    a timeout that was read and is not acknowledged
Ids are like order-17. Hash tables grow by doubling: a figure holds for its
number.")]
pub(crate) struct Memory {
    /// Timers to arm of each kind.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub(crate) timers: u32,
    /// Bytes of payload in each.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub(crate) payload_bytes: u32,
}

/// More consumers.
#[derive(Debug, Args)]
#[command(after_help = "\
For each number of consumer processes, on a private Redis of its own with one
relay: as many timeouts as all handlers are busy with for the given seconds, all
due at once, from due to the last acknowledgement. What one process does is
bound by its handlers: concurrency / work. The default, 4 handlers of 1 ms, is
at most 4,000 a second, far below what Redis, the relay or a core can do. With
faster or more handlers the limit of the machine shows instead.")]
pub(crate) struct Scale {
    /// Consumer processes: a row for each number.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) consumers: Vec<u32>,
    /// How long the handler pretends to work.
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = humantime::parse_duration)]
    pub(crate) work: Duration,
    /// Timeouts that each process handles at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) concurrency: u32,
    /// How long each row is to take if all handlers are busy, in seconds.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
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

/// The scripts alone.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
On a private Redis, with nobody else on it, timers and watched keys go the whole
way through every hot script, round after round. Each figure is the median of
all rounds of what Redis says it spent in EVALSHA for each timer, entry or key.
\"schedule again\" replaces armed timers; \"settle look\" learns when keys end,
\"settle event\" fires them, \"settle again\" is told of the same end once more.")]
pub(crate) struct Scripts {
    /// How many timers, entries or keys one call names: a row for each number.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,16,256", value_parser = batch)]
    pub(crate) batch: Vec<u32>,
    /// Rounds that count.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// Timers and keys of a round, a multiple of 1,024; a quarter of them in calls below 16.
    #[arg(long, value_name = "N", default_value_t = 4_096, value_parser = items)]
    pub(crate) items: u32,
    /// Bytes of payload in each.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_024))]
    pub(crate) payload_bytes: u32,
    /// Compare with the scripts of a folder like lua/: both take turns.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) lua: Option<PathBuf>,
}

/// What a round works on: pages are whole in a quarter of it too.
fn items(text: &str) -> Result<u32, String> {
    let n = text.parse::<u32>().ok().filter(|n| *n > 0 && n.is_multiple_of(1_024) && *n <= 65_536);
    n.ok_or_else(|| "it is a multiple of 1024, up to 65536".to_owned())
}

/// A batch size: rounds are made of whole calls.
fn batch(text: &str) -> Result<u32, String> {
    let n = text.parse::<u32>().ok().filter(|n| n.is_power_of_two() && *n <= 256);
    n.ok_or_else(|| "a call names 1, 2, 4, 8, 16, 32, 64, 128 or 256".to_owned())
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
