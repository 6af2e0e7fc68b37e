//! One client of the library with everything that keeps it alive: name, watchdog, reconnect count, end.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::{ClientLike, ClusterInterface, EventInterface};
use fred::types::config::{Options, Server};
use fred::types::{CustomCommand, Resp3Frame};
use overdue_telemetry::label::ConnectionRole;
use rand::RngExt;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::dial;
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::frame;
use crate::keeper::{Driver, Keeper, first_connect};
use crate::meter::{Meter, Presence};
use crate::order::{Order, Route};
use crate::way::{Sending, Way};
use crate::{ErrorKind, Result, Settings};

/// How long a forced reconnect, a polite end and the naming of a connection may take.
pub(crate) const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// How often it is looked whether there is a connection while an answer is waited for.
const GLANCE: Duration = Duration::from_millis(100);

/// A connection that reconnects for ever, until it is closed or dropped.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The address for errors, without password.
    pub(crate) place: String,
    clustered: bool,
    /// So many deadlines missed in a row mean that the server hangs.
    patience: u32,
    missed: AtomicU32,
    in_flight: AtomicUsize,
    forcing: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
    made: watch::Sender<u64>,
    driver: Driver,
    keeper: AbortHandle,
    meter: Meter,
}

impl Connection {
    /// Connects; fails fast and says why.
    pub(crate) async fn open(settings: &Settings, role: &str, carries: ConnectionRole) -> Result<Self> {
        let (at, tls) = settings.endpoint()?;
        let client = dial::client(settings, &at, tls);
        let begun = Self::begin(client, settings, &at, role, carries).await;
        begun.map_err(|fault| fault.during("connect", &at.to_string()))
    }

    /// Connects a client that was built by [`dial::client`], for those who say themselves what was being done.
    pub(crate) async fn begin(
        client: Client,
        settings: &Settings,
        at: &Endpoint,
        role: &str,
        carries: ConnectionRole,
    ) -> std::result::Result<Self, Fault> {
        let place = at.to_string();
        let driver = Driver::default();
        let closed = Arc::new(AtomicBool::new(false));
        let mut reconnects = client.reconnect_rx();
        // Boxed like every command (see `Sending`).
        let task = Box::pin(first_connect(&client, settings.connect_deadline)).await?;
        driver.set(&task);
        // The first one counts before anybody asks.
        let first: Vec<Server> = std::iter::from_fn(|| reconnects.try_recv().ok()).collect();
        let (made, _) = watch::channel(first.len() as u64);
        let keeper = Keeper {
            client: client.clone(),
            name: dial::name(role),
            made: made.clone(),
            driver: driver.clone(),
            closed: closed.clone(),
            presence: Presence::new(carries),
        };
        // Before any other command: at each answer the library takes the connection for free, and could not interrupt
        // a read that was sent behind this one.
        for server in first {
            Box::pin(keeper.set_name(server)).await;
        }
        let keeper = tokio::spawn(keeper.run(reconnects, task)).abort_handle();
        let patience = 2;
        Ok(Self {
            client,
            place,
            clustered: at.is_cluster(),
            patience,
            missed: AtomicU32::new(0),
            in_flight: AtomicUsize::new(0),
            forcing: Arc::default(),
            closed,
            made,
            driver,
            keeper,
            meter: Meter::default(),
        })
    }

    /// The same, but one missed deadline is enough to leave the server: for connections with one command at a time.
    pub(crate) fn impatient(mut self) -> Self {
        self.patience = 1;
        self
    }

    /// Waits at most so long until it is connected; answers whether it is.
    pub(crate) async fn is_up_within(&self, patience: Duration) -> bool {
        self.is_up() || self.wait_until_up(Instant::now() + patience).await.is_ok()
    }

    /// Waits for an answer as long as it is connected, and no longer: the library would wait until the deadline.
    pub(crate) async fn while_up<T>(
        &self,
        answer: impl Future<Output = std::result::Result<T, Fault>>,
    ) -> std::result::Result<T, Fault> {
        let broke = async {
            loop {
                sleep(GLANCE).await;
                if !self.is_up_within(GLANCE).await {
                    return;
                }
            }
        };
        tokio::select! {
            answer = answer => answer,
            () = broke => Err(Fault::new(ErrorKind::OutcomeUnknown, "the connection broke")),
        }
    }

    /// Whether it is connected.
    pub(crate) fn is_up(&self) -> bool {
        !self.closed.load(Relaxed) && self.client.is_connected()
    }

    /// Counts connections made, the first included.
    pub(crate) fn made(&self) -> watch::Receiver<u64> {
        self.made.subscribe()
    }

