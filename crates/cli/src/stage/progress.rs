//! What is said on stderr while something takes long.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::Duration;

use tokio::time::Instant;

use crate::output::Output;

/// How often a line is written where the one before can't be taken back.
const PLAIN_RHYTHM: Duration = Duration::from_secs(1);
/// How long a command may take without a word.
const PATIENCE: Duration = Duration::from_secs(1);

/// One line that is rewritten on a terminal; a line a second elsewhere.
pub(crate) struct Progress {
    silent: bool,
    terminal: bool,
    /// Nothing is said of what is over before.
    from: Duration,
    start: Instant,
    written: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(silent: bool) -> Self {
        let terminal = stderr().is_terminal();
        Self { silent, terminal, from: Duration::ZERO, start: Instant::now(), written: None }
    }

    /// Of a command that is quick most of the time: for people at a terminal, and only once they have waited.
    pub(crate) fn of_a_command(output: &Output) -> Self {
        let progress = Self::new(output.is_json());
        Self { silent: progress.silent || !progress.terminal, from: PATIENCE, ..progress }
    }

    /// Something happened: a line that stays.
    pub(crate) fn happened(&mut self, what: &str) {
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        self.write(&format!("{clear}{:5.1} s  {what}\n", self.start.elapsed().as_secs_f64()));
    }

    /// How far it is: takes the place of the line before where it can.
    pub(crate) fn is_at(&mut self, how_far: &str) {
        if self.start.elapsed() < self.from {
            return;
        }
        if !self.terminal && self.written.is_some_and(|at| at.elapsed() < PLAIN_RHYTHM) {
            return;
        }
        self.written = Some(Instant::now());
        let (clear, end) = if self.terminal { ("\r\x1b[2K", "") } else { ("", "\n") };
        self.write(&format!("{clear}{:5.1} s  {how_far}{end}", self.start.elapsed().as_secs_f64()));
    }

    /// Takes the last line back before the table.
    pub(crate) fn end(&self) {
        self.write(if self.terminal && self.written.is_some() { "\r\x1b[2K" } else { "" });
    }

    fn write(&self, text: &str) {
        if !self.silent {
            let mut out = stderr().lock();
            // Nobody is left to tell when stderr is closed.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    }
}
