//! What became of keys.

use std::fmt;

use overdue_protocol::Entry;
use overdue_protocol::entry::Proof;

use super::Written;

/// What became of some keys.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) of: usize,
    pub(super) lost: Vec<String>,
    pub(super) twice: Vec<String>,
    pub(super) unproven: usize,
    pub(super) late_ms: Vec<u64>,
}

impl Verdict {
    pub(super) fn add(&mut self, written: &Written, fired: Option<&Vec<Entry>>) {
        self.of += 1;
        let Some(fired) = fired else { return self.lost.push(written.key.clone()) };
        if fired.len() > 1 {
            self.twice.push(written.key.clone());
        }
        self.unproven += fired.iter().filter(|entry| entry.proof == Some(Proof::Unproven)).count();
        self.late_ms.extend(fired.iter().map(|entry| entry.fired_ms.saturating_sub(written.due_ms)));
        self.late_ms.sort_unstable();
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lost, twice) = (self.lost.len(), self.twice.len());
        let late = |at: Option<&u64>| at.copied().unwrap_or(0);
        let (half, most) = (late(self.late_ms.get(self.late_ms.len() / 2)), late(self.late_ms.last()));
        write!(
            f,
            "{} keys, {lost} lost, {twice} twice, {} unproven, {half} to {most} ms late",
            self.of, self.unproven
        )
    }
}
