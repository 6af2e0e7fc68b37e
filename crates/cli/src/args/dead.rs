//! `overdue dead ...`

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, builder::PossibleValue};
use overdue_protocol::watch::Glob;
use overdue_protocol::{GroupName, QueueName};

use super::value::{self, Letter};
use super::when::{self, Moment};

/// The reasons of dead letters (PROTOCOL.md section 2), and what they mean.
pub(crate) const REASONS: [(&str, &str); 6] = [
    ("rejected", "its handler said that it can never be done"),
    ("attempts", "it used up its attempts"),
    ("deaths", "its holders died while it ran alone"),
    (EFFECTS_INCOMPLETE, "it is acknowledged, but only some of its effects were written"),
    ("malformed", "it is no timeout that can be read"),
    ("group_gone", "a retry whose group was dropped"),
];

/// The reason of a letter that is never handed out again by the way: what was written of it would be written twice.
pub(crate) const EFFECTS_INCOMPLETE: &str = "effects_incomplete";

const LIST: &str = "\
Examples:
  overdue dead list orders --reason attempts --after 2h
  overdue dead list orders --id 'order-10*' --json | jq -r .letter

To read the whole reason and the payload of one: overdue dead show.";

const CHOOSE: &str = "\
Name letters, or give --all or any of the filters; filters together are an AND.
  overdue dead replay orders 0-1767225600000-0
  overdue dead replay orders --group billing --reason attempts --after 2h
  overdue dead purge orders --before 30d --dry-run

What is buried while the command runs is left alone. A replay passes over
letters with the reason effects_incomplete, which would write some effects a
second time, unless they are named or --reason says so.
Exit code 1 when one of the letters was left; the others are done.";

/// `overdue dead ...`
#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    /// List dead letters, oldest first: when, of which group, after how many attempts, by whom and why.
    List(ListDead),
    /// Show one dead letter whole: its reason with all its causes, where it comes from, its payload.
    Show(ShowDead),
    /// Hand dead letters to their group again, as attempt 1 with the same idempotency key.
    Replay(ChooseDead),
    /// Delete dead letters for good.
    Purge(ChooseDead),
}

/// Which dead letters. Without any: all.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Filter {
    /// Only those of this group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<GroupName>,
    /// Only those with this reason.
    #[arg(long, value_name = "REASON", value_parser = reasons())]
    pub(crate) reason: Option<String>,
    /// Only those whose id matches: * for anything, ? for one byte, [a-f] for one of these, \ before a plain * or ?.
    #[arg(long, value_name = "GLOB", value_parser = value::glob())]
    pub(crate) id: Option<Glob>,
    /// Only those buried before this: 2026-01-01T09:30:00Z, unix milliseconds, or how long ago: 2h, 30d.
    #[arg(long, value_name = "TIME", value_parser = when::parse_moment, allow_hyphen_values = true)]
    pub(crate) before: Option<Moment>,
    /// Only those buried at this time or later.
    #[arg(long, value_name = "TIME", value_parser = when::parse_moment, allow_hyphen_values = true)]
    pub(crate) after: Option<Moment>,
}

fn reasons() -> PossibleValuesParser {
    PossibleValuesParser::new(REASONS.map(|(word, help)| PossibleValue::new(word).help(help)))
}

/// List dead letters.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(crate) struct ListDead {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// Stop after this many; 0 = no limit.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

/// Show one dead letter.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  overdue dead show orders 0-1767225600000-0")]
pub(crate) struct ShowDead {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The dead letter, as `dead list` prints it: partition-entry, such as 0-1767225600000-0.
    #[arg(value_name = "LETTER")]
    pub(crate) letter: Letter,
}

/// Choose dead letters: by name, by filters, or all.
#[derive(Debug, Args)]
#[command(after_help = CHOOSE)]
pub(crate) struct ChooseDead {
    /// The queue.
    #[arg(value_name = "QUEUE")]
    pub(crate) queue: QueueName,
    /// The dead letters, as `dead list` prints them: 0-1767225600000-0.
    #[arg(value_name = "LETTER", conflicts_with_all = ["all", "group", "reason", "id", "before", "after"])]
    pub(crate) letters: Vec<Letter>,
    /// All that the filters let through; without filters all there are.
    #[arg(long)]
    pub(crate) all: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

impl ChooseDead {
    /// Whether nothing was said of which letters are meant.
    pub(crate) fn chooses_nothing(&self) -> bool {
        let Filter { group, reason, id, before, after } = &self.filter;
        let filtered =
            group.is_some() || reason.is_some() || id.is_some() || before.is_some() || after.is_some();
        self.letters.is_empty() && !self.all && !filtered
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::Cli;

    fn refusal(line: &str) -> String {
        Cli::try_parse_from(line.split(' ')).unwrap_err().to_string()
    }

    #[test]
    fn letters_are_named_or_filtered_but_one_of_the_two() {
        for good in ["0-5-0 1-5-0", "--all", "--group g --reason attempts", "--all --before 7d --dry-run"] {
            Cli::try_parse_from(format!("overdue dead purge q {good}").split(' ')).unwrap();
        }
        for both in ["0-5-0 --all", "0-5-0 --id x", "0-5-0 --after 1h"] {
            let text = refusal(&format!("overdue dead replay q {both}"));
            assert!(text.contains("cannot be used with"), "{text}");
        }
    }

    #[test]
    fn a_wrong_filter_says_what_to_write() {
        for (filter, text) in [
            ("--reason atempts", "a similar value exists: 'attempts'"),
            ("--before 15", "looks like seconds"),
            ("--before -2h", "negative"),
            (
                "--after yesterday",
                "not a time: write it like 2026-01-01T09:30:00Z, unix milliseconds or, for so long ago, 2h",
            ),
            ("--group A", "the group name \"A\" is not valid"),
        ] {
            let refused = refusal(&format!("overdue dead list q {filter}"));
            assert!(refused.contains(text), "{filter}: {refused}");
        }
    }
}
