//! Where Redis is, and how to get in.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use overdue_protocol::Keyspace;
use tokio_rustls::TlsConnector;

use crate::endpoint::Endpoint;
use crate::{Error, ErrorKind, Result, tls};

/// A password. `Debug` and `Display` never show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a password.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The password itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where Redis is, how to get in, and how long to wait for it.
#[derive(Clone)]
pub struct Settings {
    /// `redis://`, `rediss://` (TLS), `unix://`, `redis-sentinel://`, `redis-cluster://`.
    pub url: String,
    /// The ACL user; takes the place of the one in `url`. None: the default user.
    pub username: Option<String>,
    /// Its password; takes the place of the one in `url`.
    pub password: Option<Secret>,
    /// A PEM file with the authorities to trust for TLS. None: those of the system.
    pub ca_file: Option<PathBuf>,
    /// The keys that are ours.
    pub keyspace: Keyspace,
    /// How long the first connect may take. Default 5 s.
    pub connect_deadline: Duration,
    /// How long a command may take, waiting for a connection included. Default 3 s.
    pub command_deadline: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            url: "redis://127.0.0.1:6379/".into(),
            username: None,
            password: None,
            ca_file: None,
            keyspace: Keyspace::default(),
            connect_deadline: Duration::from_secs(5),
            command_deadline: Duration::from_secs(3),
        }
    }
}

impl Settings {
    /// Settings for `url`, the rest as by default.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// The address for logs and errors: without user and password.
    #[must_use]
    pub fn describe(&self) -> String {
        // A URL that cannot be read is not shown: nobody knows where in it the password stands.
        Endpoint::parse(&self.url).map_or_else(|_| "(a URL that cannot be read)".into(), |at| at.to_string())
    }

    /// The database that the URL names; 0 also when it cannot be read.
    #[must_use]
    pub fn db(&self) -> u8 {
        Endpoint::parse(&self.url).map_or(0, |at| at.db)
    }

    /// Whether the URL names a cluster.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        Endpoint::parse(&self.url).is_ok_and(|at| at.is_cluster())
    }

    /// Reads the URL and the CA file without connecting.
    ///
    /// # Errors
    /// [`ErrorKind::Settings`] says what is wrong; nothing of the URL is quoted.
    pub fn check(&self) -> Result<()> {
        self.endpoint()?;
        Ok(())
    }

    /// The URL with what the other fields replace, and the TLS connector when it wants one.
    pub(crate) fn endpoint(&self) -> Result<(Endpoint, Option<TlsConnector>)> {
        let wrong = |why| Error::new(ErrorKind::Settings, "use the Redis settings", why);
        let mut at =
            Endpoint::parse(&self.url).map_err(|why| wrong(format!("the Redis URL is not valid: {why}")))?;
        at.username = self.username.clone().or(at.username);
        at.password = self.password.clone().or(at.password);
        if at.username.is_some() && at.password.is_none() {
            // A user without password still has to be named; the library does so only beside a password.
            at.password = Some(Secret::new(""));
        }
        let tls = at.tls.then(|| tls::connector(self.ca_file.as_deref())).transpose().map_err(wrong)?;
        if !at.tls && self.ca_file.is_some() {
            return Err(wrong(
                "ca_file is set, but the URL does not begin with rediss: write rediss://".into(),
            ));
        }
        for (name, bound) in
            [("connect_deadline", self.connect_deadline), ("command_deadline", self.command_deadline)]
        {
            if bound < Duration::from_millis(10) {
                return Err(wrong(format!("{name} is below 10 ms")));
            }
        }
        Ok((at, tls))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("url", &self.describe()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let mut settings = Settings::new("redis://u:hunter2@h/");
        settings.password = Some(Secret::new("hunter2"));
        let shown = format!("{settings:?} {:?} {}", settings.password, settings.password.clone().unwrap());
        assert!(shown.contains("redis://h:6379/") && !shown.contains("hunter2"), "{shown}");
        settings.url = "redis://u:hunter2/h".into();
        let shown = format!("{settings:?} {} {}", settings.describe(), settings.check().unwrap_err());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_user_without_password_is_still_named() {
        let (at, _) = Settings::new("redis://u@h/").endpoint().unwrap();
        assert_eq!(
            (at.username.as_deref(), at.password.map(|p| p.expose().to_owned())),
            (Some("u"), Some(String::new()))
        );
    }
}
