//! `overdue schedule`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use overdue_protocol::{Due, QueueName, TimerId, TraceParent};

use super::{value, when};

const EXAMPLES: &str = "\
Examples:
  overdue schedule orders order-1001 --in 15m --payload '{\"seats\":2}'
  overdue schedule orders order-1001 --at 2026-01-01T09:30:00+01:00 --only-later
  make-report | overdue schedule reports r-7 --in 1h --payload-file -

A timer that is armed already is armed again, with a new generation, unless a
flag says otherwise. A due time in the past fires at once. A queue that is not
there is created, and the answer says so.
Exit code 1 when nothing was armed: --if-absent and one was, --if-present and
none was, or --only-later or --only-earlier kept it.";

/// Arm one timer.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Schedule {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The id of the timer: 1 to 512 bytes of anything. At most one timer of a queue has it.
    #[arg(value_name = "ID", value_parser = value::timer_id())]
    pub(crate) id: TimerId,
    #[command(flatten)]
    pub(crate) when: When,
    #[command(flatten)]
    pub(crate) payload: Payload,
    #[command(flatten)]
    pub(crate) mode: Mode,
    /// Keep a Redis key that ends at the deadline too, so that any client can read what is left with PTTL.
    #[arg(long)]
    pub(crate) keyed: bool,
    /// The W3C trace context that its handler goes on with. [default: TRACEPARENT of the environment, when it is valid]
    #[arg(long, value_name = "TEXT", value_parser = TraceParent::parse)]
    pub(crate) traceparent: Option<TraceParent>,
}

/// Exactly one of the two.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct When {
    /// Due so long from now on Redis' clock: 500ms, 30s, 15m, 1h30m, 7d.
    #[arg(long = "in", value_name = "DURATION", value_parser = when::parse_in, allow_hyphen_values = true)]
    pub(crate) within: Option<Duration>,
    /// Due then: 2026-01-01T09:30:00Z, 2026-01-01T10:30:00+01:00 or unix milliseconds.
    #[arg(long, value_name = "TIME", value_parser = when::parse_at, allow_hyphen_values = true)]
    pub(crate) at: Option<Due>,
}

/// At most one of the two; none = an empty payload.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Payload {
    /// What the handler gets, as text.
    #[arg(long = "payload", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// A file whose bytes the handler gets; - = stdin.
    #[arg(long = "payload-file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// At most one; none = arm it whatever is there.
#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Mode {
    /// Only if no timer with this id is armed.
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// Only if one is armed.
    #[arg(long)]
    pub(crate) if_present: bool,
    /// Move an armed one only to a later time.
    #[arg(long)]
    pub(crate) only_later: bool,
    /// Move an armed one only to an earlier time.
    #[arg(long)]
    pub(crate) only_earlier: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Cli, Command};

    fn error(line: &str) -> String {
        let text = Cli::try_parse_from(line.split(' ')).unwrap_err().to_string();
        text.lines().next().unwrap().to_owned()
    }

    #[test]
    fn a_wrong_time_says_what_to_write() {
        for (flag, text) in [
            (
                "--in 15",
                "error: invalid value '15' for '--in <DURATION>': a number without a unit: write 15s, 15m or 15h",
            ),
            (
                "--in -5m",
                "error: invalid value '-5m' for '--in <DURATION>': negative: write a duration from 0s up, such as 5m",
            ),
            (
                "--in 1e9d",
                "error: invalid value '1e9d' for '--in <DURATION>': not a duration: write it like 500ms, 30s, 15m, 1h30m or 7d",
            ),
            (
                "--in 1000y",
                "error: invalid value '1000y' for '--in <DURATION>': too far away: the latest due time is 2200-01-01T00:00:00Z",
            ),
            (
                "--at 1767225600",
                "error: invalid value '1767225600' for '--at <TIME>': looks like seconds: write unix milliseconds (1767225600000) or 2026-01-01T00:00:00Z",
            ),
            (
                "--at 9007199254740992",
                "error: invalid value '9007199254740992' for '--at <TIME>': too far away: the latest due time is 2200-01-01T00:00:00Z",
            ),
            (
                "--at -5",
                "error: invalid value '-5' for '--at <TIME>': negative: a due time is unix milliseconds after 1970 or a time such as 2026-01-01T09:30:00Z",
            ),
        ] {
            assert_eq!(error(&format!("overdue schedule orders a {flag}")), text);
        }
    }

    #[test]
    fn one_time_one_payload_one_mode() {
        for bad in [
            "overdue schedule orders a",
            "overdue schedule orders a --in 5m --at 1767225600000",
            "overdue schedule orders a --in 5m --payload x --payload-file y",
            "overdue schedule orders a --in 5m --if-absent --only-later",
        ] {
            assert_eq!(Cli::try_parse_from(bad.split(' ')).unwrap_err().exit_code(), 2, "{bad}");
        }
        let good = "overdue schedule orders a --in 5m --payload -x --only-later --keyed";
        let Command::Schedule(schedule) = Cli::try_parse_from(good.split(' ')).unwrap().command else {
            panic!()
        };
        assert!(schedule.mode.only_later && schedule.keyed);
        assert_eq!(schedule.payload.text.as_deref(), Some("-x"));
    }
}
