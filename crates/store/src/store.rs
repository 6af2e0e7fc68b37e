//! The command connection of a process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::{Call, Keyspace, Reply, Script};
use overdue_telemetry::label::ConnectionRole;
use tokio::sync::{OnceCell, watch};

use crate::commands::Commands;
use crate::connection::Connection;
use crate::fault::Fault;
use crate::order::{Order, Route};
use crate::way::Way;
use crate::{Error, ErrorKind, Result, Settings};

/// The oldest server that has what we need.
const OLDEST: (u32, u32) = (6, 2);

/// One command connection to Redis, shared by every clone; on a cluster one to each primary.
///
/// Nothing is sent twice. The connection is made again for ever when it is lost, and left when the server hangs; a
/// call that meets no connection waits for one within its deadline.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    role: String,
    db: u8,
    commands: Commands,
    /// WAIT holds up everything behind it: it gets a connection of its own when it is first asked for.
    waiting: OnceCell<Connection>,
    aside: Aside,
}

/// Says what a script could not write aside: books and wake messages. All else was done.
struct Aside {
    /// When it was said last.
    said: Mutex<Option<Instant>>,
}

impl Aside {
    /// At most once in 3 s, which is 20 a minute.
    const EVERY: Duration = Duration::from_secs(3);

    fn say(&self, what: &str, error: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|at| at.elapsed() >= Self::EVERY) {
            *said = Some(Instant::now());
            tracing::warn!(
                what,
                error,
                "done, but its count or wake message could not be written; the audit will differ"
            );
        }
    }
}

impl Store {
    /// Connects and fails fast: reachable, a Redis of at least 6.2, user and password.
    ///
    /// `role` is what the connection is named by: `overdue-<role>:<host>:<pid>`.
    ///
    /// # Errors
    /// Within about `settings.connect_deadline`, with what to do.
    pub async fn connect(settings: &Settings, role: &str) -> Result<Self> {
        let db = settings.endpoint()?.0.db;
        let commands = Commands::open(settings, role).await?;
        let shared = Shared {
            settings: settings.clone(),
            role: role.to_owned(),
            db,
            commands,
            waiting: OnceCell::new(),
            aside: Aside { said: Mutex::default() },
        };
        let store = Self { shared: Arc::new(shared) };
        store.check_version().await?;
        Ok(store)
    }

    async fn check_version(&self) -> Result<()> {
        let refuse = |kind, said: &str| Err(Error::at(kind, "connect", self.place(), said));
        let info = match self.info("connect", "server").await {
            Ok(info) => info,
            // The one right that is not needed for the work itself.
            Err(error) if error.kind() == ErrorKind::Refused && error.to_string().contains("info") => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(version) = info.get("redis_version") else {
            return refuse(ErrorKind::NotRedis, "it does not say what it is");
        };
        let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
        let found: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if found < OLDEST {
            return refuse(ErrorKind::TooOld, &format!("its version is {version}"));
        }
        Ok(())
    }

    /// The keys that are ours.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        &self.shared.settings.keyspace
    }

    /// What this was connected with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The database number; 0 on a cluster.
    #[must_use]
    pub fn db(&self) -> u8 {
        self.shared.db
    }

