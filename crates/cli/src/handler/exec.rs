//! Runs a command for each timeout.
//!
//! The command gets the payload on stdin and the rest in its environment; its exit code is the outcome. It
//! runs in a process group of its own, which gets SIGTERM, and SIGKILL 10 s later, when the lease is lost, the
//! limit is over, or the grace after the stop is. What it exits with after our SIGTERM does not count: many
//! programs exit with 0 then, done or not.

mod child;
mod environment;
mod find;
mod tail;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use overdue_consumer::{Handler, Outcome, Raw, Timeout};
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Failure};
use crate::handler::exec::child::Running;

pub(crate) use child::{Groups, PATIENCE};

/// The most of stderr that is kept, bytes: as much as a dead letter holds.
const REASON: usize = 2048;
/// Exit codes with a meaning: EX_DATAERR and EX_TEMPFAIL of sysexits.h.
const REJECT: i32 = 65;
const TRY_AGAIN: i32 = 75;
/// The longest wait that a command may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 3600);

/// The handler.
pub(crate) struct Exec {
    command: Vec<OsString>,
    limit: Option<Duration>,
    stop: CancellationToken,
    grace: Duration,
    groups: Groups,
}

impl Exec {
    /// Takes the command and its arguments, at least one word. Commands may go on for `grace` after `stop`.
    ///
    /// # Errors
    /// There is no such command, or it can't be run.
    pub(crate) fn new(
        command: Vec<OsString>,
        limit: Option<Duration>,
        stop: CancellationToken,
        grace: Duration,
        groups: Groups,
    ) -> Result<Self, Failure> {
        let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
        find::check(program, std::env::var_os("PATH").as_deref())
            .map_err(|why| Failure::new(Exit::Usage, format!("cannot run {}: {why}", program.display())))?;
        Ok(Self { command, limit, stop, grace, groups })
    }

    fn cannot_run(&self, error: &io::Error, id_bytes: usize) -> String {
        let program = self.command[0].display();
        if error.raw_os_error() == Some(Errno::E2BIG as i32) {
            return format!(
                "cannot run {program}: with an id of {id_bytes} bytes its environment is too large; raise `ulimit -s`"
            );
        }
        format!("cannot run {program}: {error}")
    }

    async fn limit_is_over(&self) -> Duration {
        let Some(limit) = self.limit else { return std::future::pending().await };
        tokio::time::sleep(limit).await;
        limit
    }

    async fn grace_is_over(&self) {
        self.stop.cancelled().await;
        tokio::time::sleep(self.grace).await;
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
        let mut running = match Running::start(&self.command, environment, payload, &self.groups) {
            Ok(running) => running,
            Err(error) => return Outcome::retry(self.cannot_run(&error, timeout.id().as_bytes().len())),
        };
        let exited = tokio::select! {
            exited = running.exited() => exited,
            limit = self.limit_is_over() => {
                running.end().await;
                let limit = humantime::format_duration(limit);
                return Outcome::retry(format!("it ran longer than its limit of {limit}"));
            }
            () = self.grace_is_over() => {
                running.end().await;
                return Outcome::Release;
            }
        };
        running.read_on().await;
        match exited {
            Ok(status) => outcome(status, &running.stdout(), &running.stderr()),
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

/// The end of stderr; without any, how it ended.
fn reason(status: ExitStatus, stderr: &[u8]) -> String {
    // The tail may begin inside a character.
    let begin = stderr.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
    let text = String::from_utf8_lossy(&stderr[begin..]);
    let text = text.trim();
    // What is not UTF-8 has grown.
    let mut begin = text.len().saturating_sub(REASON);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    let text = &text[begin..];
    if !text.is_empty() {
        return text.to_owned();
    }
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "ended without an exit code".to_owned(),
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

    #[test]
    fn a_reason_is_the_end_of_stderr_and_fits() {
        let long = reason(exited(1), "ü".repeat(REASON).as_bytes());
        assert_eq!((long.len(), long.chars().all(|c| c == 'ü')), (REASON, true));
        assert_eq!(reason(exited(1), b"\xbcber"), "ber");
        let broken = reason(exited(1), &[b"x", &[0xff; REASON - 1][..]].concat());
        assert!(broken.len() <= REASON && broken.ends_with('\u{fffd}'), "{}", broken.len());
    }
}