    /// Tries again, within the deadline, what was certainly not executed and passes at once.
    async fn persist(&self, order: &Order) -> std::result::Result<Resp3Frame, Fault> {
        let until = Instant::now() + order.deadline;
        let mut pause = Duration::from_millis(5);
        loop {
            let begun = Instant::now();
            let attempt = self.attempt(order, until).await;
            self.meter.count(order, begun.elapsed(), &attempt);
            let fault = match attempt {
                // On the connection to one node, a slot that has moved does not come back within the deadline.
                Err(fault) if !self.clustered && fault.text.starts_with("MOVED") => return Err(fault),
                Err(fault) if fault.passing && !fault.no_script => fault,
                other => return other,
            };
            let wait = by_chance(pause);
            if Instant::now() + wait >= until || matches!(order.route, Route::Blocking(_)) {
                return Err(fault);
            }
            sleep(wait).await;
            pause = (pause * 2).min(Duration::from_millis(250));
            if self.clustered {
                // The client learns of a changed cluster only from answers, and with one attempt it follows none.
                let _ = timeout(until - Instant::now(), self.client.sync_cluster()).await;
            }
        }
    }

    async fn attempt(&self, order: &Order, until: Instant) -> std::result::Result<Resp3Frame, Fault> {
        self.wait_until_up(until).await?;
        let (hash, blocking) = order.target(self.clustered);
        let options = Options {
            max_attempts: Some(1),
            timeout: Some(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))),
            ..Options::default()
        };
        let command = CustomCommand::new_static(order.name, hash, blocking);
        let others = InFlight::enter(&self.in_flight);
        let answer = self.client.with_options(&options).custom_raw(command, order.args.clone()).await;
        let answer = match answer {
            Ok(frame @ (Resp3Frame::SimpleError { .. } | Resp3Frame::BlobError { .. })) => {
                frame::reply(frame).map(|_| Resp3Frame::Null)
            }
            Ok(frame) => Ok(frame),
            Err(error) => Err(Fault::of_command(&error)),
        };
        match answer {
            // This one error drops the connection, and then stands as the answer of whatever else was in flight.
            Err(fault) if fault.text.starts_with("CLUSTERDOWN") && others.any() => {
                Err(Fault { kind: ErrorKind::OutcomeUnknown, ..fault })
            }
            Err(fault) => Err(self.watch(fault).await),
            ok => {
                self.missed.store(0, Relaxed);
                ok
            }
        }
    }

    /// A command that is never handed over is known not to be executed.
    async fn wait_until_up(&self, until: Instant) -> std::result::Result<(), Fault> {
        let mut made = self.made.subscribe();
        loop {
            if self.closed.load(Relaxed) {
                return Err(Fault::new(ErrorKind::Closed, "the connection is closed"));
            }
            if self.client.is_connected() {
                return Ok(());
            }
            tokio::select! {
                changed = made.changed() => match changed {
                    Ok(()) => return Ok(()),
                    Err(_) => return Err(Fault::new(ErrorKind::Closed, "the connection is closed")),
                },
                () = sleep(Duration::from_millis(20)) => {}
            }
            if Instant::now() >= until {
                return Err(Fault::new(ErrorKind::Unreachable, "no connection within the deadline"));
            }
        }
    }

    /// The watchdog: a server that hangs is left, one that became a replica too.
    async fn watch(&self, fault: Fault) -> Fault {
        if fault.silent {
            if self.missed.fetch_add(1, Relaxed) + 1 >= self.patience {
                self.missed.store(0, Relaxed);
                self.reconnect("the server does not answer").await;
            }
        } else {
            self.missed.store(0, Relaxed);
            if fault.text.contains("READONLY") {
                self.reconnect("the server is a replica").await;
            }
        }
        fault
    }

    /// Drops the connection and makes a new one, at most one attempt at a time. Whatever is sent after this returns
    /// is not sent on the old one.
    pub(crate) async fn reconnect(&self, why: &str) {
        if self.forcing.swap(true, Relaxed) {
            return;
        }
        debug!(place = self.place, why, "reconnecting");
        let (client, forcing) = (self.client.clone(), self.forcing.clone());
        let mut forced = Box::pin(async move { client.force_reconnection().await });
        // Once is enough to hand it over; its end is nothing to wait for.
        let over = poll_fn(|cx| Poll::Ready(forced.as_mut().poll(cx).is_ready())).await;
        tokio::spawn(async move {
            if !over {
                let _ = timeout(HOUSEKEEPING, forced).await;
            }
            // Not again at once: the next error of the same kind may be of the same moment.
            sleep(HOUSEKEEPING).await;
            forcing.store(false, Relaxed);
        });
    }

    /// Ends the connection: politely for a second, then for good.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Relaxed);
        let _ = timeout(HOUSEKEEPING, self.client.quit()).await;
        self.abort();
    }

    fn abort(&self) {
        self.closed.store(true, Relaxed);
        self.keeper.abort();
        self.driver.abort();
    }
}

impl Way for Connection {
    fn place(&self) -> &str {
        &self.place
    }

    fn send<'a>(&'a self, order: &'a Order) -> Sending<'a> {
        Box::pin(self.persist(order))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The library leaks task and connection of a client that is only dropped.
        self.abort();
    }
}

/// Half to one and a half times `wait`, so that many processes do not come back at one moment.
pub(crate) fn by_chance(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(0.5..1.5))
}

/// Counts the commands in flight; whoever goes leaves the count, cancelled or not.
struct InFlight<'a>(&'a AtomicUsize);

impl<'a> InFlight<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }

    /// Whether there are others.
    fn any(&self) -> bool {
        self.0.load(Relaxed) > 1
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
