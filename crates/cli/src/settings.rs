//! The settings of all programs: flags over `OVERDUE_...` environment over one TOML file over defaults.
//!
//! First what was typed ([`layers`]), then what is valid ([`Settings`]). Every setting is defined once, in
//! [`table`] or, for what stands in lists, in the table of the [`list`]; flags, environment names, `config sample`, `config check`
//! and `config show` follow from it.

pub(crate) mod consumer;
mod environment;
mod file;
pub(crate) mod flags;
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod layers;
pub(crate) mod list;
pub(crate) mod nearest;
pub(crate) mod parse;
pub(crate) mod sample;
mod secret;
pub(crate) mod show;
pub(crate) mod table;
mod value;
pub(crate) mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use overdue_protocol::watch::Rule;
use overdue_protocol::{Keyspace, QueueName};
use overdue_reconciler::GroupRule;
use overdue_relay::KeyspaceEvents;
use overdue_store::Secret;
use overdue_telemetry::logs::Format;

use crate::settings::consumer::{ConsumerRule, HandlerRule};
use crate::settings::layers::Layers;

/// Everything that can be set, valid. Units, bounds and special values stand in [`table`].
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How to reach Redis, ready for [`overdue_store::Store::connect`]; holds the namespace.
    pub(crate) redis: overdue_store::Settings,
    pub(crate) log: Log,
    pub(crate) client: Client,
    pub(crate) relay: Relay,
    pub(crate) consume: Consume,
    /// `[[group]]`: plain groups, in their order, each (queue, name) once; at most 256.
    pub(crate) groups: Vec<GroupRule>,
    /// `[[consumer]]`, in their order, each (queue, group) once and none of them a plain group; at most 64.
    pub(crate) consumers: Vec<ConsumerRule>,
}

/// `[log]`
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) format: Format,
    /// `None` = `info` for relay and consume, `warn` for the other commands.
    pub(crate) filter: Option<String>,
}

/// `[client]`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    /// Bytes.
    pub(crate) max_payload: usize,
}

/// `[relay]`
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    /// Empty = every queue, those created later too.
    pub(crate) queues: Vec<QueueName>,
    pub(crate) listen: Listen,
    pub(crate) grace: Duration,
    /// Timers in one sweep call.
    pub(crate) page: u32,
    /// Notifications held while Redis is slow.
    pub(crate) buffer: usize,
    pub(crate) keyspace_events: KeyspaceEvents,
    /// In their order, names unique; at most 256.
    pub(crate) watch: Vec<Rule>,
    pub(crate) notifications: Notifications,
    /// Keys that SCAN walks over in a second, on each node.
    pub(crate) scan_keys_per_s: u32,
    /// Between two SCANs that nothing asked for.
    pub(crate) scan_every: Duration,
    /// The largest value of a watched key that becomes a payload, in bytes; 0 to 1 MiB.
    pub(crate) value_max: u32,
    /// Dead letters that a partition keeps.
    pub(crate) dead_max: u64,
    pub(crate) dead_max_age: Duration,
}

/// How the relay hears of watched keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notifications {
    /// By `__keyspace@` channels: the server sends what the patterns match.
    Keyspace,
    /// By `__keyevent@` channels: the server sends the events of every key.
    Keyevent,
}

/// `[consume]`
#[derive(Clone, Debug)]
pub(crate) struct Consume {
    pub(crate) listen: Listen,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) attempts: u32,
    /// `None` = an attempt may run for ever.
    pub(crate) limit: Option<Duration>,
    /// For handlers, after SIGTERM.
    pub(crate) grace: Duration,
    pub(crate) retry_wait: Duration,
    /// At least `retry_wait`.
    pub(crate) retry_wait_max: Duration,
    /// Between two tries of an endpoint that can't be reached, at most.
    pub(crate) probe_max: Duration,
    /// Requests to one webhook endpoint at the same time.
    pub(crate) webhook_connections: usize,
    /// As `limit`, but 30 s when that is not set.
    pub(crate) webhook_limit: Option<Duration>,
    /// `None` = the authorities of the system.
    pub(crate) webhook_ca_file: Option<PathBuf>,
}

/// How long a request of a webhook may take when nothing is said.
const WEBHOOK_LIMIT: Duration = Duration::from_secs(30);

impl Consume {
    /// The limit of such a handler, when nothing more is said.
    pub(crate) fn limit_of(&self, handler: &HandlerRule) -> Option<Duration> {
        match handler {
            HandlerRule::Webhook { .. } => self.webhook_limit,
            _ => self.limit,
        }
    }
}

/// Where /metrics, /livez and /readyz are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    /// Port 0 = any free one.
    At(SocketAddr),
}

