//! A command that runs: a process group of its own, and the pipes to it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::TaskTracker;

/// From SIGTERM to SIGKILL.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of the output may take once the command has ended. Only what it left running in the
/// background can hold its pipes open.
pub(crate) const OUTPUT: Duration = Duration::from_millis(500);
/// How often a group that is to end is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long the system may take to end what got SIGKILL.
const KILLED: Duration = Duration::from_secs(5);

/// A variable of the environment; `None` is taken out of what the command would inherit.
pub(crate) type Variable = (&'static str, Option<OsString>);

/// The process groups of all commands that run, and the tasks that end those nobody waits for.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    running: Arc<Mutex<HashSet<Pid>>>,
    ending: TaskTracker,
}

impl Groups {
    /// Kills all that runs: SIGKILL.
    pub fn kill(&self) {
        for &group in self.lock().iter() {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }

    /// Waits for those that are being ended: some 15 s at most. Call it once the handlers are gone and their stop was
    /// cancelled.
    pub async fn ended(&self) {
        self.ending.close();
        self.ending.wait().await;
    }

    /// Runs what ends a command, beside all else.
    pub(crate) fn beside(&self, ending: impl Future<Output = ()> + Send + 'static) {
        self.ending.spawn(ending);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<Pid>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What leads to a command and from it.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A command that runs. Dropped before its end, it is ended in the background.
#[derive(Debug)]
pub(crate) struct Running {
    process: Option<Process>,
    groups: Groups,
}

#[derive(Debug)]
struct Process {
    child: Child,
    group: Pid,
    /// Feeds and reads it.
    attendant: Option<JoinHandle<()>>,
    /// When SIGKILL follows, once SIGTERM was sent.
    kill_at: Option<Instant>,
}

impl Running {
    /// Starts the command.
    ///
    /// # Errors
    /// The system can't start it.
    pub(crate) fn start(
        command: &[OsString],
        environment: Vec<Variable>,
        groups: &Groups,
    ) -> io::Result<(Self, Pipes)> {
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
        let pipes = Pipes {
            stdin: child.stdin.take().expect("stdin is a pipe"),
            stdout: child.stdout.take().expect("stdout is a pipe"),
            stderr: child.stderr.take().expect("stderr is a pipe"),
        };
        let process = Process { child, group, attendant: None, kill_at: None };
        Ok((Self { process: Some(process), groups: groups.clone() }, pipes))
    }

    /// What feeds and reads it, beside all else, until it has ended.
    pub(crate) fn attend(&mut self, attendant: impl Future<Output = ()> + Send + 'static) {
        if let Some(process) = &mut self.process {
            process.attendant = Some(tokio::spawn(attendant));
        }
    }

    /// Waits until the command has ended by itself. Safe to drop.
    pub(crate) async fn exited(&mut self) -> io::Result<ExitStatus> {
        match &mut self.process {
            Some(process) => process.child.wait().await,
            None => Err(io::Error::other("it has ended")),
        }
    }

    /// After the exit: waits for the end of the output. What the command left running in the background is left
    /// alone.
    pub(crate) async fn read_on(&mut self) {
        if let Some(attendant) = self.process.as_mut().and_then(|process| process.attendant.as_mut()) {
            let _ = timeout(OUTPUT, attendant).await;
        }
        self.gone();
    }

    /// Ends the whole group: SIGTERM, and SIGKILL after 10 s.
    pub(crate) async fn end(&mut self) {
        if let Some(process) = &mut self.process {
            process.end().await;
        }
        self.gone();
    }

    fn gone(&mut self) {
        if let Some(process) = self.process.take() {
            process.leave(&self.groups);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        process.terminate();
        let groups = self.groups.clone();
        self.groups.beside(async move {
            process.end().await;
            process.leave(&groups);
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

    fn leave(self, groups: &Groups) {
        if let Some(attendant) = self.attendant {
            attendant.abort();
        }
        groups.lock().remove(&self.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, groups: &Groups) -> (Running, Pipes) {
        let command = ["sh", "-c", script].map(OsString::from);
        Running::start(&command, vec![], groups).unwrap()
    }

    fn alive(group: Pid) -> bool {
        killpg(group, None) != Err(Errno::ESRCH)
    }

    #[tokio::test]
    async fn what_is_left_in_the_background_holds_nothing_up() {
        let groups = Groups::default();
        let (mut running, mut pipes) = start("sleep 60 & echo $! ", &groups);
        let group = running.process.as_ref().unwrap().group;
        running.attend(async move {
            let _ = tokio::io::copy(&mut pipes.stdout, &mut tokio::io::sink()).await;
        });
        assert!(running.exited().await.unwrap().success());
        timeout(Duration::from_secs(5), running.read_on()).await.unwrap();
        assert!(groups.lock().is_empty());
        let _ = killpg(group, Signal::SIGKILL);
    }

    #[tokio::test]
    async fn a_dropped_command_is_ended_with_its_children() {
        let groups = Groups::default();
        let (running, _pipes) = start("sleep 60 & sleep 60", &groups);
        let group = running.process.as_ref().unwrap().group;
        assert!(alive(group));
        drop(running);
        groups.ended().await;
        assert!(groups.lock().is_empty() && !alive(group));
    }
}
