//! What a handler answers: a value, never guessed from an error.

use std::error::Error;
use std::time::Duration;

use crate::effects::Effects;

/// The most text that is kept of a reason, in bytes.
pub(crate) const REASON_BYTES: usize = 2048;

/// What becomes of a timeout that was handled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done: acknowledged, never handed out again to this group.
    Done,
    /// It is done, and these writes to Redis are done with the acknowledgement: both or neither. Effects that can't be
    /// applied (a key of another type, a number too large) make it a retry, and nothing is written.
    DoneWith(Effects),
    /// It comes back with its next attempt after the wait that the policy says; a dead letter after the last one.
    Retry {
        /// Why; it stands in the dead letter if this was the last attempt.
        reason: String,
    },
    /// It comes back with its next attempt after `wait`; a dead letter after the last one.
    RetryAfter {
        /// How long from now.
        wait: Duration,
        /// Why, as in `Retry`.
        reason: String,
    },
    /// It comes back after `wait` with the *same* attempt: what stood in its way says nothing about it, and when to come
    /// again is known (a rate limit).
    Postpone {
        /// How long from now.
        wait: Duration,
        /// Why, for the log.
        reason: String,
    },
    /// What the handler works with can't be reached at all (connection refused, DNS, 503): costs no attempt. The
    /// consumer reads nothing more for this handler, tries with this one timeout again and again, and goes on when one
    /// try has come through.
    Unreachable {
        /// Why, for the log and `overdue doctor`.
        reason: String,
    },
    /// Nothing can be handled until a person has acted (an endpoint that says 410 Gone): the timeout is handed back
    /// with the same attempt, and the consumer reads nothing more for this handler until it is started again.
    Halt {
        /// Why, for the log and `overdue doctor`.
        reason: String,
    },
    /// It is handed back as it is: whoever reads next gets it at once, at the same attempt. For a handler that ends
    /// because its process does; as an answer to anything else it goes round without end.
    Release,
    /// It can never succeed: a dead letter at once.
    Reject {
        /// Why; it stands in the dead letter. Cut to 2 KiB.
        reason: String,
    },
}

impl Outcome {
    /// [`Outcome::Retry`] with a reason.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::Retry { reason: reason.into() }
    }

    /// [`Outcome::RetryAfter`] with a reason.
    pub fn retry_after(wait: Duration, reason: impl Into<String>) -> Self {
        Self::RetryAfter { wait, reason: reason.into() }
    }

    /// [`Outcome::Postpone`] with a reason.
    pub fn postpone(wait: Duration, reason: impl Into<String>) -> Self {
        Self::Postpone { wait, reason: reason.into() }
    }

    /// [`Outcome::Unreachable`] with a reason.
    pub fn unreachable(reason: impl Into<String>) -> Self {
        Self::Unreachable { reason: reason.into() }
    }

    /// [`Outcome::Halt`] with a reason.
    pub fn halt(reason: impl Into<String>) -> Self {
        Self::Halt { reason: reason.into() }
    }

    /// [`Outcome::Reject`] with a reason.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::Reject { reason: reason.into() }
    }
}

/// [`Outcome::Done`], short: `Ok(Done)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done;

/// The error that a handler may return: `?` makes it of any error, and of text. It means [`Outcome::Retry`].
pub type HandlerError = Box<dyn Error + Send + Sync>;

/// What a handler may return.
///
/// `()` and [`Done`] are done; [`Effects`] are done with them; `Err` is a retry with the error's chain as its reason. There is one `Result`, with
/// [`HandlerError`], so that `?` in a closure needs no annotation.
pub trait IntoOutcome {
    /// The outcome that it stands for.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for Done {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl IntoOutcome for Effects {
    fn into_outcome(self) -> Outcome {
        Outcome::DoneWith(self)
    }
}

impl<O: IntoOutcome> IntoOutcome for Result<O, HandlerError> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(outcome) => outcome.into_outcome(),
            Err(error) => Outcome::Retry { reason: chain(&*error) },
        }
    }
}

/// An error and what caused it, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next.filter(|_| text.len() < REASON_BYTES) {
        let said = cause.to_string();
        // Many errors print their cause themselves.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

/// The beginning of a reason, cut between characters.
pub(crate) fn cut(mut reason: String) -> String {
    let end = (0..=REASON_BYTES.min(reason.len())).rev().find(|&end| reason.is_char_boundary(end));
    reason.truncate(end.unwrap_or(0));
    reason
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("cannot charge the card")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_error_is_a_retry_with_its_chain() {
        let fails = || -> Result<Done, HandlerError> { Err(Outer(io::Error::other("no route")))? };
        assert_eq!(fails().into_outcome(), Outcome::retry("cannot charge the card: no route"));
        let text: Result<(), HandlerError> = Err("just text".into());
        assert_eq!(text.into_outcome(), Outcome::retry("just text"));
    }

    #[test]
    fn everything_else_is_what_it_says() {
        assert_eq!(().into_outcome(), Outcome::Done);
        assert_eq!(Done.into_outcome(), Outcome::Done);
        assert_eq!(Ok::<_, HandlerError>(()).into_outcome(), Outcome::Done);
        let after = Outcome::retry_after(Duration::from_secs(1), "busy");
        assert_eq!(Ok::<_, HandlerError>(after.clone()).into_outcome(), after);
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        assert_eq!(cut("a".repeat(REASON_BYTES + 1)).len(), REASON_BYTES);
        let wide = cut("a".to_owned() + &"ü".repeat(REASON_BYTES));
        assert!(wide.len() == REASON_BYTES - 1 && wide.ends_with('ü'));
    }
}
