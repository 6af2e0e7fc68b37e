//! Whether Redis answers, for the log: one line when it goes and one when it is back, whatever number of loops notices.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use overdue_store::ErrorKind;

/// How long nothing may have failed until it counts as back: longer than a loop takes to fail again.
const QUIET: Duration = Duration::from_secs(6);
/// How often it is said again that it is away.
const AGAIN: Duration = Duration::from_secs(60);

/// The absence of Redis, or of a node of it.
#[derive(Default)]
pub(crate) struct Absence(Mutex<Option<Away>>);

struct Away {
    since: Instant,
    failed: Instant,
    said: Instant,
}

impl Absence {
    /// Whether a fault of this kind is no answer.
    pub(crate) fn is_one(kind: ErrorKind) -> bool {
        matches!(kind, ErrorKind::Unreachable | ErrorKind::OutcomeUnknown | ErrorKind::Unavailable)
    }

    /// There was no answer; `Some` when that is to be said: for how long there has been none.
    pub(crate) fn failed(&self, now: Instant) -> Option<Duration> {
        let mut away = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(away) = &mut *away else {
            *away = Some(Away { since: now, failed: now, said: now });
            return Some(Duration::ZERO);
        };
        away.failed = now;
        let say = now.saturating_duration_since(away.said) >= AGAIN;
        if say {
            away.said = now;
        }
        say.then(|| now.saturating_duration_since(away.since))
    }

    /// There was an answer; `Some` when it is back by that: how long it was away.
    pub(crate) fn answered(&self, now: Instant) -> Option<Duration> {
        let mut away = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = |away: &Away| now.saturating_duration_since(away.failed) >= QUIET;
        if !away.as_ref().is_some_and(quiet) {
            return None;
        }
        away.take().map(|away| away.failed.saturating_duration_since(away.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_when_it_goes_one_a_minute_and_one_when_it_is_back() {
        let (absence, start) = (Absence::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(absence.answered(at(0)), None);
        let lines = (0..100_000).step_by(100).filter(|&ms| absence.failed(at(ms)).is_some());
        assert_eq!(lines.collect::<Vec<_>>(), [0, 60_000]);
        // A loop may go on failing while another has an answer.
        assert_eq!(absence.answered(at(105_000)), None);
        assert_eq!(absence.answered(at(105_900)), Some(Duration::from_millis(99_900)));
        assert_eq!(absence.answered(at(105_900)), None);
        assert_eq!(absence.failed(at(106_000)), Some(Duration::ZERO));
    }
}
