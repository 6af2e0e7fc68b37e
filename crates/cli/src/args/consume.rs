//! `overdue consume`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use overdue_protocol::{GroupName, QueueName};

use crate::settings::flags::{self, Flags};

const USAGE: &str = "overdue consume [OPTIONS] --queue <QUEUE> --group <GROUP> --webhook <URL>
       overdue consume [OPTIONS] --queue <QUEUE> --group <GROUP> --exec -- <CMD> [ARG]...
       overdue consume [OPTIONS] --queue <QUEUE> --group <GROUP> --pipe -- <CMD> [ARG]...
       overdue consume [OPTIONS] --queue <QUEUE> --group <GROUP> --print
       overdue consume [OPTIONS]";

const EXAMPLES: &str = "\
Examples:
  overdue consume --queue orders --group billing --print
  overdue consume --queue orders --group billing --limit 5m --exec -- ./release
  overdue consume --queue orders --group billing --pipe -- php artisan work
  overdue consume --queue orders --group billing \\
    --webhook https://example.com/timeouts --webhook-secret-file secret
  overdue consume --config overdue.toml     every [[consumer]] of the file

--webhook posts each timeout as JSON:
  {\"type\":\"overdue.timeout\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"data\":{
   \"key\":\"orders/order-1/17\",\"queue\":\"orders\",\"group\":\"billing\",
   \"id\":\"order-1\",\"generation\":17,\"due_ms\":1767225600000,\"attempt\":1,
   \"source\":\"index\",\"kind\":\"timer\",\"payload\":\"...\"}}
with id_base64 or payload_base64 for what is not UTF-8, and rule, db, proof,
cause, captured_ms, flaw, encoding where known. Headers as in Standard Webhooks:
webhook-id (the idempotency key, the same for each attempt), webhook-timestamp,
webhook-signature. The answer
  2xx                         done
  overdue-outcome: reject     (a header, with any status) a dead letter at once
  429, 503 with Retry-After   again then; costs no attempt
  502, 503, 504, no connection  away: one tries it, the others wait; no attempt
  410                         stop until it is started again; see the log
  other, redirects too        try again; status and 1 KiB of body are the reason

--pipe starts the command once for each timeout that is handled at the same
time, and keeps it. Each timeout is one line on its stdin, the object that
--webhook has as data; it answers with one line on stdout:
  {\"key\":\"orders/order-1/17\",\"outcome\":\"done\"}
  {\"key\":\"...\",\"outcome\":\"retry\",\"after_ms\":90000,\"reason\":\"busy\"}
  {\"key\":\"...\",\"outcome\":\"reject\",\"reason\":\"no such order\"}
One that ends before it answers, answers for another key, or says anything else
on stdout is replaced, and its timeout tried again; logs belong on stderr. At
the end of its stdin it should leave.

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
  TRACEPARENT            the trace context of whoever armed it
What is not known is not set; OVERDUE_ID is not set when it is no UTF-8 text.
It answers with its exit code
  0       done
  65      reject: a dead letter at once
  75      try again; a last line `retry-after: 90s` on stdout says when
  other   try again, also after a signal
Its output is passed on; the last 2 KiB of its stderr are kept as the reason.
The process group of a command (--exec, --pipe) gets SIGTERM, and SIGKILL 10 s
later, when its lease is lost, its limit is over, or the consumer stops and
the grace is over; its exit code does not count then.
A command that can't be started at the start ends the consumer with exit code
2; later it costs no attempt, and is tried again.";

/// What to handle, and how: all of queue, group and a handler, or nothing. Its other flags are settings: read them from
/// [`crate::settings::Consume`].
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_help = EXAMPLES)]
#[command(group = ArgGroup::new("handler").args(["print", "exec", "pipe", "webhook"]).requires("queue"))]
#[command(group = ArgGroup::new("runs").args(["exec", "pipe"]))]
pub(crate) struct Consume {
    /// The queue to read. Without it, every [[consumer]] of the settings file runs.
    #[arg(long, value_name = "QUEUE", requires = "group", requires = "handler")]
    pub(crate) queue: Option<QueueName>,
    /// The group to read for; created when it is not there. Each group gets every timeout once.
    #[arg(long, value_name = "GROUP", requires = "queue")]
    pub(crate) group: Option<GroupName>,
    /// Where a new group begins: with what is in the stream, or with what fires from now on.
    #[arg(long, value_name = "WHERE", default_value = "oldest", requires = "queue")]
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

/// At most one of the four, and what belongs to it.
#[derive(Debug, Args)]
pub(crate) struct Handler {
    /// POST each timeout to this URL.
    #[arg(long, value_name = "URL")]
    pub(crate) webhook: Option<String>,
    /// A file with the secret that signs the requests: 1 or 2 lines whsec_..., read again when it changes.
    #[arg(long, value_name = "FILE", requires = "webhook", conflicts_with_all = ["print", "exec", "pipe"])]
    pub(crate) webhook_secret_file: Option<PathBuf>,
    /// Run the command after `--` for each timeout.
    #[arg(long, requires = "command")]
    pub(crate) exec: bool,
    /// Keep the command after `--` running, and hand it a line for each timeout.
    #[arg(long, requires = "command")]
    pub(crate) pipe: bool,
    /// Print each timeout. This handles it: it is acknowledged. To only look, use `tail`.
    #[arg(long)]
    pub(crate) print: bool,
    /// The command and its arguments, for --exec and --pipe. Not empty when one of them is set.
    #[arg(last = true, hide = true, value_name = "CMD", num_args = 1.., requires = "runs")]
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
            "overdue consume --queue q --group g --print --webhook http://a/",
            "overdue consume --queue q --group g --exec --pipe -- x",
            "overdue consume --queue q --group g --exec",
            "overdue consume --queue q --group g --pipe",
            "overdue consume --queue q --group g --print -- x",
            "overdue consume --queue q --group g --webhook http://a/ -- x",
            "overdue consume --queue q --group g --print --webhook-secret-file f",
            "overdue consume --queue q --print",
            "overdue consume --group g --print",
            "overdue consume --print",
            "overdue consume --queue q",
            "overdue consume --from new",
            "overdue consume --exec -- x",
            "overdue consume --queue Q --group g --print",
        ] {
            assert_eq!(parse(bad).unwrap_err().exit_code(), 2, "{bad}");
        }
    }

    #[test]
    fn all_or_nothing() {
        assert!(parse("overdue consume --concurrency 4").unwrap().queue.is_none());
        let hook = parse(
            "overdue consume --queue q --group g --webhook http://a/ --webhook-secret-file f --from new",
        );
        let hook = hook.unwrap();
        assert_eq!(hook.handler.webhook_secret_file, Some("f".into()));
        assert_eq!((hook.handler.webhook.as_deref(), hook.from), (Some("http://a/"), From::New));
        assert!(parse("overdue consume --queue q --group g --pipe -- php work").unwrap().handler.pipe);
    }
}
