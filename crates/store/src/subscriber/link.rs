//! The subscription of one node.
//!
//! The library says Ok to PSUBSCRIBE before the server has answered, and gives the answer of a refused one to the next
//! command. So every (re)connect is followed by PSUBSCRIBE and CLIENT INFO, and only `psub=` of that answer counts.
//! Nobody else sends on this connection.

use std::collections::BTreeSet;
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::{EventInterface, PubsubInterface};
use fred::types::config::{Server, TlsConfig};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use super::board::Word;
use super::pump::Pump;
use crate::connection::{Connection, by_chance};
use crate::dial::{self, Purpose};
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::frame;
use crate::order::{Order, Route};
use crate::{ErrorKind, Result, Settings, Signal};

/// How often a node is asked whether it answers, and how long it may take.
const HEARTBEAT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(500));
/// How long a node may take to confirm a subscription.
const CONFIRM: Duration = Duration::from_secs(1);
/// The first and the longest wait after a subscription that was not confirmed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Slots that the library sets aside for what is not fetched yet, some 600 bytes each.
const SLOTS_FOR_EVENTS: usize = 65_536;
const SLOTS_FOR_MESSAGES: usize = 8_192;

/// Where a link puts what it hears.
#[derive(Clone)]
pub(super) struct Outlet {
    pub(super) words: mpsc::Sender<Word>,
    pub(super) signals: mpsc::Sender<Signal>,
}

/// A subscription that is confirmed and kept so.
pub(super) struct Link {
    node: String,
    outlet: Outlet,
    connection: std::sync::Arc<Connection>,
    tasks: [AbortHandle; 2],
}

impl Link {
    /// Connects, subscribes and waits for the confirmation.
    pub(super) async fn open(
        settings: &Settings,
        at: &Endpoint,
        tls: Option<TlsConfig>,
        role: &str,
        patterns: Vec<String>,
        outlet: Outlet,
    ) -> Result<Self> {
        let patterns: Vec<String> = patterns.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let events = patterns.iter().any(|pattern| is_event(pattern));
        let slots = if events { SLOTS_FOR_EVENTS } else { SLOTS_FOR_MESSAGES };
        let client = dial::client(settings, at, tls, Purpose::Subscription { slots });
        // Before the first connect, or what comes at once is missed.
        let pump = Pump::of(&client);
        let (reconnects, errors) = (client.reconnect_rx(), client.error_rx());
        let connection = Connection::start(client, settings, at, None).await?.impatient();
        let connection = std::sync::Arc::new(connection);
        let node = at.to_string();
        let mut guard = Guard {
            connection: connection.clone(),
            node: node.clone(),
            name: dial::name(role),
            words: outlet.words.clone(),
            patterns,
            reconnects,
            errors,
            up: false,
            failures: 0,
            next: Instant::now(),
        };
        guard.confirm().await.map_err(|fault| fault.during("subscribe", &node))?;
        guard.say(true).await;
        let tasks = [
            tokio::spawn(pump.run(outlet.signals.clone())).abort_handle(),
            tokio::spawn(guard.run()).abort_handle(),
        ];
        Ok(Self { node, outlet, connection, tasks })
    }

