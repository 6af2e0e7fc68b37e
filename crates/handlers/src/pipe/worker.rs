//! One command that stays, and its one conversation at a time.

use std::ffi::OsString;
use std::future::ready;
use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::answer::LONGEST;
use crate::child::{Groups, OUTPUT, Running};
use crate::ending::reason;
use crate::tail::Tail;

/// How long a command may take to end by itself once its stdin is closed.
const GOODBYE: Duration = Duration::from_secs(1);

/// A command that waits for a line, or works on one. Dropped, it is ended in the background.
#[derive(Debug)]
pub(super) struct Worker {
    running: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: Tail,
    /// Whether it has ever answered.
    served: bool,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A line, with its end.
    Line(Vec<u8>),
    /// More than [`LONGEST`] without an end.
    TooMuch,
    /// Nothing, and nothing will: it has ended, or closed its stdout or stdin.
    Ended,
}

impl Worker {
    /// Starts the command.
    ///
    /// # Errors
    /// The system can't start it.
    pub(super) fn start(command: &[OsString], groups: &Groups) -> io::Result<Self> {
        let (mut running, pipes) = Running::start(command, vec![], groups)?;
        let stderr = Tail::default();
        running.attend(stderr.clone().read(pipes.stderr, tokio::io::stderr()));
        Ok(Self { running, stdin: pipes.stdin, stdout: BufReader::new(pipes.stdout), stderr, served: false })
    }

    /// Hands it a line and waits for its answer.
    pub(super) async fn exchange(&mut self, line: &[u8]) -> Said {
        self.stderr.clear();
        let (stdin, stdout) = (&mut self.stdin, &mut self.stdout);
        // At once: a command that answers before it has read all must not stand still with us.
        let mut exchange = pin!(async {
            let write = async { stdin.write_all(line).await.map_err(|_| Said::Ended) };
            tokio::try_join!(write, read_line(stdout)).map_or_else(|said| said, |((), line)| Said::Line(line))
        });
        let said = tokio::select! {
            biased;
            said = &mut exchange => said,
            // What it said at the very end counts; only what it left in the background can hold its stdout open.
            _ = self.running.exited() => timeout(OUTPUT, exchange).await.unwrap_or(Said::Ended),
        };
        self.served |= matches!(said, Said::Line(_));
        said
    }

    /// Whether it still waits for a line, and has said nothing that nobody asked for.
    pub(super) async fn is_waiting(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.stdout.fill_buf() => false,
            _ = self.running.exited() => false,
            () = ready(()) => true,
        }
    }

    /// After [`Said::Ended`]: whether it just left, as one that has served and exits with 0 does; and else the reason.
    pub(super) async fn ended(mut self) -> (bool, String) {
        let Ok(exited) = timeout(OUTPUT, self.running.exited()).await else {
            self.running.end().await;
            return (false, "the command closed its stdin or stdout instead of answering".to_owned());
        };
        self.running.read_on().await;
        match exited {
            Ok(status) if status.success() && self.served => (true, String::new()),
            Ok(status) => (false, self.reason(status)),
            Err(error) => (false, format!("cannot wait for the command: {error}")),
        }
    }

    fn reason(&self, status: ExitStatus) -> String {
        format!("the command ended instead of answering: {}", reason(status, &self.stderr.bytes()))
    }

    /// Ends it at once, with all that it started: SIGTERM, and SIGKILL after 10 s.
    pub(super) async fn end(mut self) {
        drop(self.stdin);
        self.running.end().await;
    }

    /// Lets it go: its stdin is closed, and a second later it is ended.
    pub(super) async fn retire(mut self) {
        drop(self.stdin);
        match timeout(GOODBYE, self.running.exited()).await {
            Ok(_) => self.running.read_on().await,
            Err(_) => self.running.end().await,
        }
    }
}

/// A line with its end, or what there is in its place.
async fn read_line(stdout: &mut BufReader<ChildStdout>) -> Result<Vec<u8>, Said> {
    let mut line = Vec::new();
    let read = stdout.take(LONGEST as u64).read_until(b'\n', &mut line).await;
    match line.last() {
        _ if read.is_err() => Err(Said::Ended),
        Some(b'\n') => Ok(line),
        _ if line.len() == LONGEST => Err(Said::TooMuch),
        _ => Err(Said::Ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Worker {
        Worker::start(&["sh", "-c", script].map(OsString::from), &Groups::default()).unwrap()
    }

    #[tokio::test]
    async fn lines_go_back_and_forth() {
        let mut worker = start("while read -r line; do echo \"<$line>\"; done");
        for n in 0..3 {
            assert!(worker.is_waiting().await);
            let said = worker.exchange(format!("{n}\n").as_bytes()).await;
            assert_eq!(said, Said::Line(format!("<{n}>\n").into_bytes()));
        }
        worker.retire().await;
    }

    #[tokio::test]
    async fn a_command_that_says_too_much_or_ends_is_told_apart() {
        let mut talker = start("head -c 2000000 /dev/zero; cat");
        assert_eq!(talker.exchange(&[b'x'; 1 << 20]).await, Said::TooMuch);
        talker.end().await;
        let mut dead = start("read -r line; echo broken >&2; exit 3");
        assert_eq!(dead.exchange(b"a\n").await, Said::Ended);
        assert_eq!(dead.ended().await, (false, "the command ended instead of answering: broken".to_owned()));
        let mut deaf = start("exec <&- >&-; sleep 60");
        assert_eq!(deaf.exchange(b"a\n").await, Said::Ended);
        assert!(deaf.ended().await.1.contains("closed its stdin or stdout"));
    }

    #[tokio::test]
    async fn one_that_has_served_may_leave() {
        let mut worker = start("read -r line; echo one; read -r line; exit 0");
        assert_eq!(worker.exchange(b"a\n").await, Said::Line(b"one\n".to_vec()));
        assert_eq!(worker.exchange(b"b\n").await, Said::Ended);
        assert_eq!(worker.ended().await, (true, String::new()));
        let mut idler = start("exit 0");
        assert_eq!(idler.exchange(b"a\n").await, Said::Ended);
        assert!(idler.ended().await.1.ends_with("exit code 0"));
    }
}
