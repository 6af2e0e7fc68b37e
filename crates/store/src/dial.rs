//! A client of the library, set up so that none of its defaults can hurt.

use std::time::Duration;

use fred::clients::Client;
use fred::socket2::TcpKeepalive;
use fred::types::Builder;
use fred::types::RespVersion;
use fred::types::config::{Config, ReconnectPolicy, ServerConfig, TlsConfig, TlsHostMapping};
use tokio_rustls::TlsConnector;

use crate::endpoint::{Endpoint, Place};
use crate::{Secret, Settings};

/// The first wait after a lost connection, the longest, and how much of a wait is left to chance, in milliseconds.
const BACKOFF_MS: (u32, u32, u32) = (50, 2_000, 100);

/// Builds a client that is not connected yet.
pub(crate) fn client(settings: &Settings, at: &Endpoint, tls: Option<TlsConnector>) -> Client {
    let config = Config {
        fail_fast: true,
        username: at.username.clone(),
        password: at.password.as_ref().map(Secret::expose).map(str::to_owned),
        server: server(&at.place),
        version: RespVersion::RESP2,
        database: (at.db > 0).then_some(at.db),
        tls: tls.map(|tls| TlsConfig { connector: tls.into(), hostnames: TlsHostMapping::None }),
        ..Config::default()
    };
    let (first, longest, jitter) = BACKOFF_MS;
    let mut policy = ReconnectPolicy::new_exponential(0, first, longest, 2);
    policy.set_jitter(jitter);
    let setup = settings.connect_deadline.min(Duration::from_secs(2));
    Builder::from_config(config)
        .set_policy(policy)
        .with_connection_config(|c| {
            c.connection_timeout = setup;
            // The whole client stands still meanwhile.
            c.internal_command_timeout = setup;
            // A command whose reply was lost is never sent again by the library.
            c.max_command_attempts = 1;
            // Any other value leaks its counter until nothing is flushed any more.
            c.max_command_buffer_len = 0;
            c.reconnect_on_auth_error = false;
            // Our own name is set at each connect; the library would set its own.
            c.auto_client_setname = false;
            c.tcp.nodelay = Some(true);
            let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(5));
            c.tcp.keepalive = Some(keepalive.with_interval(Duration::from_secs(2)).with_retries(3));
            // Frees a connection that is stuck in a write.
            c.tcp.user_timeout = Some(Duration::from_secs(10));
        })
        .with_performance_config(|p| {
            // 0 would mean that a command may wait for ever.
            p.default_command_timeout = settings.command_deadline;
            p.broadcast_channel_capacity = 64;
        })
        .build()
        .expect("a builder with a config builds")
}

fn server(place: &Place) -> ServerConfig {
    match place {
        Place::One { host, port } => ServerConfig::new_centralized(host, *port),
        Place::Unix(path) => ServerConfig::new_unix_socket(path),
        Place::Sentinel { hosts, service } => ServerConfig::new_sentinel(hosts.clone(), service),
        Place::Cluster { hosts } => ServerConfig::new_clustered(hosts.clone()),
    }
}

/// The name of a connection in CLIENT LIST: `overdue-<role>:<host>:<pid>`, without blanks.
pub(crate) fn name(role: &str) -> String {
    let host = gethostname::gethostname();
    let name = format!("overdue-{role}:{}:{}", host.to_string_lossy(), std::process::id());
    name.chars().map(|c| if c.is_ascii_graphic() { c } else { '-' }).collect()
}
