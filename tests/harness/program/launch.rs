//! How a program is started.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use overdue_sandbox::Process;

use super::{Finished, Program};
use crate::binary;
use crate::patience::patience;

/// How a program is to be started.
#[derive(Debug)]
pub struct Launch {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
}

impl Launch {
    /// `overdue <args>`, nothing added. No `OVERDUE_` variable of the test's own environment reaches it.
    pub fn new(args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { args: args.into_iter().map(Into::into).collect(), env: vec![], stdin: vec![] }
    }

    /// `overdue relay`, metrics on a free port.
    #[must_use]
    pub fn relay(url: &str) -> Self {
        Self::new(["relay", "--redis", url, "--listen", "127.0.0.1:0"])
    }

    /// `overdue consume`, metrics on a free port. Add `--print` or, last of all, `--exec -- CMD ARG...`.
    #[must_use]
    pub fn consume(url: &str, queue: &str, group: &str) -> Self {
        let args = ["consume", "--redis", url, "--listen", "127.0.0.1:0", "--queue", queue, "--group", group];
        Self::new(args)
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// One variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// What it reads on stdin; nothing unless set.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// The program is not built, or older than its sources: the text says what to run.
    #[must_use]
    pub fn start(self) -> Program {
        let binary = binary::find().unwrap_or_else(|error| panic!("{error}"));
        self.start_as(&binary)
    }

    /// Starts another program than `overdue` in the same way.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn start_as(self, binary: &Path) -> Program {
        let folder = tempfile::tempdir().expect("a folder for the program's output");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("stdin"), &self.stdin).expect("the folder can be written to");
        let mut command = Command::new(binary);
        command.args(&self.args).current_dir(folder.path());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OVERDUE_"))
        {
            command.env_remove(name);
        }
        command.env("NO_COLOR", "1").envs(self.env);
        command.stdin(Stdio::from(File::open(path("stdin")).expect("just written")));
        command.stdout(File::create(path("stdout")).expect("the folder can be written to"));
        command.stderr(File::create(path("stderr")).expect("the folder can be written to"));
        let process = Process::spawn(&mut command).expect("the program can be started");
        Program { args: self.args, process: Mutex::new(process), addr: OnceLock::new(), folder }
    }

    /// Runs it to its end, at most for the [`patience`] of tests.
    ///
    /// # Panics
    /// As [`Launch::start`]; and it does not end in time.
    #[must_use]
    pub fn run(self) -> Finished {
        let program = self.start();
        let status = program.wait_exit(patience());
        Finished { code: status.code(), stdout: program.stdout(), stderr: program.stderr() }
    }
}
