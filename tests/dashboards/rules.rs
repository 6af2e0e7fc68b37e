//! The alert rules.

use std::fs;

use crate::files::folder;

/// What a minute of night is in a test.
const QUICK: &[(&str, &str)] = &[
    ("for: 1m\n", "for: 1s\n"),
    ("for: 2m\n", "for: 1s\n"),
    ("for: 5m\n", "for: 1s\n"),
    ("(overdue_oldest_overdue_seconds) > 10\n", "(overdue_oldest_overdue_seconds) > 2\n"),
    ("(overdue_group_oldest_pending_seconds) > 60\n", "(overdue_group_oldest_pending_seconds) > 2\n"),
];

/// The file.
pub(crate) fn text() -> String {
    fs::read_to_string(folder().join("alerts.yml")).unwrap()
}

/// The file, with what alerts wait for shortened to seconds.
pub(crate) fn quick() -> String {
    QUICK.iter().fold(text(), |text, (long, short)| {
        assert!(text.contains(long), "no rule says {long:?}");
        text.replace(long, short)
    })
}

/// The values of a key, wherever it stands.
pub(crate) fn values(key: &str) -> Vec<String> {
    let text = text();
    let lines = text.lines().map(|line| line.trim().trim_start_matches("- "));
    lines.filter_map(|line| line.strip_prefix(&format!("{key}: "))).map(str::to_owned).collect()
}
