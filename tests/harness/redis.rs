//! A private server for one test.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::process::Command;
use std::thread;

pub use overdue_sandbox::{Error, ErrorKind, Options, Value};

/// How many lines of its log a failed test shows.
const LOG_LINES: usize = 40;

/// A [`overdue_sandbox::Redis`] of the test's own. When the test fails, the end of its log is printed.
#[derive(Debug)]
pub struct Redis(overdue_sandbox::Redis);

impl Redis {
    /// Starts one without persistence.
    ///
    /// # Panics
    /// It can't be started; the text says why and what to install.
    #[must_use]
    pub fn start() -> Self {
        Self::with(Options::default())
    }

    /// Starts one that keeps an append-only file: [`overdue_sandbox::Redis::restart`] loses nothing.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn with_aof() -> Self {
        Self::with(Options { aof: true, ..Options::default() })
    }

    /// Starts one as `options` say.
    ///
    /// # Panics
    /// It can't be started.
    #[must_use]
    pub fn with(options: Options) -> Self {
        match overdue_sandbox::Redis::start(options) {
            Ok(redis) => Self(redis),
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs an admin command that must succeed: `call(&["XLEN", key])`.
    ///
    /// # Panics
    /// Redis answers with an error, or not at all.
    pub fn call(&self, args: &[impl AsRef<[u8]>]) -> Value {
        let shown = || args.iter().map(|a| String::from_utf8_lossy(a.as_ref())).collect::<Vec<_>>().join(" ");
        self.command(args).unwrap_or_else(|error| panic!("{}: {error}", shown()))
    }

    /// The answer as a number: `count(&["ZCARD", key])`.
    ///
    /// # Panics
    /// As [`Redis::call`], and when the answer is no number.
    pub fn count(&self, args: &[impl AsRef<[u8]>]) -> u64 {
        let value = self.call(args);
        value.int().and_then(|n| u64::try_from(n).ok()).unwrap_or_else(|| panic!("{value:?} is no count"))
    }

    /// The fields of one section of INFO.
    pub fn info(&self, section: &str) -> BTreeMap<String, String> {
        let text = self.call(&["INFO", section]).text();
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    }

    /// Milliseconds on the server's clock.
    pub fn now_ms(&self) -> u64 {
        let time = self.call(&["TIME"]);
        let part = |i: usize| time.items().get(i).and_then(Value::int).and_then(|n| u64::try_from(n).ok());
        part(0).expect("TIME answers seconds") * 1000 + part(1).expect("TIME answers microseconds") / 1000
    }

    /// From now on, commands that take at least `ms` go into the slow log.
    ///
    /// The log counts the time that others took from the server: so it is [put first](Redis::put_first).
    pub fn watch_for_slow(&self, ms: u64) {
        self.put_first();
        // One setting a call: 6.2 takes no more.
        self.call(&["CONFIG", "SET", "slowlog-log-slower-than", &(ms * 1000).to_string()]);
        self.call(&["CONFIG", "SET", "slowlog-max-len", "1024"]);
        self.call(&["SLOWLOG", "RESET"]);
    }

    /// Gives the server the processor before all others, where that is allowed: of what a command takes by the clock,
    /// less is then the machine's doing.
    pub fn put_first(&self) {
        let pid = self.pid().expect("the server runs").to_string();
        // Without the right to do so it stays where it is.
        let _ = Command::new("renice").args(["-n", "-15", "-p", &pid]).output();
    }

    /// The slow log: the time in microseconds and the first words of each command.
    pub fn slow(&self) -> Vec<(u64, String)> {
        let log = self.call(&["SLOWLOG", "GET", "1024"]);
        let read = |entry: &Value| {
            let parts = entry.items();
            let us = parts.get(2).and_then(Value::int).and_then(|n| u64::try_from(n).ok())?;
            let words = parts.get(3)?.items().iter().take(4).map(Value::text);
            Some((us, words.map(|w| w.chars().take(80).collect::<String>()).collect::<Vec<_>>().join(" ")))
        };
        log.items().iter().filter_map(read).collect()
    }

    /// Fails when a command took longer than [`Redis::watch_for_slow`] allows.
    ///
    /// # Panics
    /// Shows the commands.
    pub fn assert_nothing_slow(&self) {
        let slow = self.slow();
        assert!(slow.is_empty(), "these commands held the server for too long (microseconds): {slow:#?}");
    }
}

impl Deref for Redis {
    type Target = overdue_sandbox::Redis;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for Redis {
    #[allow(clippy::print_stderr, reason = "a failed test shows the server's log")]
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            eprintln!("--- the log of redis-server on port {} ends:\n{tail}\n---", self.port());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_command_is_seen() {
        let redis = Redis::start();
        redis.watch_for_slow(50);
        redis.call(&["EVAL", "return 1", "0"]);
        redis.assert_nothing_slow();
        let busy = "local n = 0 while n < 3e7 do n = n + 1 end return n";
        redis.call(&["EVAL", busy, "0"]);
        let slow = redis.slow();
        assert!(slow[0].0 > 50_000 && slow[0].1.starts_with("EVAL"), "{slow:?}");
    }
}
