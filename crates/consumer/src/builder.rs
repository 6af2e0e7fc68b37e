//! How a consumer is set up.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::call::From;
use overdue_store::{Error, Settings};
use overdue_telemetry::Health;

use crate::handler::Handler;
use crate::options::{self, Options};
use crate::outcome::IntoOutcome;
use crate::payload::Payload;
use crate::policy::Policy;
use crate::report::Report;
use crate::route::Routes;
use crate::run;
use crate::timeout::Timeout;

/// A consumer of one queue for one group, not running yet. `T` is what payloads are decoded as.
#[must_use = "a consumer does nothing until it is run"]
pub struct Consumer<T> {
    settings: Settings,
    queue: String,
    group: String,
    options: Options,
    routes: Routes,
    payload: PhantomData<fn() -> T>,
}

impl<T: Payload> Consumer<T> {
    /// A consumer with the defaults. Names are checked when it is run.
    pub fn builder(settings: Settings, queue: impl Into<String>, group: impl Into<String>) -> Self {
        let (queue, group) = (queue.into(), group.into());
        let (options, routes) = (Options::default(), Routes::default());
        Self { settings, queue, group, options, routes, payload: PhantomData }
    }

    /// How many handlers run at once, over all partitions. Default 64, at most 65,536.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.options.concurrency = handlers;
        self
    }

    /// How long a delivered timeout is ours without renewing; it is renewed every third of it. Default 30 s,
    /// 1 s to 1 day. After a death the timeout is handed to another consumer that much later.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = lease;
        self
    }

    /// After how many attempts a timeout that failed is a dead letter. Default 20.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.options.attempts = attempts;
        self
    }

    /// How long one run of the handler may take; longer is a retry. Default: no limit.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.options.limit = Some(limit);
        self
    }

    /// How long handlers may go on after the shutdown began; then they are dropped and their timeouts handed back.
    /// Default 25 s. The rest of the shutdown takes at most some 10 s more.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// Where the group begins if it is not there yet. Default: with everything that is in the stream.
    pub fn from(mut self, from: From) -> Self {
        self.options.from = from;
        self
    }

    /// How long a retry waits. Default [`crate::Backoff`].
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.options.policy = Arc::new(policy);
        self
    }

    /// The longest wait between two tries of what a handler has called [`crate::Outcome::Unreachable`]; the first comes
    /// after 1 s, each later one twice as late. Default 25 s, 1 s to 1 hour.
    pub fn probe(mut self, most: Duration) -> Self {
        self.options.probe = most;
        self
    }

    /// What stands in the place of the host in the consumer's name, `<host>:<pid>:<8 hex digits>`. The name is
    /// another one in each process and each run, whatever is given here: two consumers must never share one.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = Some(name.into());
        self
    }

    /// Where its loops report their progress. Default: nowhere.
    pub fn health(mut self, health: Health) -> Self {
        self.options.health = health;
        self
    }

    /// Handles with this closure what has a name that matches `pattern`: the name of the watched key, or the id of the timer.
    ///
    /// Patterns are Redis' own, as of KEYS and of watch rules: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a character that
    /// stands for itself. The first that matches wins; what none matches goes to the handler given to [`Consumer::run`].
    ///
    /// ```no_run
    /// # use overdue_consumer::{Consumer, Done, Error, Outcome, Raw, Report};
    /// # use overdue_store::Settings;
    /// # async fn example(stop: impl Future<Output = ()>) -> Result<Report, Error> {
    /// # async fn give_back(_: Raw) {}
    /// Consumer::<Raw>::builder(Settings::default(), "keys", "mail")
    ///     .on("session:*", |t| async move { println!("{:?} of db {:?} is over", t.key_name(), t.db()) })
    ///     .on("order:*:hold", |t| async move { give_back(t.into_payload()).await; Ok(Done) })
    ///     .run(|t| async move { Outcome::reject(format!("nobody handles {}", t.id())) }, stop)
    ///     .await
    /// # }
    /// ```
    pub fn on<F, Fut>(self, pattern: impl AsRef<[u8]>, handler: F) -> Self
    where
        F: Fn(Timeout<T>) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoOutcome,
    {
        self.route(pattern, handler)
    }

    /// As [`Consumer::on`], with a [`Handler`] that may take its payloads as another type:
    /// `route("order:*", |t: Timeout<Order>| async { ... })`; and may have [`crate::Terms`] of its own.
    pub fn route<U: Payload>(mut self, pattern: impl AsRef<[u8]>, handler: impl Handler<U>) -> Self {
        self.routes.add(pattern.as_ref(), handler);
        self
    }

    /// Handles timeouts with a closure until `shutdown` is ready; then finishes what is in hand and ends.
    ///
    /// # Errors
    /// As [`Consumer::serve`].
    pub async fn run<F, Fut>(self, handler: F, shutdown: impl Future<Output = ()>) -> Result<Report, Error>
    where
        F: Fn(Timeout<T>) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoOutcome,
    {
        self.serve(handler, shutdown).await
    }

    /// Handles timeouts with a [`Handler`] until `shutdown` is ready; then finishes what is in hand and ends.
    ///
    /// Dropping the returned future stops everything at once: handlers are dropped, and their timeouts are handed out
    /// again when their lease has run out.
    ///
    /// # Errors
    /// The settings are wrong, or Redis can't be reached or refuses us, at the start. Later nothing but a queue in a
    /// format that this version does not know ends it; every other fault is waited out.
    pub async fn serve<H: Handler<T>>(
        self,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Report, Error> {
        let (queue, group) = options::names(&self.queue, &self.group)?;
        self.options.check()?;
        self.routes.check()?;
        let of = format!("{queue}/{group}");
        let (work, reaches) = self.routes.and_rest(handler, &of, &self.options)?;
        run::run(&self.settings, queue, group, self.options, work, reaches, shutdown).await
    }
}
