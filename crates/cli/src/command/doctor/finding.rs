//! What the doctor finds.

use serde::Serialize;

use crate::exit::Failure;
use crate::output::{Colour, Output};

/// How bad it is; worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// Something must be done: timers are lost, late or not handled, or will be.
    Bad,
    /// Worth a look.
    Warn,
    /// As it should be.
    Ok,
}

/// The checks that say why nothing is handled: they come first among those that are as bad.
const WHY: [&str; 9] =
    ["reach", "relays", "paused", "endpoint", "groups", "overdue", "blind", "slow", "dead letters"];

/// One finding, with what to do about it; empty when nothing is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) check: &'static str,
    finding: String,
    #[serde(rename = "do")]
    advice: String,
}

impl Finding {
    pub(super) fn ok(check: &'static str, finding: impl Into<String>) -> Self {
        Self { level: Level::Ok, check, finding: finding.into(), advice: String::new() }
    }

    pub(super) fn warn(check: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Warn, check, finding: finding.into(), advice: advice.into() }
    }

    pub(super) fn bad(check: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Bad, check, finding: finding.into(), advice: advice.into() }
    }

    /// The same, as bad as it turned out to be.
    pub(super) fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Where it stands: worst first.
    pub(super) fn place(&self) -> (Level, usize) {
        (self.level, WHY.iter().position(|check| *check == self.check).unwrap_or(WHY.len()))
    }

    /// Writes it, on one line or two.
    pub(super) fn say(&self, output: &mut Output) -> Result<(), Failure> {
        let level = match self.level {
            Level::Bad => output.paint(Colour::Red, "BAD "),
            Level::Warn => output.paint(Colour::Yellow, "warn"),
            Level::Ok => output.paint(Colour::Green, "ok  "),
        };
        output.object(self)?;
        output.say(format!("{level}  {:<13}  {}", self.check, self.finding))?;
        if self.advice.is_empty() {
            Ok(())
        } else {
            output.say(format!("      {:<13}  -> {}", "", self.advice))
        }
    }
}
