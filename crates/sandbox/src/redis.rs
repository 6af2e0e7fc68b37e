//! The private server itself.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{Error, ErrorKind};
use crate::options::Options;
use crate::port::free_port;
use crate::process::Process;
use crate::resp::{Connection, Value};

mod launch;

/// How many ports are tried before a start fails.
const PORTS: usize = 10;
/// How long a stop may take before it becomes a kill.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// A redis-server of one's own, on 127.0.0.1 and a unix socket. Dropping it kills it and removes its folder.
#[derive(Debug)]
pub struct Redis {
    options: Options,
    folder: TempDir,
    port: u16,
    process: Mutex<Option<Process>>,
}

impl Redis {
    /// Starts a server and waits until it answers PING.
    ///
    /// # Errors
    /// No redis-server is installed (the error names the package), or it does not come up in time: then
    /// the error ends with its log.
    pub fn start(options: Options) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            Error::new(ErrorKind::Start, "create a folder for redis-server", error.to_string())
        };
        let folder = tempfile::Builder::new().prefix("overdue-").tempdir().map_err(failed)?;
        let mut redis = Self { options, folder, port: 0, process: Mutex::new(None) };
        for attempt in 1.. {
            redis.port = free_port();
            match redis.launch() {
                // Somebody else was faster: another port.
                Err(error) if attempt < PORTS && error.detail().contains("Address already in use") => {}
                other => return other.map(|()| redis),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// `redis://127.0.0.1:<port>/`, without a password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// `unix://<path>`, without a password.
    #[must_use]
    pub fn unix_url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The TCP address.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder().join("redis.sock")
    }

    /// The folder with config, data, log and socket; removed on drop.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it has logged so far, over all its starts.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(self.folder().join("redis.log"))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// The process id, or `None` when it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process().as_mut().and_then(|p| p.exited().is_none().then(|| p.pid()))
    }

    /// Ends it in order (SIGTERM); kills it when that takes more than 10 s.
    pub fn stop(&self) {
        if let Some(mut process) = self.process().take() {
            process.sigterm();
            process.wait_exit(STOP_DEADLINE);
        }
    }

    /// Kills it at once (SIGKILL).
    pub fn kill9(&self) {
        *self.process() = None;
    }

    /// Starts it again on the same port with the data it has on disk; stops it first if it runs.
    ///
    /// # Errors
    /// As [`Redis::start`], and when somebody else has taken the port meanwhile.
    pub fn restart(&self) -> Result<(), Error> {
        self.stop();
        self.launch()
    }

    /// Freezes it (SIGSTOP): connections stay open, nothing is answered.
    pub fn sigstop(&self) {
        self.process().iter_mut().for_each(Process::sigstop);
    }

    /// Lets it go on (SIGCONT).
    pub fn sigcont(&self) {
        self.process().iter_mut().for_each(Process::sigcont);
    }

    /// A connection of one's own, logged in with [`Options::password`].
    ///
    /// # Errors
    /// The server is down, or refuses the password.
    pub fn connection(&self) -> Result<Connection, Error> {
        let failed = |error: io::Error| {
            Error::new(ErrorKind::Io, "connect to the private redis-server", error.to_string())
        };
        let mut connection = Connection::unix(&self.socket()).map_err(failed)?;
        if let Some(password) = &self.options.password {
            connection.call(&["AUTH", password])?;
        }
        Ok(connection)
    }

    /// A connection over TCP, as clients elsewhere have; without a login.
    ///
    /// # Errors
    /// The server is down.
    pub fn connection_over_tcp(&self) -> Result<Connection, Error> {
        Connection::tcp(self.addr()).map_err(|error| {
            Error::new(ErrorKind::Io, "connect to the private redis-server", error.to_string())
        })
    }

    /// Runs one command on a connection of its own: `command(&["CONFIG", "SET", "maxmemory", "10mb"])`.
    ///
    /// # Errors
    /// As [`Connection::call`] and [`Redis::connection`].
    pub fn command(&self, args: &[impl AsRef<[u8]>]) -> Result<Value, Error> {
        self.connection()?.call(args)
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(redis: &Redis, key: &str) -> String {
        redis.command(&["GET", key]).unwrap().text()
    }

    #[test]
    fn what_was_acknowledged_outlives_sigkill_with_aof() {
        let redis = Redis::start(Options { aof: true, ..Options::default() }).unwrap();
        redis.command(&["SET", "a", "1"]).unwrap();
        redis.kill9();
        assert_eq!(redis.pid(), None);
        assert_eq!(redis.command(&["PING"]).unwrap_err().kind(), ErrorKind::Io);
        redis.restart().unwrap();
        assert_eq!(get(&redis, "a"), "1");
        redis.restart().unwrap();
        assert_eq!(get(&redis, "a"), "1");
    }

    #[test]
    fn errors_say_what_to_do() {
        let program = Some("/nowhere/redis-server".into());
        let error = Redis::start(Options { program, ..Options::default() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInstalled);
        assert!(error.to_string().contains("apt-get install redis-server"), "{error}");
        let error = Redis::start(Options::default().line("no-such-setting 1")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Start);
        assert!(error.to_string().contains("'no-such-setting 1'"), "{error}");
        let redis = Redis::start(Options { password: Some("pw".into()), ..Options::default() }).unwrap();
        redis.command(&["SET", "a", "1"]).unwrap();
        let error = redis.command(&["LPUSH", "a", "1"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Redis);
        assert!(error.detail().starts_with("WRONGTYPE"), "{error}");
    }

    #[test]
    fn a_dropped_server_leaves_nothing_behind() {
        let redis = Redis::start(Options::default()).unwrap();
        let (folder, addr) = (redis.folder().to_owned(), redis.addr());
        redis.sigstop();
        drop(redis);
        assert!(!folder.exists());
        assert!(Connection::tcp(addr).is_err());
    }
}
