//! Keeps a fault that repeats from filling the log.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines of one kind.
const SPACING: Duration = Duration::from_secs(1);
/// The most lines of one kind within [`WINDOW`].
const LINES: usize = 20;
const WINDOW: Duration = Duration::from_secs(60);

/// Lets at most one line a second and 20 a minute of each kind through, and counts the others.
///
/// ```
/// use std::time::Instant;
/// use overdue_telemetry::Throttle;
///
/// let throttle = Throttle::default();
/// if let Some(pass) = throttle.pass("sweep failed", Instant::now()) {
///     tracing::warn!("sweep failed: no answer{pass}");
/// }
/// ```
#[derive(Debug, Default)]
pub struct Throttle {
    kinds: Mutex<HashMap<&'static str, Recent>>,
}

#[derive(Debug, Default)]
struct Recent {
    lines: VecDeque<Instant>,
    suppressed: u64,
}

/// Leave to write one line. As text it is empty, or ` (17 more like this were not logged)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Lines of this kind that were held back since the last one that passed.
    pub suppressed: u64,
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.suppressed {
            0 => Ok(()),
            n => write!(f, " ({n} more like this were not logged)"),
        }
    }
}

impl Throttle {
    /// Whether a line of `kind` may be written at `now`. Kinds are constants, so their number is bounded.
    #[must_use]
    pub fn pass(&self, kind: &'static str, now: Instant) -> Option<Pass> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = kinds.entry(kind).or_default();
        while recent.lines.front().is_some_and(|&line| now.saturating_duration_since(line) >= WINDOW) {
            recent.lines.pop_front();
        }
        let too_soon = recent.lines.back().is_some_and(|&line| now.saturating_duration_since(line) < SPACING);
        if too_soon || recent.lines.len() >= LINES {
            recent.suppressed += 1;
            return None;
        }
        recent.lines.push_back(now);
        Some(Pass { suppressed: std::mem::take(&mut recent.suppressed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_and_the_next_says_how_many_were_held_back() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        let at = |ms| throttle.pass("sweep", start + Duration::from_millis(ms));
        assert_eq!(at(0), Some(Pass { suppressed: 0 }));
        assert_eq!(at(1), None);
        assert_eq!(at(999), None);
        assert_eq!(at(1000), Some(Pass { suppressed: 2 }));
        assert_eq!(at(2000), Some(Pass { suppressed: 0 }));
    }

    #[test]
    fn at_most_20_lines_in_any_minute() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        let passed: Vec<u64> = (0..180_000_u64)
            .step_by(100)
            .filter(|&ms| throttle.pass("sweep", start + Duration::from_millis(ms)).is_some())
            .collect();
        for &from in &passed {
            let within = passed.iter().filter(|&&ms| (from..from + 60_000).contains(&ms)).count();
            assert!(within <= LINES, "{within} lines in the minute from {from} ms");
        }
        assert_eq!(passed.len(), 60);
    }

    #[test]
    fn kinds_do_not_hold_each_other_back() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        assert!(throttle.pass("sweep", now).is_some());
        assert!(throttle.pass("trim", now).is_some());
    }

    #[test]
    fn a_pass_reads_as_the_end_of_a_line() {
        assert_eq!(Pass { suppressed: 0 }.to_string(), "");
        assert_eq!(Pass { suppressed: 17 }.to_string(), " (17 more like this were not logged)");
    }
}
