//! Exit codes, and the failures that lead to them.

use std::io;

use overdue_store::ErrorKind;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// What was asked for is not there.
    NotThere = 1,
    /// Settings or usage. clap uses the same code.
    Usage = 2,
    /// Redis can't be reached or refuses.
    Redis = 3,
    /// A check failed: doctor, audit, demo.
    CheckFailed = 4,
    /// A fault of our own: something panicked. Rust's own code for that.
    Fault = 101,
    /// Ctrl-C.
    Interrupted = 130,
}

/// Why a command did not do what it should: an exit code, and lines for stderr that say what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    lines: Vec<String>,
}

impl Failure {
    /// With one line for stderr, without `overdue: ` in front.
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self { exit, lines: vec![line.into()] }
    }

    /// An exit code without a word: the command has said what there is to say.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, lines: vec![] }
    }

    /// Wrong settings, a line each.
    pub(crate) fn settings(lines: Vec<String>) -> Self {
        Self { exit: Exit::Usage, lines }
    }

    /// The same with one more line.
    pub(crate) fn with(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// The lines for stderr. Line ends inside one are taken out: an error is one line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.lines.iter().map(|line| line.split(['\n', '\r']).map(str::trim).collect::<Vec<_>>().join(" "))
    }
}

impl From<overdue_store::Error> for Failure {
    fn from(error: overdue_store::Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::Settings => Exit::Usage,
            ErrorKind::NoGroup => Exit::NotThere,
            _ => Exit::Redis,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<overdue::Error> for Failure {
    fn from(error: overdue::Error) -> Self {
        let exit = match error.kind() {
            overdue::ErrorKind::Invalid | overdue::ErrorKind::Settings => Exit::Usage,
            _ => Exit::Redis,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<io::Error> for Failure {
    /// For errors of writing to stdout. A closed pipe (`overdue list q | head`) is a quiet end, not an error.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::silent(Exit::Done),
            _ => Self::new(Exit::Usage, format!("cannot write to stdout: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_a_quiet_end() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit(), failure.lines().count()), (Exit::Done, 0));
        let failure = Failure::from(io::Error::other("disk full"));
        assert_eq!(failure.exit(), Exit::Usage);
        assert_eq!(failure.lines().collect::<Vec<_>>(), ["cannot write to stdout: disk full"]);
    }

    #[test]
    fn an_error_is_one_line() {
        let failure = Failure::new(Exit::Redis, "a\nb\r\n c");
        assert_eq!(failure.lines().collect::<Vec<_>>(), ["a b  c"]);
    }
}
