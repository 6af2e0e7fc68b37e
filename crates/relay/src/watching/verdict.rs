//! What rounds of a canary say about the notifications of a node.

use overdue_telemetry::label::CanaryResult;

/// So many misses in a row, and nothing is relied on any more.
const MISSES: u32 = 3;

/// How one round ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// The canary's deadline and its end were heard.
    Heard,
    /// Its end was heard, its deadline was not.
    Partly,
    /// Its end was not heard.
    Missed(&'static str),
    /// The node did not answer; the text says why.
    Unanswered(String),
    /// There may be no canary; the text says why. That says nothing about notifications.
    Refused(String),
    /// Nothing can be said.
    Void,
}

impl Round {
    pub(super) fn label(&self) -> Option<CanaryResult> {
        match self {
            Self::Heard => Some(CanaryResult::Heard),
            Self::Partly => Some(CanaryResult::Partly),
            Self::Missed(_) => Some(CanaryResult::Missed),
            Self::Unanswered(_) | Self::Refused(_) => Some(CanaryResult::Unanswered),
            Self::Void => None,
        }
    }
}

/// Whether notifications come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum State {
    /// Nothing was tried yet.
    #[default]
    Unknown,
    /// They do.
    Healthy,
    /// Some do not, or one has not.
    Degraded,
    /// None do.
    Blind,
}

impl State {
    /// The number in the metrics.
    pub(super) fn number(self) -> f64 {
        match self {
            Self::Unknown => -1.0,
            Self::Blind => 0.0,
            Self::Degraded => 1.0,
            Self::Healthy => 2.0,
        }
    }
}

/// Makes states out of rounds.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    state: State,
    misses: u32,
}

impl Verdict {
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Takes a round in; answers the state before when it is another now.
    pub(super) fn take(&mut self, round: &Round) -> Option<State> {
        let missed = matches!(round, Round::Missed(_) | Round::Unanswered(_));
        let now = match round {
            Round::Void => return None,
            Round::Heard => State::Healthy,
            Round::Partly | Round::Refused(_) => State::Degraded,
            // Once blind, only what is heard makes it see.
            Round::Missed(_) | Round::Unanswered(_) if self.misses + 1 >= MISSES => State::Blind,
            Round::Missed(_) | Round::Unanswered(_) => State::Degraded,
        };
        self.misses = if missed { (self.misses + 1).min(MISSES) } else { 0 };
        let before = std::mem::replace(&mut self.state, now);
        (before != now).then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS: Round = Round::Missed("in a test");

    fn states(rounds: &[Round]) -> Vec<State> {
        let mut verdict = Verdict::default();
        rounds
            .iter()
            .map(|round| {
                verdict.take(round);
                verdict.state()
            })
            .collect()
    }

    #[test]
    fn one_miss_degrades_three_in_a_row_blind_and_one_that_is_heard_heals() {
        use State::{Blind, Degraded, Healthy};
        assert_eq!(states(&[Round::Heard, MISS, MISS, Round::Heard]), [Healthy, Degraded, Degraded, Healthy]);
        assert_eq!(
            states(&[MISS, MISS, MISS, MISS, Round::Heard]),
            [Degraded, Degraded, Blind, Blind, Healthy]
        );
        let unanswered = || Round::Unanswered(String::new());
        assert_eq!(states(&[MISS, unanswered(), unanswered()]), [Degraded, Degraded, Blind]);
    }

    #[test]
    fn what_proves_nothing_changes_nothing_and_a_refused_canary_is_never_blind() {
        assert_eq!(
            states(&[Round::Void, Round::Heard, Round::Void]),
            [State::Unknown, State::Healthy, State::Healthy]
        );
        assert_eq!(states(&[MISS, MISS, Round::Void, MISS])[3], State::Blind);
        assert!(
            states(&[const { Round::Refused(String::new()) }; 5])
                .iter()
                .all(|state| *state == State::Degraded)
        );
        assert_eq!(states(&[const { Round::Partly }; 5])[4], State::Degraded);
    }
}