    /// Whether this is a cluster.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.commands().is_cluster()
    }

    /// Runs a script once; never again when the outcome is not known.
    ///
    /// # Errors
    /// [`ErrorKind::OutcomeUnknown`] when it may have been executed; [`Error::was_executed`] says it of every kind.
    pub async fn run<C: Call>(&self, call: &C) -> Result<C::Answer> {
        let deadline = self.shared.settings.command_deadline;
        self.answer(call, self.commands().eval(call.script(), call.keys(), call.args(), deadline).await)
    }

    /// Runs a script, then waits until `replicas` have it, at most `deadline`; answers how many have it.
    ///
    /// Such calls share a connection of their own and wait for each other.
    ///
    /// # Errors
    /// As [`Store::run`]. A reconnect or an error between the script and its confirmation is `OutcomeUnknown` too.
    pub async fn run_with_wait<C: Call>(
        &self,
        call: &C,
        replicas: u32,
        deadline: Duration,
    ) -> Result<(C::Answer, u32)> {
        let Shared { settings, role, .. } = &*self.shared;
        let open = || Connection::open(settings, role, ConnectionRole::Command);
        let connection = self.shared.waiting.get_or_try_init(open).await?;
        let made = connection.made();
        let before = *made.borrow();
        let allowed = self.shared.settings.command_deadline + deadline;
        let answer =
            self.answer(call, connection.eval(call.script(), call.keys(), call.args(), allowed).await)?;
        let route = call.keys().first().map_or(Route::Any, |key| Route::Slot(fred::util::redis_keyslot(key)));
        // 0 milliseconds would mean for ever.
        let millis = i64::try_from(deadline.as_millis()).unwrap_or(i64::MAX).max(1);
        let args = vec![Value::Integer(replicas.into()), Value::Integer(millis)];
        let wait = Order::new("WAIT", args, route, allowed);
        let unknown = |why: &str| {
            let why = format!("the call was executed, but not confirmed by {replicas} replicas ({why})");
            Error::at(ErrorKind::OutcomeUnknown, call.what(), self.place(), &why)
        };
        let confirmed =
            connection.ask("wait for replicas", &wait).await.map_err(|error| unknown(&error.to_string()))?;
        if *made.borrow() != before {
            // WAIT speaks of its own connection only.
            return Err(unknown("the connection was lost in between"));
        }
        let confirmed = confirmed.as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        Ok((answer, confirmed))
    }

    fn answer<C: Call>(&self, call: &C, reply: std::result::Result<Reply, Fault>) -> Result<C::Answer> {
        let reply = reply.map_err(|fault| fault.during(call.what(), self.place()))?;
        if let Some(error) = call.side_error(&reply) {
            self.shared.aside.say(&call.what(), &error);
        }
        call.answer(reply).map_err(|what| Error::malformed(call.what(), what))
    }

    /// How often the command connection was made; grows at each reconnect.
    #[must_use]
    pub fn reconnects(&self) -> watch::Receiver<u64> {
        self.commands().made()
    }

    /// The server's clock, unix milliseconds.
    ///
    /// # Errors
    /// As [`Store::run`].
    pub async fn time_ms(&self) -> Result<u64> {
        let doing = "ask for the time";
        let reply = self.command(doing, "TIME", vec![], Route::Any).await?;
        let parts: Vec<u64> =
            reply.into_array().unwrap_or_default().iter().filter_map(Reply::as_u64).collect();
        match parts[..] {
            [seconds, micros] => Ok(seconds * 1_000 + micros / 1_000),
            _ => Err(Error::malformed(doing, overdue_protocol::Malformed("TIME did not answer two numbers"))),
        }
    }

    /// Closes the connection, politely for at most a second. Later calls answer `Closed`.
    pub async fn close(&self) {
        if let Some(waiting) = self.shared.waiting.get() {
            waiting.close().await;
        }
        self.commands().close().await;
    }

    fn commands(&self) -> &Commands {
        &self.shared.commands
    }

    pub(crate) fn connection(&self) -> &Commands {
        self.commands()
    }

    pub(crate) fn place(&self) -> &str {
        &self.commands().place
    }

    /// Sends one plain command. Only for replies that never begin with what users wrote.
    pub(crate) async fn command(
        &self,
        doing: &str,
        name: &'static str,
        args: Vec<Value>,
        route: Route,
    ) -> Result<Reply> {
        let deadline = self.shared.settings.command_deadline;
        self.commands().ask(doing, &Order::new(name, args, route, deadline)).await
    }

    /// Runs a read script: `{n, {...}}`, of which the nested part is returned.
    pub(crate) async fn read(
        &self,
        doing: &str,
        script: &'static Script,
        keys: Vec<Bytes>,
        args: Vec<Bytes>,
    ) -> Result<Vec<Reply>> {
        let reply = self.commands().eval(script, keys, args, self.shared.settings.command_deadline).await;
        let reply = reply.map_err(|fault: Fault| fault.during(doing, self.place()))?;
        let rest = reply.into_array().and_then(|parts| parts.into_iter().nth(1)).and_then(Reply::into_array);
        rest.ok_or_else(|| {
            Error::malformed(doing, overdue_protocol::Malformed("a read script did not answer {n, {...}}"))
        })
    }
}
