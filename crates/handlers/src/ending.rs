//! How a command ends that does not end well, and what that makes of its timeout.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use overdue_consumer::Outcome;
use tokio_util::sync::CancellationToken;

/// The most of stderr that is kept, bytes: as much as a dead letter holds.
const REASON: usize = 2048;

/// When a command is ended.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    /// `None` = it may take any time.
    pub(crate) limit: Option<Duration>,
    pub(crate) stop: CancellationToken,
    /// After the stop.
    pub(crate) grace: Duration,
}

impl Ending {
    /// Waits until a command that begins now has to be ended; answers what becomes of its timeout.
    pub(crate) async fn over(&self) -> Outcome {
        tokio::select! {
            limit = self.limit_is_over() => {
                let limit = humantime::format_duration(limit);
                Outcome::retry(format!("it ran longer than its limit of {limit}"))
            }
            () = self.grace_is_over() => Outcome::Release,
        }
    }

    async fn limit_is_over(&self) -> Duration {
        let Some(limit) = self.limit else { return std::future::pending().await };
        tokio::time::sleep(limit).await;
        limit
    }

    /// Waits until the grace after the stop is over.
    pub(crate) async fn grace_is_over(&self) {
        self.stop.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }
}

/// The end of stderr; without any, how it ended.
pub(crate) fn reason(status: ExitStatus, stderr: &[u8]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
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
