//! A terminal in which the lines of the docs are run as they stand there: `overdue` is the built program, and all that
//! is not given points at a private server.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use overdue_sandbox::Process;
use overdue_tests::{Redis, binary, patience};
use tempfile::TempDir;

/// The secret of a webhook.
pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";

/// A folder with programs, and the server they talk to.
pub(super) struct Terminal {
    folder: TempDir,
    url: String,
    number: std::cell::Cell<usize>,
}

/// A line that was run. Dropping it ends it.
pub(super) struct Running {
    line: String,
    process: Process,
    out: PathBuf,
}

impl Terminal {
    /// On this server; `redis-cli` too.
    pub(super) fn at(redis: &Redis) -> Self {
        let terminal = Self::nowhere();
        let found = Command::new("sh").args(["-c", "command -v redis-cli"]).output().unwrap();
        assert!(found.status.success(), "redis-cli is missing: apt-get install redis-tools");
        let cli = String::from_utf8(found.stdout).unwrap();
        terminal.program("redis-cli", &format!("exec {} -p {} \"$@\"", cli.trim(), redis.port()));
        Self { url: redis.url(), ..terminal }
    }

    /// Where no server is.
    pub(super) fn nowhere() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let overdue = binary::find().unwrap_or_else(|error| panic!("{error}"));
        symlink(fs::canonicalize(overdue).unwrap(), folder.path().join("overdue")).unwrap();
        Self { folder, url: "redis://127.0.0.1:1/".to_owned(), number: 0.into() }
    }

    /// A program that the lines call: a shell script.
    pub(super) fn program(&self, name: &str, script: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A file beside them.
    pub(super) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs a line of a shell.
    pub(super) fn run(&self, line: &str) -> Running {
        let mut command = Command::new("sh");
        // The line's own process is the one that is ended.
        command.arg("-c").arg(format!("exec {line}")).current_dir(self.folder.path());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OVERDUE_"))
        {
            command.env_remove(name);
        }
        command.env("PATH", path_before(self.folder.path())).env("NO_COLOR", "1");
        command.env("OVERDUE_REDIS_URL", &self.url);
        command.env("OVERDUE_RELAY_LISTEN", "off").env("OVERDUE_CONSUME_LISTEN", "off");
        self.number.set(self.number.get() + 1);
        let out = self.folder.path().join(format!("out{}", self.number.get()));
        let file = File::create(&out).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Running { line: line.to_owned(), process: Process::spawn(&mut command).unwrap(), out }
    }
}

impl Running {
    /// All it wrote so far, to stdout and stderr.
    pub(super) fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    /// Waits for its end: the exit code.
    pub(super) fn code(&mut self) -> i32 {
        let status = self.process.wait_exit(patience());
        let code = status.and_then(|status| status.code());
        code.unwrap_or_else(|| {
            panic!("{} still runs, or was killed: {status:?}\n{}", self.line, self.output())
        })
    }

    /// Fails when it has ended.
    pub(super) fn assert_runs(&mut self) {
        let exited = self.process.exited();
        assert!(exited.is_none(), "{} ended with {exited:?}\n{}", self.line, self.output());
    }
}

fn path_before(folder: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap()
}
