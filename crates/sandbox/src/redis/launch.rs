//! Starting the process and waiting for its first answer.

use std::env;
use std::fs::{self, File};
use std::io;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Redis;
use crate::error::{Error, ErrorKind};
use crate::process::Process;

impl Redis {
    pub(super) fn launch(&self) -> Result<(), Error> {
        let program =
            self.options.program.clone().or_else(|| env::var_os("OVERDUE_REDIS_SERVER").map(Into::into));
        let program = program.unwrap_or_else(|| "redis-server".into());
        let doing = format!("start {} on port {}", program.display(), self.port);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Error::new(
                ErrorKind::NotInstalled,
                &doing,
                "no such program; install redis-server (Debian and Ubuntu: apt-get install redis-server; \
                 elsewhere the package is called redis or valkey), or name it in OVERDUE_REDIS_SERVER",
            ),
            _ => Error::new(ErrorKind::Start, &doing, error.to_string()),
        };
        let config = self.folder().join("redis.conf");
        // A Sentinel keeps what it has learned in its config file.
        if !(self.options.sentinel && config.exists()) {
            fs::write(&config, self.config()).map_err(failed)?;
        }
        let skip = self.log().len();
        let mut command = Command::new(&program);
        command.arg(&config).args(self.options.sentinel.then_some("--sentinel"));
        // What it says before it opens its log: errors in the config file.
        let log = File::options().create(true).append(true).open(self.folder().join("redis.log"));
        let log = log.map_err(failed)?;
        let (stdout, stderr) = (log.try_clone().map_err(failed)?, log);
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let mut process = Process::spawn(&mut command).map_err(failed)?;
        let answered = self.await_ping(&mut process);
        // Held even if it did not answer: then dropped here, and so killed.
        answered.map_err(|why| {
            let log = self.log();
            let log = log.get(skip..).unwrap_or_default();
            Error::new(ErrorKind::Start, &doing, format!("{why}; its log:\n{log}"))
        })?;
        *self.process() = Some(process);
        Ok(())
    }

    fn config(&self) -> String {
        let folder = self.folder().display();
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            format!("port {}", self.port),
            format!("dir \"{folder}\""),
            format!("unixsocket \"{folder}/redis.sock\""),
            format!("logfile \"{folder}/redis.log\""),
        ];
        lines.extend(self.options.config());
        lines.join("\n") + "\n"
    }

    fn await_ping(&self, process: &mut Process) -> Result<(), String> {
        let start = Instant::now();
        loop {
            if let Some(status) = process.exited() {
                return Err(format!("it ended with {status}"));
            }
            // The socket file is ours alone, so it is this server that answers; it opens after the port.
            match self.command(&["PING"]) {
                Ok(_) => return Ok(()),
                // NOAUTH and the like are answers too.
                Err(error) if error.kind() == ErrorKind::Redis && !error.detail().starts_with("LOADING") => {
                    return Ok(());
                }
                Err(error) if start.elapsed() >= self.options.deadline => {
                    return Err(format!("no answer to PING within {:?}: {error}", self.options.deadline));
                }
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}