impl Settings {
    /// Checks all that was given.
    ///
    /// # Errors
    /// All that is wrong, a line each, with the place where it stands.
    pub(crate) fn resolve(mut layers: Layers) -> Result<Self, Vec<String>> {
        let redis = read_redis(&mut layers);
        let log = Log { format: layers.read(&table::LOG_FORMAT), filter: layers.read(&table::LOG_FILTER) };
        let client = Client { max_payload: layers.read(&table::MAX_PAYLOAD) };
        let relay = read_relay(&mut layers, &redis);
        let consume = read_consume(&mut layers);
        let consumers = consumer::read(&mut layers, &consume);
        let settings = Self {
            log,
            client,
            relay,
            groups: group::read(&mut layers, &consumers),
            consumers,
            consume,
            redis,
        };
        settings.check(&mut layers);
        let errors = layers.into_errors();
        if errors.is_empty() { Ok(settings) } else { Err(errors) }
    }
}

impl Settings {
    /// What no single setting shows. The store reads the URL closer, once nothing else is wrong.
    fn check(&self, layers: &mut Layers) {
        let retry_wait = layers.look_up(&table::CONSUME_RETRY_WAIT.entry).origin;
        if self.consume.retry_wait > self.consume.retry_wait_max {
            layers.note(&retry_wait, "consume.retry_wait is longer than consume.retry_wait_max");
        }
        let url = layers.look_up(&table::URL.entry).origin;
        if layers.errors().is_empty()
            && let Err(error) = self.redis.check()
        {
            layers.note(&url, &error.to_string());
        }
    }
}

fn read_redis(layers: &mut Layers) -> overdue_store::Settings {
    let ca_file = layers.read(&table::CA_FILE);
    if let Some(problem) = ca_file.as_deref().and_then(unreadable) {
        let origin = layers.look_up(&table::CA_FILE.entry).origin;
        layers.note(&origin, &problem);
    }
    overdue_store::Settings {
        url: layers.read(&table::URL),
        username: layers.read(&table::USERNAME),
        password: read_password(layers),
        ca_file,
        keyspace: Keyspace::new(layers.read(&table::NAMESPACE)),
        connect_deadline: layers.read(&table::CONNECT_DEADLINE),
        command_deadline: layers.read(&table::COMMAND_DEADLINE),
    }
}

/// `password` or `password_file`: the one from the stronger layer. Both in one layer is an error.
fn read_password(layers: &mut Layers) -> Option<Secret> {
    let strength = |origin: &layers::Origin| std::mem::discriminant(origin);
    let password = layers.read(&table::PASSWORD);
    let path = layers.read(&table::PASSWORD_FILE);
    let (direct, file) =
        (layers.look_up(&table::PASSWORD.entry), layers.look_up(&table::PASSWORD_FILE.entry));
    let Some(path) = path else { return password };
    if password.is_some() && strength(&direct.origin) == strength(&file.origin) {
        layers.note(&file.origin, "redis.password and redis.password_file are both set: keep one");
        return password;
    }
    if password.is_some() && direct.origin > file.origin {
        return password;
    }
    secret::read_password(&path).map_err(|problem| layers.note(&file.origin, &problem)).ok()
}

fn unreadable(path: &Path) -> Option<String> {
    let error = std::fs::File::open(path).err()?;
    Some(format!("cannot read {}: {error}", path.display()))
}

fn read_relay(layers: &mut Layers, redis: &overdue_store::Settings) -> Relay {
    Relay {
        queues: layers.read(&table::RELAY_QUEUES),
        listen: layers.read(&table::RELAY_LISTEN),
        grace: layers.read(&table::RELAY_GRACE),
        page: layers.read(&table::RELAY_PAGE),
        buffer: layers.read(&table::RELAY_BUFFER),
        keyspace_events: layers.read(&table::RELAY_KEYSPACE_EVENTS),
        watch: watch::read(layers, redis),
        notifications: layers.read(&table::RELAY_NOTIFICATIONS),
        scan_keys_per_s: layers.read(&table::RELAY_SCAN_KEYS_PER_S),
        scan_every: layers.read(&table::RELAY_SCAN_EVERY),
        value_max: layers.read(&table::RELAY_VALUE_MAX),
        dead_max: layers.read(&table::RELAY_DEAD_MAX),
        dead_max_age: layers.read(&table::RELAY_DEAD_MAX_AGE),
    }
}

fn read_consume(layers: &mut Layers) -> Consume {
    let limit = layers.read(&table::CONSUME_LIMIT);
    let is_said = layers.look_up(&table::CONSUME_LIMIT.entry).origin != layers::Origin::Default;
    Consume {
        listen: layers.read(&table::CONSUME_LISTEN),
        concurrency: layers.read(&table::CONSUME_CONCURRENCY),
        lease: layers.read(&table::CONSUME_LEASE),
        attempts: layers.read(&table::CONSUME_ATTEMPTS),
        limit,
        webhook_limit: if is_said { limit } else { Some(WEBHOOK_LIMIT) },
        webhook_ca_file: layers.read(&table::CONSUME_WEBHOOK_CA_FILE),
        grace: layers.read(&table::CONSUME_GRACE),
        retry_wait: layers.read(&table::CONSUME_RETRY_WAIT),
        retry_wait_max: layers.read(&table::CONSUME_RETRY_WAIT_MAX),
        probe_max: layers.read(&table::CONSUME_PROBE_MAX),
        webhook_connections: layers.read(&table::CONSUME_WEBHOOK_CONNECTIONS),
    }
}

#[cfg(test)]
mod tests;
