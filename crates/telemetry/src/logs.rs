//! Log lines on stderr, as text for people or JSON for machines.

use std::fmt;
use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// For people; coloured on a terminal unless `NO_COLOR` is set.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The filter can't be read, or logs are set up already.
#[derive(Debug)]
pub struct LogsError(String);

impl fmt::Display for LogsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LogsError {}

/// Sends all log lines of this process to stderr.
///
/// `filter` is a level (`off error warn info debug trace`), which is about Overdue's own lines and keeps
/// libraries silent: our lines repeat what matters, throttled. Or it is a list of `target=level`, such as
/// `overdue=info,overdue_relay=debug`.
///
/// # Errors
/// `filter` is neither, or logs have been set up before.
pub fn init(format: Format, filter: &str) -> Result<(), LogsError> {
    let filter = parse_filter(filter)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    let done = match format {
        Format::Text => lines.with_ansi(may_colour(&stderr())).finish().try_init(),
        Format::Json => lines.json().flatten_event(true).with_current_span(false).finish().try_init(),
    };
    done.map_err(|e| LogsError(format!("cannot set up logs: {e}")))
}

/// Whether colours may be written there: only on a terminal, and unless `NO_COLOR` says something.
pub fn may_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Checks a filter without setting anything up.
///
/// # Errors
/// As [`init`].
pub fn check_filter(filter: &str) -> Result<(), LogsError> {
    parse_filter(filter).map(drop)
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

fn parse_filter(filter: &str) -> Result<EnvFilter, LogsError> {
    let given = filter.trim().to_ascii_lowercase();
    let directives = if LEVELS.contains(&given.as_str()) {
        format!("overdue={given}")
    } else if given.split(',').all(|pair| pair.contains('=')) {
        filter.to_owned()
    } else {
        return Err(not_a_filter());
    };
    EnvFilter::try_new(directives).map_err(|_| not_a_filter())
}

fn not_a_filter() -> LogsError {
    LogsError(
        "not a log filter: write a level (error, warn, info, debug) or pairs such as overdue_relay=debug"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_is_about_our_own_lines() {
        assert_eq!(parse_filter("info").unwrap().to_string(), "overdue=info");
        assert_eq!(parse_filter("WARN").unwrap().to_string(), "overdue=warn");
        assert_eq!(parse_filter("overdue=info,hyper=debug").unwrap().to_string(), "overdue=info,hyper=debug");
    }

    #[test]
    fn a_bad_filter_says_what_to_write() {
        for bad in ["loud", "", "overdue=loud", "a,b"] {
            let error = parse_filter(bad).unwrap_err().to_string();
            assert!(error.starts_with("not a log filter: write a level"), "{bad}: {error}");
        }
    }
}
