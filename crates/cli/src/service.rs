//! What the long-running commands share: metrics and health on a port, a place in the list of members, and an
//! end that is orderly. Never a process that lives on by half: a loop that ends by itself, or a panic anywhere,
//! ends the process with a line that says so.

mod member;
mod panics;
mod probe;

use std::time::Duration;

use overdue_protocol::Namespace;
use overdue_store::Store;
use overdue_telemetry::http::Server;
use overdue_telemetry::{Health, Registry, http};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::exit::{Exit, Failure};
use crate::interrupt::Stop;
use crate::settings::Listen;

pub(crate) use member::{Identity, process_name};

/// How long the tasks beside the work may take to end: one last call to Redis, bounded by itself.
const BESIDE: Duration = Duration::from_secs(2);

/// One service from its first line to its last.
pub(crate) struct Service {
    pub(crate) health: Health,
    /// Cancelled by a signal, and when something broke: all work ends.
    pub(crate) stop: CancellationToken,
    panicked: CancellationToken,
    server: Option<Server>,
    /// The tasks beside the work. They end after it, so that its last moments can be watched.
    beside: TaskTracker,
    beside_stop: CancellationToken,
}

impl Service {
    /// Sets up metrics, signals, the watch for panics, and /metrics, /livez and /readyz. Everything that takes
    /// metric handles comes later. `role` and `namespace` are what the metrics say of it. A second signal calls `at_once`, then ends the process.
    ///
    /// # Errors
    /// The address can't be bound, or the system refuses a signal handler.
    pub(crate) async fn begin(
        listen: Listen,
        role: &str,
        namespace: &Namespace,
        at_once: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Failure> {
        let version = env!("CARGO_PKG_VERSION");
        let registry = Registry::install(version, role, namespace.as_str())
            .map_err(|e| Failure::new(Exit::Fault, e.to_string()))?;
        let stop = Stop::on_signals_then(at_once)?.token;
        let (health, panicked) = (Health::default(), panics::watch());
        let (beside, beside_stop) = (TaskTracker::new(), CancellationToken::new());
        let server = match listen {
            Listen::Off => None,
            Listen::At(addr) => {
                let serving = http::serve(addr, registry.clone(), health.clone(), beside_stop.clone());
                let busy =
                    |error| format!("cannot serve metrics on {addr}: {error}: give another --listen, or off");
                Some(serving.await.map_err(|error| Failure::new(Exit::Usage, busy(error)))?)
            }
        };
        let upkeep = beside_stop.clone();
        beside.spawn(async move { registry.upkeep(upkeep).await });
        Ok(Self { health, stop, panicked, server, beside, beside_stop })
    }

    /// A step of the start. A signal meanwhile ends the program quietly.
    ///
    /// # Errors
    /// Those of the step.
    pub(crate) async fn step<T, E: Into<Failure>>(
        &self,
        step: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = step => done.map_err(Into::into),
            () = self.stop.cancelled() => Err(Failure::silent(Exit::Done)),
        }
    }

    /// Says where metrics and health are. Only after the start: an error there is one line and nothing else.
    pub(crate) fn announce(&self) {
        if let Some(server) = &self.server {
            tracing::info!(addr = %server.addr(), "listening");
        }
    }

    /// Writes this process into the list of members, and asks now and then whether Redis answers.
    pub(crate) fn accompany(&self, store: &Store, identity: Identity) {
        let stop = self.beside_stop.clone();
        self.beside.spawn(probe::run(store.clone(), self.health.clone(), stop.clone()));
        let progress = member::register(&self.health);
        self.beside.spawn(member::run(store.clone(), identity, self.health.clone(), progress, stop));
    }

    /// Waits for a signal, then for the loops, at most `drain`. The loops must end when [`Service::stop`] says so.
    ///
    /// # Errors
    /// A loop ended by itself, or something panicked.
    pub(crate) async fn watch(
        &self,
        mut loops: JoinSet<&'static str>,
        drain: Duration,
    ) -> Result<(), Failure> {
        let ended = tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(()),
            failure = self.panicked() => Err(failure),
            ended = loops.join_next() => Err(match ended {
                Some(Ok(name)) => fault(&format!("the {name} ended by itself")),
                _ => fault("a loop panicked"),
            }),
        };
        tracing::info!("stopping");
        self.stop.cancel();
        let drained = tokio::time::timeout(drain, async { while loops.join_next().await.is_some() {} });
        if drained.await.is_err() {
            tracing::warn!(after_s = drain.as_secs(), "calls to Redis are still under way; leaving them");
        }
        ended
    }

    /// Waits for a panic, for ever if there is none.
    pub(crate) async fn panicked(&self) -> Failure {
        self.panicked.cancelled().await;
        fault("something panicked")
    }

    /// Ends what runs beside the work; the last thing before the process ends.
    pub(crate) async fn end(self) {
        self.beside_stop.cancel();
        self.beside.close();
        // What does not end in time ends with the process.
        let _ = tokio::time::timeout(BESIDE, self.beside.wait()).await;
        if let Some(server) = self.server {
            server.stopped().await;
        }
    }
}

/// A fault of our own.
pub(crate) fn fault(what: &str) -> Failure {
    Failure::new(Exit::Fault, format!("{what}: this process ends, so that it can be started anew"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            health: Health::default(),
            stop: CancellationToken::new(),
            panicked: CancellationToken::new(),
            server: None,
            beside: TaskTracker::new(),
            beside_stop: CancellationToken::new(),
        }
    }

    /// A loop that runs until the stop, and one that does what `odd` does.
    async fn watch(service: &Service, odd: impl Future<Output = &'static str> + Send + 'static) -> String {
        let mut loops = JoinSet::new();
        let stop = service.stop.clone();
        loops.spawn(async move {
            stop.cancelled().await;
            "listener"
        });
        loops.spawn(odd);
        let ended = service.watch(loops, Duration::from_secs(1)).await;
        ended.err().map(|failure| failure.lines().collect()).unwrap_or_default()
    }

    #[tokio::test]
    async fn a_loop_that_ends_by_itself_or_panics_ends_all() {
        let text = watch(&service(), async { "reconciler" }).await;
        assert!(text.starts_with("the reconciler ended by itself: "), "{text}");
        let text = watch(&service(), async { panic!("a fault in a test") }).await;
        assert!(text.starts_with("a loop panicked: "), "{text}");
        let service = service();
        service.panicked.cancel();
        let text = watch(&service, std::future::pending()).await;
        assert!(text.starts_with("something panicked: "), "{text}");
        assert!(service.stop.is_cancelled());
    }

    #[tokio::test]
    async fn a_stop_is_no_failure_and_a_loop_that_does_not_end_is_left() {
        let service = service();
        service.stop.cancel();
        assert_eq!(watch(&service, std::future::pending()).await, "");
        assert!(
            service
                .step(std::future::pending::<Result<(), Failure>>())
                .await
                .is_err_and(|f| f.exit() == Exit::Done)
        );
    }
}
