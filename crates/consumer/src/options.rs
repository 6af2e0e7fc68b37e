//! How a consumer works, checked.

use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::call::From;
use overdue_protocol::{GroupName, QueueName};
use overdue_store::{Error, ErrorKind};
use overdue_telemetry::Health;

use crate::policy::{Backoff, Policy};

/// What was asked for.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) attempts: u32,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) from: From,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) probe: Duration,
    pub(crate) name: Option<String>,
    pub(crate) health: Health,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease: Duration::from_secs(30),
            attempts: 20,
            limit: None,
            grace: Duration::from_secs(25),
            from: From::Oldest,
            policy: Arc::new(Backoff::default()),
            probe: Duration::from_secs(25),
            name: None,
            health: Health::default(),
        }
    }
}

impl Options {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Settings`], with what is allowed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(wrong(what));
        if !(1..=65_536).contains(&self.concurrency) {
            return wrong("concurrency is not between 1 and 65536");
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&self.lease) {
            return wrong("lease is not between 1 s and 1 day");
        }
        if self.attempts == 0 {
            return wrong("attempts is 0: write 1 for no retry at all");
        }
        if self.limit.is_some_and(|limit| limit.is_zero()) {
            return wrong("the limit of a handler is 0");
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&self.probe) {
            return wrong("the longest wait between two probes is not between 1 s and 1 hour");
        }
        if self.name.as_ref().is_some_and(|name| name.is_empty() || name.len() > 128) {
            return wrong("the name of a consumer has 1 to 128 bytes");
        }
        Ok(())
    }
}

/// The names, checked.
pub(crate) fn names(queue: &str, group: &str) -> Result<(QueueName, GroupName), Error> {
    let queue = QueueName::new(queue).map_err(|error| wrong(error.to_string()))?;
    let group = GroupName::new(group).map_err(|error| wrong(error.to_string()))?;
    Ok((queue, group))
}

/// What was asked for can't be.
pub(crate) fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Settings, "start the consumer", what.into())
}
