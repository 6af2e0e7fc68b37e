//! A terminal in which the lines of the docs are run as they stand there: `overdue` is the built program, and all that
//! is not given points at a private server.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use overdue_sandbox::Process;
use tempfile::TempDir;

use crate::binary;
use crate::patience::patience;
use crate::redis::Redis;

/// The secret of a webhook.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";

/// A folder with programs, and the server they talk to.
#[derive(Debug)]
pub struct Terminal {
    folder: TempDir,
    url: String,
    /// Where programs are, apart from the folder.
    path: OsString,
    number: std::cell::Cell<usize>,
}

/// A line that was run. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    line: String,
    process: Process,
    out: PathBuf,
}

impl Terminal {
    /// On this server; `redis-cli` too.
    ///
    /// # Panics
    /// The program is not built, or `redis-cli` is missing.
    #[must_use]
    pub fn at(redis: &Redis) -> Self {
        Self::nowhere().facing(redis)
    }

    /// Where no server is.
    ///
    /// # Panics
    /// The program is not built.
    #[must_use]
    pub fn nowhere() -> Self {
        let overdue = binary::find().unwrap_or_else(|error| panic!("{error}"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::new(path, &[("overdue", overdue)])
    }

    /// On this server, with the programs of these names and no others: no cargo, for one.
    ///
    /// # Panics
    /// One of them, or `redis-cli`, is missing.
    #[must_use]
    pub fn with_only(redis: &Redis, overdue: &Path, names: &[&str]) -> Self {
        let mut programs: Vec<_> = names.iter().map(|name| (*name, which(name))).collect();
        programs.push(("overdue", overdue.to_owned()));
        Self::new(OsString::new(), &programs).facing(redis)
    }

    fn new(path: OsString, programs: &[(&str, PathBuf)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the terminal");
        for (name, program) in programs {
            let program = fs::canonicalize(program).unwrap_or_else(|e| panic!("{}: {e}", program.display()));
            symlink(program, folder.path().join(name)).expect("the folder can be written to");
        }
        Self { folder, url: "redis://127.0.0.1:1/".to_owned(), path, number: 0.into() }
    }

    fn facing(self, redis: &Redis) -> Self {
        self.program(
            "redis-cli",
            &format!("exec {} -p {} \"$@\"", which("redis-cli").display(), redis.port()),
        );
        Self { url: redis.url(), ..self }
    }

    /// A program that the lines call: a shell script.
    ///
    /// # Panics
    /// It can't be written.
    pub fn program(&self, name: &str, script: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the folder can be written to");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("just written");
    }

    /// A file beside them.
    ///
    /// # Panics
    /// It can't be written.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("the folder can be written to");
        path
    }

    fn path(&self) -> OsString {
        let folders = std::iter::once(self.folder.path().to_owned());
        let others = std::env::split_paths(&self.path).filter(|path| !path.as_os_str().is_empty());
        std::env::join_paths(folders.chain(others)).expect("PATH was a path")
    }

    /// Runs a line of a shell.
    ///
    /// # Panics
    /// No shell can be started.
    #[must_use]
    pub fn run(&self, line: &str) -> Running {
        let mut command = Command::new("/bin/sh");
        // The line's own process is the one that is ended.
        command.arg("-c").arg(format!("exec {line}")).current_dir(self.folder.path());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OVERDUE_"))
        {
            command.env_remove(name);
        }
        command.env("PATH", self.path()).env("NO_COLOR", "1");
        command.env("OVERDUE_REDIS_URL", &self.url);
        command.env("OVERDUE_RELAY_LISTEN", "off").env("OVERDUE_CONSUME_LISTEN", "off");
        self.number.set(self.number.get() + 1);
        let out = self.folder.path().join(format!("out{}", self.number.get()));
        let file = File::create(&out).expect("the folder can be written to");
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle of a file"))
            .stderr(file);
        let process = Process::spawn(&mut command).expect("a shell can be started");
        Running { line: line.to_owned(), process, out }
    }
}

impl Running {
    /// All it wrote so far, to stdout and stderr.
    ///
    /// # Panics
    /// It can't be read.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).expect("its output is a file")).into_owned()
    }

    /// Waits for its end: the exit code.
    ///
    /// # Panics
    /// It still runs when the patience of tests is over, or was killed.
    pub fn code(&mut self) -> i32 {
        let status = self.process.wait_exit(patience());
        let code = status.and_then(|status| status.code());
        code.unwrap_or_else(|| {
            panic!("{} still runs, or was killed: {status:?}\n{}", self.line, self.output())
        })
    }

    /// Asks it to end: SIGTERM.
    pub fn sigterm(&mut self) {
        self.process.sigterm();
    }

    /// Fails when it has ended.
    ///
    /// # Panics
    /// It has ended.
    pub fn assert_runs(&mut self) {
        let exited = self.process.exited();
        assert!(exited.is_none(), "{} ended with {exited:?}\n{}", self.line, self.output());
    }
}

/// Where a program of the system is.
fn which(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing: install it (redis-cli: apt-get install redis-tools)"))
}
