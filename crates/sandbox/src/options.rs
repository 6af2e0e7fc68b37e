//! What a private server is to be like.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a private server. The default: no persistence, no notifications, no password.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program; default `OVERDUE_REDIS_SERVER`, else `redis-server` in PATH.
    pub program: Option<PathBuf>,
    /// Keep an append-only file, so that [`crate::Redis::restart`] finds all acknowledged writes again.
    pub aof: bool,
    /// `notify-keyspace-events`, such as `Ex`; empty = off.
    pub notify: String,
    /// `maxmemory`, such as `20mb`, with `noeviction`; `None` = no bound.
    pub maxmemory: Option<String>,
    /// `requirepass`: the password of the default user. The sandbox's own commands use it.
    pub password: Option<String>,
    /// ACL users, each as after the word `user`: `relay on >secret ~overdue:* &* +@all`.
    pub users: Vec<String>,
    /// More lines for the config file. They come last and so win over ours.
    pub lines: Vec<String>,
    /// Run as a Sentinel. `lines` then name what it watches.
    pub sentinel: bool,
    /// How long a start may take until PING is answered; default 10 s.
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: None,
            aof: false,
            notify: String::new(),
            maxmemory: None,
            password: None,
            users: vec![],
            lines: vec![],
            sentinel: false,
            deadline: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// These options, with one more line for the config file.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The config file's lines, but for those that name the port and the folder.
    pub(crate) fn config(&self) -> Vec<String> {
        if self.sentinel {
            return self.lines.clone();
        }
        let mut config = vec![
            "save \"\"".to_owned(),
            format!("appendonly {}", if self.aof { "yes" } else { "no" }),
            // With `everysec` a write may wait for a running fsync, and SIGKILL then loses what was
            // acknowledged. With `no` it is in the page cache before the answer: it outlives the process.
            "appendfsync no".to_owned(),
            format!("notify-keyspace-events \"{}\"", self.notify),
        ];
        config.extend(self.maxmemory.iter().map(|m| format!("maxmemory {m}\nmaxmemory-policy noeviction")));
        config.extend(self.password.iter().map(|p| format!("requirepass \"{p}\"")));
        config.extend(self.users.iter().map(|u| format!("user {u}")));
        config.extend(self.lines.iter().cloned());
        config
    }
}
