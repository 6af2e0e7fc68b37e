//! A child process that is ended by its handle, whatever becomes of the parent.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often an awaited exit is looked for.
const POLL: Duration = Duration::from_millis(2);

/// Ends a process when the parent is gone: a shell waits on a pipe that only the parent holds.
///
/// (`PR_SET_PDEATHSIG` would need `unsafe`, and fires when the spawning *thread* ends.)
#[derive(Debug)]
pub struct Guard {
    shell: Child,
}

impl Guard {
    /// Watches over the process `pid`, which the caller started and has not yet waited for.
    ///
    /// # Errors
    /// `sh` can't be started.
    pub fn over(pid: u32) -> io::Result<Self> {
        let shell = Command::new("sh")
            .args(["-c", "read -r _; kill -9 \"$0\"", &pid.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal to the parent's group must not end the guard first.
            .process_group(0)
            .spawn()?;
        Ok(Self { shell })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// A running child with its [`Guard`]. Dropping it kills the child with SIGKILL.
#[derive(Debug)]
pub struct Process {
    child: Child,
    guard: Option<Guard>,
}

impl Process {
    /// Starts `command`. It stays in the caller's process group: Ctrl-C and a test runner reach it too.
    ///
    /// # Errors
    /// The program can't be started.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        match Guard::over(child.id()) {
            Ok(guard) => Ok(Self { child, guard: Some(guard) }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, or `None` while it runs.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        if status.is_some() {
            // The number may now be given to another process.
            self.guard = None;
        }
        status
    }

    /// Waits for its end; `None` when it still runs after `deadline`.
    pub fn wait_exit(&mut self, deadline: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            let status = self.exited();
            if status.is_some() || start.elapsed() >= deadline {
                return status;
            }
            thread::sleep(POLL);
        }
    }

    /// Asks it to end: SIGTERM.
    pub fn sigterm(&mut self) {
        self.signal(Signal::SIGTERM);
    }

    /// Freezes it: SIGSTOP.
    pub fn sigstop(&mut self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on: SIGCONT.
    pub fn sigcont(&mut self) {
        self.signal(Signal::SIGCONT);
    }

    /// Ends it at once: SIGKILL; returns when it is gone.
    pub fn kill9(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.guard = None;
    }

    fn signal(&mut self, signal: Signal) {
        if self.exited().is_none() {
            let pid = i32::try_from(self.pid()).expect("a process id fits an i32");
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill9();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_child_does_not_outlive_the_pipe_of_its_guard() {
        let mut child = Process::spawn(Command::new("sleep").arg("60")).unwrap();
        assert_eq!(child.wait_exit(Duration::ZERO), None);
        // What the kernel does when the parent is gone.
        child.guard.as_mut().unwrap().shell.stdin = None;
        assert_eq!(child.wait_exit(Duration::from_secs(10)).unwrap().signal(), Some(9));
    }
}
