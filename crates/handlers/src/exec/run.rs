//! One run of the command: its input is the payload, its output is kept.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;

use crate::child::{Groups, Running, Variable};
use crate::tail::Tail;

/// A command at work on one timeout. Dropped before its end, it is ended in the background.
pub(super) struct Run {
    running: Running,
    stdout: Tail,
    stderr: Tail,
}

impl Run {
    /// Starts the command.
    ///
    /// # Errors
    /// The system can't start it.
    pub(super) fn start(
        command: &[OsString],
        environment: Vec<Variable>,
        payload: Bytes,
        groups: &Groups,
    ) -> io::Result<Self> {
        let (mut running, pipes) = Running::start(command, environment, groups)?;
        let (stdout, stderr) = (Tail::default(), Tail::default());
        let write = write(pipes.stdin, payload);
        let read = stdout.clone().read(pipes.stdout, tokio::io::stdout());
        let read_errors = stderr.clone().read(pipes.stderr, tokio::io::stderr());
        running.attend(async move {
            tokio::join!(write, read, read_errors);
        });
        Ok(Self { running, stdout, stderr })
    }

    /// As [`Running::exited`].
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.running.exited().await
    }

    /// As [`Running::read_on`].
    pub(super) async fn read_on(&mut self) {
        self.running.read_on().await;
    }

    /// As [`Running::end`].
    pub(super) async fn end(&mut self) {
        self.running.end().await;
    }

    pub(super) fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes()
    }

    pub(super) fn stderr(&self) -> Vec<u8> {
        self.stderr.bytes()
    }
}

/// Writes the payload and closes the pipe. A command that does not read it is fine.
async fn write(mut stdin: ChildStdin, payload: Bytes) {
    let _ = stdin.write_all(&payload).await;
    let _ = stdin.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Run {
        let command = ["sh", "-c", script].map(OsString::from);
        Run::start(&command, vec![], Bytes::from(vec![b'x'; 1 << 20]), &Groups::default()).unwrap()
    }

    #[tokio::test]
    async fn a_command_that_reads_nothing_and_one_that_says_much_both_end() {
        assert_eq!(start("exit 7").exited().await.unwrap().code(), Some(7));
        let mut talker = start("cat; cat /proc/self/environ >&2; echo end");
        assert!(talker.exited().await.unwrap().success());
        talker.read_on().await;
        assert!(talker.stdout().ends_with(b"xend\n"));
    }
}
