//! How a client is set up.

use std::path::PathBuf;
use std::time::Duration;

use overdue_protocol::{Keyspace, Namespace};
use overdue_store::{Secret, Settings, Store};

use crate::client::Client;
use crate::error::{Error, ErrorKind, Result};

/// The largest `max_payload`, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

/// The settings of a client. All but the URL have a default.
#[derive(Clone, Debug)]
#[must_use = "nothing is connected until connect() is called"]
pub struct Builder {
    redis: Settings,
    namespace: Option<String>,
    role: String,
    pub(crate) max_payload: usize,
    pub(crate) deadline: Duration,
}

impl Builder {
    pub(crate) fn new(redis: Settings) -> Self {
        let (max_payload, deadline) = (1024 * 1024, Duration::from_secs(5));
        Self { redis, namespace: None, role: "client".into(), max_payload, deadline }
    }

    /// The ACL user; takes the place of the one in the URL.
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.redis.username = Some(username.into());
        self
    }

    /// The password; takes the place of the one in the URL.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.redis.password = Some(Secret::new(password));
        self
    }

    /// A PEM file with the authorities to trust for `rediss://`. Default: those of the system.
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.redis.ca_file = Some(file.into());
        self
    }

    /// What every key begins with. Default `overdue`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// What the connection is named by: `overdue-<role>:<host>:<pid>`. Default `client`.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.role = role.into();
        self
    }

    /// The largest payload that is sent, in bytes; at most 64 MiB. Default 1 MiB. A payload holds up Redis for as
    /// long as it takes to copy it, at every step: keep big things elsewhere, and their name here.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// How long something that was certainly not executed is tried again (Redis is away, loading, failing over),
    /// how long Redis is asked after
    /// a lost answer, and how long a call may wait in line behind others. Default 5 s, at least 10 ms. A command under way when it ends is waited
    /// for: at most `command_deadline` more, 3 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Connects, and fails fast: reachable, a Redis of at least 6.2, user and password.
    ///
    /// # Errors
    /// `Settings`, `Unavailable`, `Refused`.
    pub async fn connect(mut self) -> Result<Client> {
        let wrong = |why: String| Error::new(ErrorKind::Settings, "set up the client", why);
        if self.max_payload > LARGEST {
            return Err(wrong(format!(
                "max_payload is {} bytes; at most {LARGEST} (64 MiB)",
                self.max_payload
            )));
        }
        if self.deadline < Duration::from_millis(10) {
            return Err(wrong("deadline is below 10 ms".into()));
        }
        if let Some(namespace) = self.namespace.take() {
            let namespace = Namespace::new(&namespace).map_err(|error| wrong(error.to_string()))?;
            self.redis.keyspace = Keyspace::new(namespace);
        }
        let place = format!("connect to Redis at {}", self.redis.describe());
        let store =
            Store::connect(&self.redis, &self.role).await.map_err(|error| Error::of_look(&error, &place))?;
        Ok(Client::on(store, &self))
    }
}
