//! One of our own programs as a process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, PipeReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use overdue_sandbox::{Process, Redis};
use tokio::time::{Instant, sleep};

use super::{POLL, cpu};
use crate::exit::{Exit, Failure};

/// How many lines of its log an error ends with.
const LAST_LINES: usize = 3;

/// A running `overdue`. Its log is a file beside the private Redis. Dropping it kills it.
pub(crate) struct Program {
    name: String,
    process: Process,
    log: PathBuf,
    stdout: Option<PipeReader>,
}

impl Program {
    /// Starts this very program with `args` on `redis`. No `OVERDUE_` variable of ours reaches it.
    pub(crate) fn start(
        name: &str,
        redis: &Redis,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::new(Exit::Usage, format!("cannot start {name}: {error}"));
        let log = redis.folder().join(format!("{}.log", name.replace(' ', "-")));
        let mut command = command(redis).map_err(failed)?;
        let (reader, writer) = io::pipe().map_err(failed)?;
        command.args(args).stdout(writer).stderr(File::create(&log).map_err(failed)?);
        let process = Process::spawn(&mut command).map_err(failed)?;
        Ok(Self { name: name.to_owned(), process, log, stdout: Some(reader) })
    }

    /// What it writes to stdout; once.
    pub(crate) fn take_stdout(&mut self) -> PipeReader {
        self.stdout.take().expect("stdout is taken once")
    }

    /// What it is called here.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The processor time it has used, microseconds; `None` where the system does not tell.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        cpu::of_process(self.pid())
    }

    /// An error with the end of its log when it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        match self.process.exited() {
            None => Ok(()),
            Some(status) => Err(Failure::new(Exit::Redis, format!("{} ({status})", self.last_words()))),
        }
    }

    /// Ends it at once: SIGKILL.
    pub(crate) fn kill9(&mut self) {
        self.process.kill9();
    }

    /// Asks it to end, and waits for it; whether it ended by itself within `deadline`.
    pub(crate) async fn end(&mut self, deadline: Duration) -> bool {
        self.process.sigterm();
        let end = Instant::now() + deadline;
        while self.process.exited().is_none() {
            if Instant::now() > end {
                return false;
            }
            sleep(POLL).await;
        }
        true
    }

    /// Its name, and the end of its log on one line.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
        format!("{}: {}", self.name, if last.is_empty() { "not a word" } else { &last })
    }
}

/// This very program, with settings for `redis` and nothing else.
pub(crate) fn command(redis: &Redis) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"OVERDUE_"))
    {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command.args(["--redis", &redis.url(), "--log-filter", "warn"]);
    Ok(command)
}
