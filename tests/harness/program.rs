//! The program `overdue` as a process of its own.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use overdue_sandbox::Process;
use tempfile::TempDir;

use crate::http::{self, Response};
use crate::metrics::Metrics;
use crate::patience::eventually_blocking;

mod launch;

pub use launch::Launch;

/// How many lines of its log a failed test shows.
const LOG_LINES: usize = 40;

/// What a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// All it wrote to stdout.
    pub stdout: String,
    /// All it wrote to stderr.
    pub stderr: String,
}

/// A running `overdue`. Dropping it kills it; when the test fails, the end of its log is printed.
#[derive(Debug)]
pub struct Program {
    args: Vec<OsString>,
    process: Mutex<Process>,
    addr: OnceLock<SocketAddr>,
    folder: TempDir,
}

impl Program {
    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Ends it at once: SIGKILL; returns when it is gone.
    pub fn kill9(&self) {
        self.process().kill9();
    }

    /// Asks it to end: SIGTERM.
    pub fn sigterm(&self) {
        self.process().sigterm();
    }

    /// Freezes it: SIGSTOP.
    pub fn sigstop(&self) {
        self.process().sigstop();
    }

    /// Lets it go on: SIGCONT.
    pub fn sigcont(&self) {
        self.process().sigcont();
    }

    /// How it ended, or `None` while it runs.
    #[must_use]
    pub fn exited(&self) -> Option<ExitStatus> {
        self.process().exited()
    }

    /// Waits for its end. It blocks the thread: in async tests prefer `eventually` and [`Program::exited`].
    ///
    /// # Panics
    /// It still runs after `deadline`.
    pub fn wait_exit(&self, deadline: Duration) -> ExitStatus {
        let status = self.process().wait_exit(deadline);
        status.unwrap_or_else(|| panic!("overdue {:?} still runs after {deadline:?}", self.args))
    }

    /// All it wrote to stdout so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.text("stdout")
    }

    /// All it wrote to stderr so far: its log.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.text("stderr")
    }

    /// The file that stdout goes to.
    #[must_use]
    pub fn stdout_file(&self) -> PathBuf {
        self.folder.path().join("stdout")
    }

    /// Where its metrics and health are, from its log line `listening addr=...`; waits for that line.
    ///
    /// # Panics
    /// It ended, or the line does not come.
    pub fn addr(&self) -> SocketAddr {
        *self.addr.get_or_init(|| {
            eventually_blocking("overdue logs where it listens", || {
                let log = self.stderr();
                let addr = log.lines().find_map(listening);
                let exited = if addr.is_none() { self.exited() } else { None };
                assert!(exited.is_none(), "overdue {:?} ended with {exited:?}:\n{log}", self.args);
                addr.ok_or(log)
            })
        })
    }

    /// GET on its metrics and health port.
    ///
    /// # Errors
    /// It can't be reached or does not answer within 5 s.
    pub fn get(&self, path: &str) -> std::io::Result<Response> {
        http::get(self.addr(), path)
    }

    /// `/metrics`, read.
    ///
    /// # Panics
    /// It can't be had.
    pub fn metrics(&self) -> Metrics {
        let response = self.get("/metrics").unwrap_or_else(|error| panic!("GET /metrics: {error}"));
        assert_eq!(response.status, 200, "{}", response.body);
        Metrics::parse(&response.body)
    }

    /// `/readyz`: 200 when sweeps and reads make progress.
    ///
    /// # Panics
    /// No answer.
    pub fn readyz(&self) -> Response {
        self.get("/readyz").unwrap_or_else(|error| panic!("GET /readyz: {error}"))
    }

    /// `/livez`.
    ///
    /// # Panics
    /// No answer.
    pub fn livez(&self) -> Response {
        self.get("/livez").unwrap_or_else(|error| panic!("GET /livez: {error}"))
    }

    /// The memory it holds (resident set), in bytes. Linux only.
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        let kib = line.trim().trim_end_matches(" kB").parse::<u64>();
        kib.expect("VmRSS is in kB") * 1024
    }

    /// The processor time it has used, in user and kernel mode; steps of 10 ms. Linux only.
    ///
    /// # Panics
    /// It has ended.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let stat = self.proc("stat");
        // The second field, the name in parentheses, may hold spaces.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |i: usize| fields.get(i).and_then(|ticks| ticks.parse::<u64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).expect("/proc/<pid>/stat holds processor times");
        Duration::from_millis((user + system) * 10)
    }

    fn proc(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.pid());
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn text(&self, name: &str) -> String {
        read_lossy(&self.folder.path().join(name))
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Program {
    #[allow(clippy::print_stderr, reason = "a failed test shows the program's log")]
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.stderr();
            let lines: Vec<_> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            eprintln!("--- stderr of overdue {:?} (exit {:?}) ends:\n{tail}\n---", self.args, self.exited());
        }
    }
}

fn read_lossy(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The address in a log line that says `listening`, as text (`addr=...`) or JSON (`"addr":"..."`).
fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.contains("listening").then(|| line.split_once("addr"))??;
    let rest = rest.trim_start_matches(['=', '"', ':']);
    rest.split(|c: char| c.is_whitespace() || c == '"' || c == ',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::patience;

    fn shell(script: &str) -> Launch {
        Launch::new(["-c", script])
    }

    #[test]
    fn a_program_is_watched_from_outside() {
        let script =
            "echo out; echo $NAME >&2; cat >&2; echo 'INFO listening addr=127.0.0.1:9' >&2; exec sleep 60";
        let program = shell(script).env("NAME", "value").stdin("input\n").start_as(Path::new("/bin/sh"));
        assert_eq!(program.addr().port(), 9);
        assert_eq!(program.stderr().lines().take(2).collect::<Vec<_>>(), ["value", "input"]);
        assert_eq!(program.stdout(), "out\n");
        assert!(program.rss_bytes() > 100_000 && program.cpu_time() < Duration::from_secs(5));
        program.sigstop();
        program.sigterm();
        assert_eq!(program.exited(), None);
        program.sigcont();
        assert_eq!(program.wait_exit(patience()).code(), None);
    }

    #[test]
    #[should_panic(expected = "can't reach Redis")]
    fn a_program_that_ends_instead_of_listening_shows_its_log() {
        let _ = shell("echo \"can't reach Redis\" >&2; exit 3").start_as(Path::new("/bin/sh")).addr();
    }

    #[test]
    fn the_address_is_read_from_text_and_from_json() {
        let addr = "127.0.0.1:4321".parse().ok();
        assert_eq!(listening("2026-01-01T00:00:00Z  INFO overdue: listening addr=127.0.0.1:4321"), addr);
        assert_eq!(listening(r#"{"message":"listening","addr":"127.0.0.1:4321","role":"relay"}"#), addr);
        assert_eq!(listening("INFO connected addr=127.0.0.1:4321"), None);
        assert_eq!(listening("INFO listening"), None);
    }
}
