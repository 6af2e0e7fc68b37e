//! `overdue consume`

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use overdue_protocol::{GroupName, QueueName};

use crate::settings::flags::{self, Flags};

const USAGE: &str = "overdue consume [OPTIONS] --queue <QUEUE> --group <GROUP> --print
       overdue consume [OPTIONS] --queue <QUEUE> --group <GROUP> --exec -- <CMD> [ARG]...";

const EXAMPLES: &str = "\
Examples:
  overdue consume --queue orders --group billing --print
  overdue consume --queue orders --group billing --limit 5m --exec -- ./release

--exec runs the command once for each timeout, without a shell. It gets
  stdin   the payload
  OVERDUE_KEY            queue/id/generation: the idempotency key
  OVERDUE_QUEUE, OVERDUE_GROUP, OVERDUE_ID, OVERDUE_ID_BASE64
  OVERDUE_GENERATION, OVERDUE_DUE_MS (unix ms), OVERDUE_ATTEMPT (1 = first)
  OVERDUE_SOURCE         notification, index or replay
  OVERDUE_KIND           timer, or key: OVERDUE_ID is the name of a watched key
  OVERDUE_RULE, OVERDUE_DB, OVERDUE_PROOF (event, nudge, or none: unproven),
  OVERDUE_CAUSE (evicted), OVERDUE_CAPTURED_MS (when its value was read)
  OVERDUE_ENCODING       how the payload is written: raw, text, json, msgpack
  OVERDUE_FLAW           what is wrong with it: no_value, value_too_large ...
What is not known is not set; OVERDUE_ID is not set when it is no UTF-8 text.
It answers with its exit code
  0       done
  65      reject: a dead letter at once
  75      try again; a last line `retry-after: 90s` on stdout says when
  other   try again, also after a signal
Its output is passed on; the last 2 KiB of its stderr are kept as the reason.
Its process group gets SIGTERM, and SIGKILL 10 s later, when its lease is lost,
its limit is over, or the consumer stops and the grace is over; its exit code
does not count then.
A command that can't be started at all ends the consumer: exit code 2.";

/// What to handle, and how. Its other flags are settings: read them from [`crate::settings::Consume`].
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_help = EXAMPLES)]
pub(crate) struct Consume {
    /// The queue to read.
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The group to read for; created when it is not there. Each group gets every timeout once.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: GroupName,
    /// Where a new group begins: with what is in the stream, or with what fires from now on.
    #[arg(long, value_name = "WHERE", default_value = "oldest")]
    pub(crate) from: From,
    #[command(flatten)]
    pub(crate) handler: Handler,
    #[command(flatten)]
    pub(crate) flags: Flags<flags::Consume>,
}

/// Where a group or a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    /// With the oldest entry in the stream.
    Oldest,
    /// With what fires from now on.
    New,
}

/// Exactly one of the two.
#[derive(Debug, Args)]
pub(crate) struct Handler {
    /// Print each timeout. This handles it: it is acknowledged. To only look, use `tail`.
    #[arg(long, required_unless_present = "exec", conflicts_with = "exec")]
    pub(crate) print: bool,
    /// Run the command after `--` for each timeout.
    #[arg(long, requires = "command")]
    pub(crate) exec: bool,
    /// The command and its arguments, for --exec. Not empty when `exec` is set.
    #[arg(last = true, hide = true, value_name = "CMD", num_args = 1.., requires = "exec", conflicts_with = "print")]
    pub(crate) command: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(line: &str) -> Result<Consume, clap::Error> {
        match Cli::try_parse_from(line.split(' '))?.command {
            Command::Consume(consume) => Ok(consume),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_follows_the_two_dashes_as_it_is() {
        let consume = parse("overdue consume --queue q --group g --exec -- ./x --json -- y").unwrap();
        assert_eq!(consume.handler.command, ["./x", "--json", "--", "y"]);
        assert_eq!(consume.from, From::Oldest);
    }

    #[test]
    fn exactly_one_handler() {
        for bad in [
            "overdue consume --queue q --group g",
            "overdue consume --queue q --group g --print --exec -- x",
            "overdue consume --queue q --group g --exec",
            "overdue consume --queue q --group g --print -- x",
            "overdue consume --queue q --print",
            "overdue consume --queue Q --group g --print",
        ] {
            assert_eq!(parse(bad).unwrap_err().exit_code(), 2, "{bad}");
        }
    }
}