    /// Ends it; the board forgets the node.
    pub(super) async fn close(self) {
        self.tasks[1].abort();
        let _ = self.outlet.words.send(Word::Gone(self.node.clone())).await;
        self.connection.close().await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Whether a pattern is for notifications, which every node of a cluster sends only of its own keys.
pub(super) fn is_event(pattern: &str) -> bool {
    pattern.starts_with("__key")
}

/// Keeps the subscription confirmed.
struct Guard {
    connection: std::sync::Arc<Connection>,
    node: String,
    name: String,
    words: mpsc::Sender<Word>,
    patterns: Vec<String>,
    reconnects: broadcast::Receiver<Server>,
    errors: broadcast::Receiver<(fred::error::Error, Option<Server>)>,
    up: bool,
    failures: u32,
    /// When to ask next: for a heartbeat while up, for a confirmation while down.
    next: Instant,
}

impl Guard {
    async fn run(mut self) {
        loop {
            tokio::select! {
                made = self.reconnects.recv() => {
                    if matches!(made, Err(RecvError::Closed)) {
                        return;
                    }
                    self.say(false).await;
                    // After a failure the wait goes on: a server that takes connections only to drop them is not rushed.
                    if self.failures == 0 {
                        self.next = Instant::now();
                    }
                }
                broken = self.errors.recv() => {
                    if matches!(broken, Err(RecvError::Closed)) {
                        return;
                    }
                    if self.up {
                        self.say(false).await;
                        self.next = Instant::now() + HEARTBEAT.0;
                    }
                }
                () = sleep_until(self.next) => {
                    if self.up { self.beat().await } else { self.try_to_confirm().await }
                }
            }
        }
    }

    async fn say(&mut self, up: bool) {
        if up == self.up {
            return;
        }
        self.up = up;
        // Whoever holds the subscription says it in the log.
        debug!(node = self.node, up, "subscription");
        let word = if up { Word::Up(self.node.clone()) } else { Word::Down(self.node.clone()) };
        let _ = self.words.send(word).await;
        self.next = Instant::now() + HEARTBEAT.0;
    }

    async fn beat(&mut self) {
        let ping = Order { name: "PING", args: vec![], route: Route::Any, deadline: HEARTBEAT.1 };
        // A missed deadline makes the connection leave the server.
        match self.connection.send(&ping).await {
            Ok(_) => {
                self.failures = 0;
                self.next = Instant::now() + HEARTBEAT.0;
            }
            Err(_) => self.say(false).await,
        }
    }

    async fn try_to_confirm(&mut self) {
        match self.confirm().await {
            Ok(()) => self.say(true).await,
            Err(fault) => {
                // A server that is away is the holder's news. The second and third refusal follow within a second.
                if fault.kind == ErrorKind::Refused && !matches!(self.failures, 1 | 2) {
                    warn!(
                        node = self.node,
                        why = fault.text,
                        "the subscription is not confirmed; trying again"
                    );
                }
                // The answer of a refused PSUBSCRIBE has shifted all others: only a new connection is in order again.
                self.connection.reconnect("the subscription is not confirmed").await;
                let wait = BACKOFF.0 * 2u32.pow(self.failures.min(8));
                self.failures += 1;
                self.next = Instant::now() + by_chance(wait.min(BACKOFF.1));
            }
        }
    }

    async fn confirm(&mut self) -> std::result::Result<(), Fault> {
        // What is known by now must not be taken for news after the confirmation.
        while !matches!(self.reconnects.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
        while !matches!(self.errors.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
        subscribe(&self.connection.client, self.patterns.clone()).await?;
        let info = Order { name: "CLIENT", args: vec!["INFO".into()], route: Route::Any, deadline: CONFIRM };
        let info = frame::reply(self.connection.send(&info).await?)?;
        let held =
            info.as_str().and_then(|info| info.split(' ').find_map(|field| field.strip_prefix("psub=")));
        if held == Some(self.patterns.len().to_string().as_str()) {
            // Not before: the first command behind PSUBSCRIBE is given its refusal.
            let args = vec!["SETNAME".into(), self.name.clone().into()];
            let name = Order { name: "CLIENT", args, route: Route::Any, deadline: CONFIRM };
            let _ = self.connection.send(&name).await;
            return Ok(());
        }
        let held = held.unwrap_or("unknown");
        // Its own words are lost when they came before the next command was sent.
        let text = format!(
            "it holds {held} of {} patterns; may the user subscribe to these channels (ACL: +psubscribe, +client|info, &*)",
            self.patterns.len()
        );
        Err(Fault::new(ErrorKind::Refused, text))
    }
}

async fn subscribe(client: &Client, patterns: Vec<String>) -> std::result::Result<(), Fault> {
    client.psubscribe(patterns).await.map_err(|error| Fault::of_command(&error))
}
