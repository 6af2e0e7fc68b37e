//! Consumers of the library in processes of their own, which tests kill and start again.

use std::path::Path;
use std::sync::Mutex;

use overdue_tests::{Launch, Program, Redis};

use crate::stage::{GROUP, QUEUE};

/// A place for one such process, and whoever stands there.
pub(crate) struct Place {
    args: Vec<String>,
    now: Mutex<Program>,
}

impl Place {
    /// Starts one: see `tests/programs/hands.rs`.
    pub(crate) fn new(redis: &Redis, work: &str, options: &[&str]) -> Self {
        let url = redis.url();
        let args = [&url, QUEUE, GROUP, work].into_iter().chain(options.iter().copied());
        let args: Vec<_> = args.map(str::to_owned).collect();
        Self { now: Mutex::new(start(&args)), args }
    }

    /// Starts another if this one has ended by itself; answers whether it had.
    pub(crate) fn tend(&self) -> bool {
        let mut now = self.now.lock().unwrap();
        let ended = now.exited().is_some();
        if ended {
            *now = start(&self.args);
        }
        ended
    }

    /// SIGKILL, and another takes its place; answers the process id of the killed.
    pub(crate) fn kill(&self) -> u32 {
        let mut now = self.now.lock().unwrap();
        now.kill9();
        let killed = now.pid();
        *now = start(&self.args);
        killed
    }

    /// Who stands there now.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&Program) -> R) -> R {
        f(&self.now.lock().unwrap())
    }
}

fn start(args: &[String]) -> Program {
    Launch::new(args).start_as(Path::new(env!("CARGO_BIN_EXE_hands")))
}

/// Whether it has come through its start.
pub(crate) fn is_up(program: &Program) -> bool {
    program.stdout().starts_with("up")
}
