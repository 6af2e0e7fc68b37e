//! What the judge found, as a report.

use std::fmt;

use super::Obligation;

/// How many of each kind a report names.
const NAMED: usize = 10;

/// What the judge found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Obligations.
    pub owed: usize,
    /// Generations handled, whether owed or not.
    pub handled: usize,
    /// Owed, and never handled.
    pub lost: Vec<Obligation>,
    /// Handled more than once, with the number of times.
    pub twice: Vec<(Obligation, usize)>,
    /// Handled before they were due, with the milliseconds.
    pub early: Vec<(Obligation, u64)>,
    /// Handled although an acknowledged cancel or replacement had released them.
    pub released: Vec<Obligation>,
    /// Handled, and never armed as far as the ledger knows.
    pub unknown: Vec<Obligation>,
    /// From due to handled, in milliseconds, ascending; those that were owed and not early.
    pub lateness_ms: Vec<u64>,
}

impl Verdict {
    /// Whether there is nothing to complain about.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty()
            && self.twice.is_empty()
            && self.early.is_empty()
            && self.released.is_empty()
            && self.unknown.is_empty()
    }

    /// The lateness that `share` (0 to 1) of them did not exceed; 0 when nothing was handled.
    #[must_use]
    pub fn lateness(&self, share: f64) -> u64 {
        let last = self.lateness_ms.len().saturating_sub(1);
        self.lateness_ms.get((last as f64 * share).round() as usize).copied().unwrap_or(0)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Debug>(f: &mut fmt::Formatter<'_>, what: &str, items: &[T]) -> fmt::Result {
            let named = &items[..items.len().min(NAMED)];
            let dots = if items.len() > NAMED { " ..." } else { "" };
            writeln!(f, "{what:>24} {:>8}  {named:?}{dots}", items.len())
        }
        writeln!(f, "the ledger:\n{:>24} {:>8}\n{:>24} {:>8}", "owed", self.owed, "handled", self.handled)?;
        list(f, "lost", &self.lost)?;
        list(f, "handled more than once", &self.twice)?;
        list(f, "early (by ms)", &self.early)?;
        list(f, "handled though released", &self.released)?;
        list(f, "unknown", &self.unknown)?;
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| self.lateness(share));
        write!(f, "{:>24} p50 {p50} ms, p99 {p99} ms, max {max} ms", "lateness")
    }
}
