//! Every setting of Overdue: one table. What a `[[watch]]` holds stands in one of its own
//! ([`super::watch::table`]).
//!
//! Flags, environment names, the sample file, `config check` and `config show` are made from it. To add a
//! setting: a line here, and a field in `settings.rs` that reads it.

use std::path::PathBuf;
use std::time::Duration;

use overdue_protocol::call::PAGE;
use overdue_protocol::{Namespace, QueueName};
use overdue_relay::KeyspaceEvents;
use overdue_store::Secret;
use overdue_telemetry::logs::Format;

use super::key::Scope::{Consume, Everywhere, Relay};
use super::key::{Entry, Form, Key, table};
use super::parse::{self, HOUR, SECOND, choice, duration, number, optional};
use super::watch::short::{self, Short};
use super::{Listen, Notifications};

table! {
    /// Every setting, in the order of the sample file: sections stay together.
    ALL;

    NAMESPACE: Namespace =
        Key::new("namespace", "What every key of Overdue in Redis begins with.", |t| t.parse().map_err(|_| {
            "not a namespace: 1 to 64 of a-z 0-9 . _ : -, beginning with a letter or digit".to_owned()
        }))
        .flag(Everywhere, "namespace", "NAME")
        .default("overdue")
        .values("1 to 64 characters: a-z 0-9 . _ : - and a letter or digit first");

    WATCH: Vec<Short> =
        Key::new("watch", "Watch the keys that match PATTERN: each that expires becomes a timeout in QUEUE.", short::read)
        .form(Form::Rules)
        .flag(Relay, "watch", "PATTERN=QUEUE")
        .values("Example: --watch 'session:*=sessions'. PATTERN is a Redis glob; the last = ends it. Once for each rule \
                 (in the environment a line for each); the first that matches a key wins. Given here, the rules \
                 take the place of all [[watch]] in the file, where a rule can say more")
        .verbatim();

    URL: String =
        Key::new("redis.url", "Where Redis is; /N at the end chooses the db.", parse::redis_url)
        .flag(Everywhere, "redis", "URL")
        .default("redis://127.0.0.1:6379/")
        .values("redis://, rediss:// (TLS), unix://, redis-sentinel:// or redis-cluster://");
    USERNAME: Option<String> =
        Key::new("redis.username", "The ACL user; stands above the one in the URL.", |t| Ok(optional(t)))
        .flag(Everywhere, "user", "NAME")
        .values("Not set = the default user");
    PASSWORD: Option<Secret> =
        Key::new("redis.password", "Its password; a password_file is safer.", |t| Ok(optional(t).map(Secret::new)))
        .secret();
    PASSWORD_FILE: Option<PathBuf> =
        Key::new("redis.password_file", "A file that holds the password.", |t| Ok(optional(t).map(PathBuf::from)))
        .flag(Everywhere, "password-file", "FILE")
        .values("A newline at its end is not part of the password");
    CA_FILE: Option<PathBuf> =
        Key::new("redis.ca_file", "A PEM file with the authorities to trust for TLS.", |t| {
            Ok(optional(t).map(PathBuf::from))
        })
        .flag(Everywhere, "ca-file", "FILE")
        .values("Not set = those of the system");
    CONNECT_DEADLINE: Duration =
        Key::new("redis.connect_deadline", "How long the first connect may take.", |t| duration(t, SECOND / 10, HOUR))
        .default("5s")
        .values("A duration from 100ms to 1h");
    COMMAND_DEADLINE: Duration =
        Key::new("redis.command_deadline", "How long one command may take before its outcome counts as unknown.", |t| {
            duration(t, SECOND / 10, HOUR)
        })
        .default("3s")
        .values("A duration from 100ms to 1h");

    LOG_FORMAT: Format =
        Key::new("log.format", "How a log line on stderr looks.", |t| {
            choice(t, &[("text", Format::Text), ("json", Format::Json)])
        })
        .flag(Everywhere, "log-format", "FORMAT")
        .default("text")
        .values("text or json");
    LOG_FILTER: Option<String> =
        Key::new("log.filter", "Which log lines are written.", parse::log_filter)
        .flag(Everywhere, "log-filter", "FILTER")
        .values("A level (error, warn, info, debug), or pairs such as overdue_relay=debug. \
                 Not set = info for relay and consume, off for top, warn for the other commands");

    MAX_PAYLOAD: usize =
        Key::new("client.max_payload", "The largest payload that schedule accepts.", |t| {
            parse::size(t, 0, 16 * 1024 * 1024)
        })
        .default("1MiB")
        .values("Bytes, KiB or MiB, up to 16MiB");

    RELAY_QUEUES: Vec<QueueName> =
        Key::new("relay.queues", "Work for these queues only.", parse::queues)
        .form(Form::List)
        .flag(Relay, "queue", "QUEUE")
        .values("None = every queue, those created later too");
    RELAY_LISTEN: Listen =
        Key::new("relay.listen", "Where the relay serves /metrics, /livez and /readyz.", parse::listen)
        .flag(Relay, "listen", "ADDR")
        .default("127.0.0.1:9633")
        .values("Address and port; port 0 = any free one; off = nowhere");
    RELAY_GRACE: Duration =
        Key::new("relay.grace", "How long a due timer waits for its notification before a sweep fires it.", |t| {
            duration(t, Duration::ZERO, 60 * SECOND)
        })
        .flag(Relay, "grace", "DURATION")
        .default("0s")
        .values("A duration up to 1m; 0s = do not wait, which is the most precise");
    RELAY_PAGE: u32 =
        Key::new("relay.page", "The most timers fired by one sweep call.", |t| number(t, 1, PAGE))
        .form(Form::Number)
        .default("256")
        .values("1 to 256; a call also stops at 1 MiB of payload");
    RELAY_BUFFER: usize =
        Key::new("relay.buffer", "Notifications held while Redis is slow; more are dropped, and a sweep makes up for them.", |t| {
            number(t, 256, 1_000_000)
        })
        .form(Form::Number)
        .default("65536")
        .values("256 to 1000000");
    RELAY_KEYSPACE_EVENTS: KeyspaceEvents =
        Key::new("relay.keyspace_events", "What to do when Redis lacks flags in notify-keyspace-events.", |t| {
            choice(t, &[
                ("add", KeyspaceEvents::Add),
                ("check", KeyspaceEvents::Check),
                ("ignore", KeyspaceEvents::Ignore),
            ])
        })
        .flag(Relay, "keyspace-events", "ACTION")
        .default("add")
        .values("add = add what is missing, remove nothing; check = only say so; ignore");
    RELAY_NOTIFICATIONS: Notifications =
        Key::new("relay.notifications", "How the relay hears of watched keys.", |t| {
            choice(t, &[("keyspace", Notifications::Keyspace), ("keyevent", Notifications::Keyevent)])
        })
        .default("keyspace")
        .values("keyspace = Redis sends what the patterns match; keyevent = Redis sends the events of every key, \
                 and the relay picks");
    RELAY_SCAN_KEYS_PER_S: u32 =
        Key::new("relay.scan_keys_per_s", "The most keys that SCAN walks over in a second, on each node.", |t| {
            number(t, 100, 10_000_000)
        })
        .form(Form::Number)
        .default("50000")
        .values("100 to 10000000");
    RELAY_SCAN_EVERY: Duration =
        Key::new("relay.scan_every", "How often SCAN looks for watched keys that no notification told of.", |t| {
            duration(t, 10 * SECOND, 24 * HOUR)
        })
        .default("10m")
        .values("A duration from 10s to 24h; it also looks at the start and after every gap");
    RELAY_VALUE_MAX: u32 =
        Key::new("relay.value_max", "The largest value of a watched key that becomes a payload.", |t| {
            let bytes = parse::size(t, 0, 1024 * 1024)?;
            u32::try_from(bytes).map_err(|error| error.to_string())
        })
        .default("1MiB")
        .values("Bytes, KiB or MiB, up to 1MiB; a larger one is left out, and the timeout says so");

    RELAY_DEAD_MAX: u64 =
        Key::new("relay.dead_max", "Dead letters that a partition keeps; the oldest go first.", |t| {
            number(t, 1, 10_000_000)
        })
        .form(Form::Number)
        .default("10000")
        .values("1 to 10000000");
    RELAY_DEAD_MAX_AGE: Duration =
        Key::new("relay.dead_max_age", "How long a dead letter is kept.", |t| {
            duration(t, 60 * SECOND, 10 * 366 * 24 * HOUR)
        })
        .default("90d")
        .values("A duration from 1m to 10 years");

    CONSUME_LISTEN: Listen =
        Key::new("consume.listen", "Where the consumer serves /metrics, /livez and /readyz.", parse::listen)
        .flag(Consume, "listen", "ADDR")
        .default("127.0.0.1:9634")
        .values("Address and port; port 0 = any free one; off = nowhere");
    CONSUME_CONCURRENCY: usize =
        Key::new("consume.concurrency", "Timeouts handled at the same time.", |t| number(t, 1, 10_000))
        .form(Form::Number)
        .flag(Consume, "concurrency", "N")
        .default("16")
        .values("1 to 10000");
    CONSUME_LEASE: Duration =
        Key::new("consume.lease", "How long a timeout stays ours without renewal; another consumer takes it over then.", |t| {
            duration(t, SECOND, HOUR)
        })
        .flag(Consume, "lease", "DURATION")
        .default("30s")
        .values("A duration from 1s to 1h; renewed while the handler runs");
    CONSUME_ATTEMPTS: u32 =
        Key::new("consume.attempts", "Attempts before a timeout becomes a dead letter.", |t| number(t, 1, 1_000))
        .form(Form::Number)
        .flag(Consume, "attempts", "N")
        .default("20")
        .values("1 to 1000; 1 = no retry");
    CONSUME_LIMIT: Option<Duration> =
        Key::new("consume.limit", "How long one attempt may run; then it is stopped and tried again.", |t| {
            if t == "off" { Ok(None) } else { duration(t, SECOND / 100, 24 * HOUR).map(Some) }
        })
        .flag(Consume, "limit", "DURATION")
        .default("1h")
        .values("A duration from 10ms to 24h; off = no limit. Not set = 30s for a webhook");
    CONSUME_GRACE: Duration =
        Key::new("consume.grace", "How long handlers may go on after SIGTERM; then their timeouts are given back.", |t| {
            duration(t, Duration::ZERO, HOUR)
        })
        .flag(Consume, "grace", "DURATION")
        .default("25s")
        .values("A duration up to 1h");
    CONSUME_RETRY_WAIT: Duration =
        Key::new("consume.retry_wait", "The wait before the second attempt; it doubles each time, half of it at random.", |t| {
            duration(t, SECOND / 100, HOUR)
        })
        .default("1s")
        .values("A duration from 10ms to 1h");
    CONSUME_RETRY_WAIT_MAX: Duration =
        Key::new("consume.retry_wait_max", "The longest wait between two attempts.", |t| {
            duration(t, SECOND / 100, 24 * HOUR)
        })
        .default("1h")
        .values("A duration from 10ms to 24h");
    CONSUME_PROBE_MAX: Duration =
        Key::new("consume.probe_max", "The longest wait between two tries of an endpoint that can't be reached.", |t| {
            duration(t, SECOND, HOUR)
        })
        .default("25s")
        .values("A duration from 1s to 1h; it doubles from 1s. Meanwhile nothing else is tried");
    CONSUME_WEBHOOK_CONNECTIONS: usize =
        Key::new("consume.webhook_connections", "Requests to one webhook endpoint at the same time.", |t| number(t, 1, 10_000))
        .form(Form::Number)
        .default("16")
        .values("1 to 10000");
    CONSUME_WEBHOOK_CA_FILE: Option<PathBuf> =
        Key::new("consume.webhook_ca_file", "A PEM file with the authorities to trust for webhooks.", |t| {
            Ok(optional(t).map(PathBuf::from))
        })
        .flag(Consume, "webhook-ca-file", "FILE")
        .values("Not set = those of the system");
}
