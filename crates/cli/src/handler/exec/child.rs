//! One run of the command: a process group of its own, and the pipes to it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use crate::handler::exec::tail::Tail;

/// From SIGTERM to SIGKILL.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of the output may take once the command has ended. Only what it left running in the
/// background can hold its pipes open.
const OUTPUT: Duration = Duration::from_millis(500);
/// How often a group that is to end is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long the system may take to end what got SIGKILL.
const KILLED: Duration = Duration::from_secs(5);

/// The groups that run, and the tasks that end those whose handler was dropped.
#[derive(Clone, Default)]
pub(crate) struct Groups {
    running: Arc<Mutex<HashSet<Pid>>>,
    ending: TaskTracker,
}

impl Groups {
    /// Kills all that runs.
    pub(crate) fn kill(&self) {
        for &group in self.lock().iter() {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }

    /// Waits for those that are being ended.
    pub(crate) async fn ended(&self) {
        self.ending.close();
        self.ending.wait().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<Pid>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command that runs. Dropped before its end, it is ended in the background.
pub(super) struct Running {
    process: Option<Process>,
    groups: Groups,
    stdout: Tail,
    stderr: Tail,
}

struct Process {
    child: Child,
    group: Pid,
    pipes: JoinHandle<()>,
    /// When SIGKILL follows, once SIGTERM was sent.
    kill_at: Option<Instant>,
}

impl Running {
    /// Starts the command.
    ///
    /// # Errors
    /// The system can't start it.
    pub(super) fn start(
        command: &[OsString],
        environment: Vec<(&'static str, Option<OsString>)>,
        payload: Bytes,
        groups: &Groups,
    ) -> io::Result<Self> {
        let mut start = Command::new(&command[0]);
        start.args(&command[1..]).process_group(0);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in environment {
            match value {
                Some(value) => start.env(name, value),
                None => start.env_remove(name),
            };
        }
        // Under the lock: a kill of all groups meets it before or after, not in between.
        let mut running = groups.lock();
        let mut child = start.spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let group = Pid::from_raw(id.expect("a process that was not waited for has an id"));
        running.insert(group);
        drop(running);
        let (stdout, stderr) = (Tail::default(), Tail::default());
        let pipes = tokio::spawn(attend(
            write(child.stdin.take(), payload),
            stdout.clone().read(child.stdout.take().expect("stdout is a pipe"), tokio::io::stdout()),
            stderr.clone().read(child.stderr.take().expect("stderr is a pipe"), tokio::io::stderr()),
        ));
        let process = Process { child, group, pipes, kill_at: None };
        Ok(Self { process: Some(process), groups: groups.clone(), stdout, stderr })
    }

    /// Waits until the command has ended by itself. Safe to drop.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        match &mut self.process {
            Some(process) => process.child.wait().await,
            None => Err(io::Error::other("it has ended")),
        }
    }

    /// After the exit: waits for the end of the output. What the command left running in the background is left
    /// alone.
    pub(super) async fn read_on(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = timeout(OUTPUT, &mut process.pipes).await;
        }
        self.gone();
    }

    /// Ends the whole group: SIGTERM, and SIGKILL after 10 s.
    pub(super) async fn end(&mut self) {
        if let Some(process) = &mut self.process {
            process.end().await;
        }
        self.gone();
    }

    pub(super) fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes()
    }

    pub(super) fn stderr(&self) -> Vec<u8> {
        self.stderr.bytes()
    }

    fn gone(&mut self) {
        if let Some(process) = self.process.take() {
            process.pipes.abort();
            self.groups.lock().remove(&process.group);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        process.terminate();
        let groups = self.groups.clone();
        self.groups.ending.spawn(async move {
            process.end().await;
            process.pipes.abort();
            groups.lock().remove(&process.group);
        });
    }
}

impl Process {
    /// Sends SIGTERM, once. Answers when SIGKILL follows.
    fn terminate(&mut self) -> Instant {
        *self.kill_at.get_or_insert_with(|| {
            // Once it was waited for, its number may be another's.
            if self.child.id().is_some() {
                let _ = killpg(self.group, Signal::SIGTERM);
            }
            Instant::now() + PATIENCE
        })
    }

    async fn end(&mut self) {
        let kill_at = self.terminate();
        let group = self.group;
        let gone = async {
            // Until it is waited for, a process that has ended is still in its group.
            let _ = self.child.wait().await;
            while killpg(group, None) != Err(Errno::ESRCH) {
                sleep(LOOK).await;
            }
        };
        if timeout_at(kill_at, gone).await.is_err() {
            let _ = killpg(group, Signal::SIGKILL);
            let _ = timeout(KILLED, self.child.wait()).await;
        }
    }
}

/// Feeds and reads the command, all at once.
async fn attend(
    write: impl Future<Output = ()>,
    stdout: impl Future<Output = ()>,
    stderr: impl Future<Output = ()>,
) {
    tokio::join!(write, stdout, stderr);
}

/// Writes the payload and closes the pipe. A command that does not read it is fine.
async fn write(stdin: Option<tokio::process::ChildStdin>, payload: Bytes) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&payload).await;
        let _ = stdin.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, groups: &Groups) -> Running {
        let command = ["sh", "-c", script].map(OsString::from);
        Running::start(&command, vec![], Bytes::from(vec![b'x'; 1 << 20]), groups).unwrap()
    }

    fn alive(group: Pid) -> bool {
        killpg(group, None) != Err(Errno::ESRCH)
    }

    #[tokio::test]
    async fn a_command_that_reads_nothing_and_one_that_says_much_both_end() {
        let groups = Groups::default();
        assert_eq!(start("exit 7", &groups).exited().await.unwrap().code(), Some(7));
        let mut talker = start("cat; cat /proc/self/environ >&2; echo end", &groups);
        assert!(talker.exited().await.unwrap().success());
        talker.read_on().await;
        assert!(talker.stdout().ends_with(b"xend\n"));
        assert!(groups.lock().is_empty());
    }

    #[tokio::test]
    async fn what_is_left_in_the_background_holds_nothing_up() {
        let groups = Groups::default();
        let mut running = start("sleep 60 & echo $! ", &groups);
        let group = running.process.as_ref().unwrap().group;
        assert!(running.exited().await.unwrap().success());
        timeout(Duration::from_secs(5), running.read_on()).await.unwrap();
        let _ = killpg(group, Signal::SIGKILL);
    }

    #[tokio::test]
    async fn a_dropped_command_is_ended_with_its_children() {
        let groups = Groups::default();
        let running = start("sleep 60 & sleep 60", &groups);
        let group = running.process.as_ref().unwrap().group;
        assert!(alive(group));
        drop(running);
        groups.ended().await;
        assert!(groups.lock().is_empty() && !alive(group));
    }
}
