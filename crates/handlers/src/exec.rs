//! Runs a command for each timeout.
//!
//! The command gets the payload on stdin and the rest in its environment; its exit code is the outcome. It
//! runs in a process group of its own, which gets SIGTERM, and SIGKILL 10 s later, when the lease is lost, the
//! limit is over, or the grace after the stop is. What it exits with after our SIGTERM does not count: many
//! programs exit with 0 then, done or not.

mod environment;
mod run;

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use nix::errno::Errno;
use overdue_consumer::{Handler, Outcome, Raw, Timeout};
use tokio_util::sync::CancellationToken;

use crate::child::Groups;
use crate::ending::{Ending, reason};
use crate::exec::run::Run;
use crate::find;
/// Exit codes with a meaning: EX_DATAERR and EX_TEMPFAIL of sysexits.h.
const REJECT: i32 = 65;
const TRY_AGAIN: i32 = 75;
/// The longest wait that a command may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 3600);

/// The handler.
#[derive(Debug)]
pub struct Exec {
    command: Vec<OsString>,
    ending: Ending,
    groups: Groups,
}

impl Exec {
    /// Takes the command and its arguments, at least one word. One run may take `limit` (`None` = any time), and go on
    /// for `grace` after `stop`: give the consumer no limit, and [`crate::PATIENCE`] more grace than that.
    ///
    /// # Errors
    /// There is no such command, or it can't be run; a sentence for people.
    pub fn new(
        command: Vec<OsString>,
        limit: Option<Duration>,
        stop: CancellationToken,
        grace: Duration,
        groups: &Groups,
    ) -> Result<Self, String> {
        find::check(&command)?;
        Ok(Self { command, ending: Ending { limit, stop, grace }, groups: groups.clone() })
    }

    /// Why it did not start, which no attempt of another timeout may do better.
    fn cannot_run(&self, error: &io::Error, id_bytes: usize) -> Outcome {
        let program = self.command[0].display();
        if error.raw_os_error() == Some(Errno::E2BIG as i32) {
            return Outcome::retry(format!(
                "cannot run {program}: with an id of {id_bytes} bytes its environment is too large; raise `ulimit -s`"
            ));
        }
        Outcome::unreachable(format!("cannot run {program}: {error}"))
    }
}

impl Handler<Raw> for Exec {
    async fn handle(&self, timeout: Timeout<Raw>) -> Outcome {
        let payload = timeout.raw_payload().clone();
        let environment = match environment::of(&timeout) {
            Ok(environment) => environment,
            // No attempt would do better.
            Err(why) => return Outcome::reject(why),
        };
        let mut run = match Run::start(&self.command, environment, payload, &self.groups) {
            Ok(run) => run,
            Err(error) => return self.cannot_run(&error, timeout.id().as_bytes().len()),
        };
        let exited = tokio::select! {
            exited = run.exited() => exited,
            over = self.ending.over() => {
                run.end().await;
                return over;
            }
        };
        run.read_on().await;
        match exited {
            Ok(status) => outcome(status, &run.stdout(), &run.stderr()),
            Err(error) => Outcome::retry(format!("cannot wait for the command: {error}")),
        }
    }
}

/// What the exit status means.
fn outcome(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Outcome {
    let reason = reason(status, stderr);
    match status.code() {
        Some(0) => Outcome::Done,
        Some(REJECT) => Outcome::reject(reason),
        Some(TRY_AGAIN) => match retry_after(stdout) {
            Some(wait) => Outcome::retry_after(wait, reason),
            None => Outcome::retry(reason),
        },
        _ => Outcome::retry(reason),
    }
}

/// `retry-after: 90s` in the last line of stdout.
fn retry_after(stdout: &[u8]) -> Option<Duration> {
    let text = String::from_utf8_lossy(stdout);
    let line = text.trim_end().lines().next_back()?.trim();
    let wait = humantime::parse_duration(line.strip_prefix("retry-after:")?.trim()).ok()?;
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn each_exit_code_means_what_the_contract_says() {
        let of = |code| outcome(exited(code), b"", b"no seat\n");
        assert_eq!(of(0), Outcome::Done);
        assert_eq!(of(65), Outcome::reject("no seat"));
        for code in [1, 2, 64, 66, 74, 75, 76, 126, 127, 255] {
            assert_eq!(of(code), Outcome::retry("no seat"), "{code}");
        }
        assert_eq!(outcome(ExitStatus::from_raw(9), b"", b""), Outcome::retry("killed by SIGKILL"));
        assert_eq!(outcome(exited(3), b"", b"\n"), Outcome::retry("exit code 3"));
    }

    #[test]
    fn the_last_line_of_stdout_says_when() {
        for (stdout, wait) in [
            ("retry-after: 90s", Some(90)),
            ("busy\nretry-after: 1m 30s\n\n", Some(90)),
            ("retry-after:2h", Some(7200)),
            ("retry-after: 90s\nbye\n", None),
            ("retry-after: soon", None),
            ("retry-after: 90000years", Some(366 * 24 * 3600)),
            ("", None),
        ] {
            assert_eq!(retry_after(stdout.as_bytes()).map(|wait| wait.as_secs()), wait, "{stdout:?}");
        }
        let (code, line) = (75, b"retry-after: 5s");
        assert_eq!(outcome(exited(code), line, b"x"), Outcome::retry_after(Duration::from_secs(5), "x"));
        assert_eq!(outcome(exited(1), line, b"x"), Outcome::retry("x"));
    }
}
