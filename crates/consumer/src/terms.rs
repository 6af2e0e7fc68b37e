//! What holds for one handler: its attempts, its limit, its waits.

use std::sync::Arc;
use std::time::Duration;

use overdue_store::Error;

use crate::handler::Handler;
use crate::options::{self, Options};
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::timeout::Timeout;

/// What holds for one handler where it differs from its consumer; what is not said here is as the consumer has it.
///
/// ```no_run
/// # use std::time::Duration;
/// # use overdue_consumer::{Consumer, Done, Error, Outcome, Raw, Report, Terms, Timeout};
/// # use overdue_store::Settings;
/// # async fn example(stop: impl Future<Output = ()>) -> Result<Report, Error> {
/// let charge = |_: Timeout<Raw>| async { Ok(Done) };
/// Consumer::<Raw>::builder(Settings::default(), "keys", "mail")
///     .route("order:*", Terms::new().attempts(3).limit(Duration::from_secs(5)).on(charge))
///     .run(|_| async { Ok(Done) }, stop)
///     .await
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Terms {
    attempts: Option<u32>,
    limit: Option<Duration>,
    policy: Option<Arc<dyn Policy>>,
}

impl Terms {
    /// Those of the consumer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// After how many attempts a timeout that failed is a dead letter; at least 1.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// How long one run of the handler may take; longer is a retry.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// How long a retry waits.
    #[must_use]
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// The handler, on these terms. What these do not say, the terms of the handler itself do.
    pub fn on<H>(self, handler: H) -> OnTerms<H> {
        OnTerms { terms: self, handler }
    }

    /// These, and where they say nothing, those.
    fn or(self, rest: Self) -> Self {
        Self {
            attempts: self.attempts.or(rest.attempts),
            limit: self.limit.or(rest.limit),
            policy: self.policy.or(rest.policy),
        }
    }

    /// With nothing left open.
    ///
    /// # Errors
    /// [`overdue_store::ErrorKind::Settings`]: `of` names the handler.
    pub(crate) fn settle(self, of: &str, options: &Options) -> Result<Settled, Error> {
        if self.attempts == Some(0) {
            return Err(options::wrong(format!("attempts of {of} is 0: write 1 for no retry at all")));
        }
        if self.limit.is_some_and(|limit| limit.is_zero()) {
            return Err(options::wrong(format!("the limit of {of} is 0")));
        }
        Ok(Settled {
            attempts: self.attempts.unwrap_or(options.attempts),
            limit: self.limit.or(options.limit),
            policy: self.policy.unwrap_or_else(|| options.policy.clone()),
        })
    }
}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terms")
            .field("attempts", &self.attempts)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The terms of a handler, complete.
pub(crate) struct Settled {
    pub(crate) attempts: u32,
    pub(crate) limit: Option<Duration>,
    pub(crate) policy: Arc<dyn Policy>,
}

/// A handler with terms of its own: see [`Terms::on`].
#[derive(Clone, Debug)]
pub struct OnTerms<H> {
    terms: Terms,
    handler: H,
}

impl<T: Send, H: Handler<T>> Handler<T> for OnTerms<H> {
    fn handle(&self, timeout: Timeout<T>) -> impl Future<Output = Outcome> + Send {
        self.handler.handle(timeout)
    }

    fn terms(&self) -> Terms {
        self.terms.clone().or(self.handler.terms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Raw;

    #[test]
    fn what_is_not_said_is_as_outside() {
        let options = Options { limit: Some(Duration::from_secs(9)), ..Options::default() };
        let inner =
            Terms::new().attempts(5).policy(|_: u32| Duration::from_secs(7)).on(|_: Timeout<Raw>| async {});
        let outer = Terms::new().attempts(3).on(inner);
        let settled = Handler::<Raw>::terms(&outer).settle("it", &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((settled.attempts, settled.limit), (3, Some(Duration::from_secs(9))));
        assert_eq!(settled.policy.wait(1), Duration::from_secs(7));
        let own = Terms::new().settle("it", &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((own.attempts, own.limit), (20, Some(Duration::from_secs(9))));
    }

    #[test]
    fn terms_that_cannot_be_are_refused_by_name() {
        let refused = |terms: Terms| match terms.settle("the handler of \"a*\"", &Options::default()) {
            Ok(_) => panic!("taken"),
            Err(error) => error.to_string(),
        };
        assert!(refused(Terms::new().attempts(0)).contains("attempts of the handler of \"a*\" is 0"));
        assert!(refused(Terms::new().limit(Duration::ZERO)).contains("limit of the handler of \"a*\" is 0"));
    }
}
