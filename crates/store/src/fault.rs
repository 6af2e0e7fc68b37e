//! What an error of the server or of the client library means.
//!
//! The text counts, not the library's kind, which is `Unknown` for nearly every server error. Redis 6.2 wraps the
//! errors of commands inside scripts, so the words are looked for in the text of those too.

use std::io;

use fred::error::{Error as FredError, ErrorKind as FredKind};

use crate::{Error, ErrorKind};

/// An error before anybody knows what was being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    /// What the server or the library said. Never holds what we sent.
    pub(crate) text: String,
    /// Not executed, and passes within milliseconds: worth another try at once.
    pub(crate) passing: bool,
    /// No answer within the deadline.
    pub(crate) silent: bool,
    /// The server does not hold the script.
    pub(crate) no_script: bool,
}

impl Fault {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), passing: false, silent: false, no_script: false }
    }

    /// Names what was being done, and where.
    pub(crate) fn during(self, doing: impl Into<String>, place: &str) -> Error {
        Error::at(self.kind, doing, place, &self.text)
    }

    /// An error reply of the server.
    pub(crate) fn of_reply(text: &str) -> Self {
        // What we sent is quoted behind this, be it a payload or a password.
        let text = text.split(", with args beginning with").next().unwrap_or_default();
        let word = text.split(' ').next().unwrap_or_default();
        let mut fault = Self::new(kind_of(word, text), text.replace(['\r', '\n'], " "));
        fault.no_script = word == "NOSCRIPT";
        fault.passing = fault.no_script || matches!(word, "MOVED" | "ASK" | "TRYAGAIN");
        fault
    }

    /// An error of the client library for a command that was handed to it.
    pub(crate) fn of_command(error: &FredError) -> Self {
        let text = error.details();
        match error.kind() {
            FredKind::Timeout => {
                Self { silent: true, ..Self::new(ErrorKind::OutcomeUnknown, "no answer within the deadline") }
            }
            // With one attempt per command these are said only before anything was written.
            _ if text == "Failed to route command." || text == "Too many failed write attempts." => {
                Self { passing: true, ..Self::new(ErrorKind::Unavailable, "no connection to the node") }
            }
            FredKind::Routing | FredKind::Backpressure => {
                Self { passing: true, ..Self::new(ErrorKind::Unavailable, text) }
            }
            // Closed in the midst of it: handed over or not, nobody knows.
            _ if text == "channel closed" => {
                Self::new(ErrorKind::OutcomeUnknown, "the connection was closed meanwhile")
            }
            FredKind::IO | FredKind::Canceled | FredKind::Protocol | FredKind::Tls => {
                Self::new(ErrorKind::OutcomeUnknown, format!("the connection broke ({})", plain(text)))
            }
            _ => Self::of_reply(text),
        }
    }

    /// An error of a connection of ours to which no command was given that changes anything.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default().replace(['\r', '\n'], " ");
        let kind = match error.kind() {
            // How a server without TLS ends a handshake.
            io::ErrorKind::UnexpectedEof => ErrorKind::NotRedis,
            _ => ErrorKind::Unreachable,
        };
        Self::new(kind, text)
    }

    /// An error of the client library while connecting: nothing of ours was sent.
    pub(crate) fn of_connect(error: &FredError) -> Self {
        let text = error.details();
        let kind = match error.kind() {
            FredKind::Timeout => return Self::new(ErrorKind::Unreachable, "connected, but no answer came"),
            FredKind::Protocol => return Self::new(ErrorKind::NotRedis, plain(text)),
            FredKind::IO if text.contains("UnexpectedEof") => ErrorKind::NotRedis,
            FredKind::Tls => ErrorKind::Unreachable,
            FredKind::IO | FredKind::Canceled | FredKind::Routing => ErrorKind::Unreachable,
            _ => match Self::of_reply(text) {
                fault if fault.kind == ErrorKind::Script => ErrorKind::Unreachable,
                fault => return fault,
            },
        };
        Self::new(kind, plain(text))
    }
}

/// Words of the server that say what happened, wherever they stand.
const WORDS: &[(&str, ErrorKind)] = &[
    ("OOM", ErrorKind::OutOfMemory),
    ("LOADING", ErrorKind::Unavailable),
    ("BUSY", ErrorKind::Unavailable),
    ("MASTERDOWN", ErrorKind::Unavailable),
    ("CLUSTERDOWN", ErrorKind::Unavailable),
    ("READONLY", ErrorKind::Unavailable),
    ("MISCONF", ErrorKind::Unavailable),
    ("NOREPLICAS", ErrorKind::Unavailable),
    ("TRYAGAIN", ErrorKind::Unavailable),
    ("MOVED", ErrorKind::Unavailable),
    ("ASK", ErrorKind::Unavailable),
    ("NOSCRIPT", ErrorKind::Unavailable),
    ("NOGROUP", ErrorKind::NoGroup),
    ("UNBLOCKED", ErrorKind::NoGroup),
    ("WRONGTYPE", ErrorKind::WrongType),
    ("NOPERM", ErrorKind::Refused),
    ("NOAUTH", ErrorKind::Refused),
    ("WRONGPASS", ErrorKind::Refused),
    ("DENIED", ErrorKind::Refused),
];

/// Sentences of the server that begin with ERR.
const SENTENCES: &[(&str, ErrorKind)] = &[
    ("max number of clients reached", ErrorKind::Unavailable),
    ("unknown command", ErrorKind::Refused),
    ("ACL failure in script", ErrorKind::Refused),
    ("can't run this command", ErrorKind::Refused),
    ("user executing the script can't", ErrorKind::Refused),
    ("no permissions to", ErrorKind::Refused),
    ("without any password configured", ErrorKind::Refused),
    ("invalid password", ErrorKind::Refused),
    ("cluster support disabled", ErrorKind::Settings),
    ("DB index is out of range", ErrorKind::Settings),
    ("SELECT is not allowed in cluster mode", ErrorKind::Settings),
    // What a script meets at a node whose slots are not its own any more.
    ("access a non local key", ErrorKind::Unavailable),
    ("while the cluster is down", ErrorKind::Unavailable),
];

fn kind_of(word: &str, text: &str) -> ErrorKind {
    if let Some((_, kind)) = WORDS.iter().find(|(known, _)| *known == word) {
        return *kind;
    }
    if let Some((_, kind)) = SENTENCES.iter().find(|(known, _)| text.contains(known)) {
        return *kind;
    }
    if text.contains("script") {
        let inside = |known: &str| text.split([' ', ':', '-']).any(|part| part == known);
        if let Some((_, kind)) = WORDS.iter().find(|(known, _)| inside(known)) {
            return *kind;
        }
    }
    ErrorKind::Script
}

/// Rust's debug form of an I/O error, as the library hands it on, in plain words.
fn plain(text: &str) -> String {
    for (before, after) in [("message: \"", "\""), ("error: \"", "\""), ("error: ", " }")] {
        if let Some((_, rest)) = text.split_once(before)
            && let Some((inner, _)) = rest.rsplit_once(after)
        {
            return inner.replace(['\r', '\n'], " ");
        }
    }
    text.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as servers 6.2 to 8.0 wrote them.
    #[test]
    fn what_servers_say_is_understood() {
        use ErrorKind::*;
        for (text, kind, passing) in [
            ("NOSCRIPT No matching script. Please use EVAL.", Unavailable, true),
            ("MOVED 3999 127.0.0.1:6381", Unavailable, true),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Unavailable, true),
            ("LOADING Redis is loading the dataset in memory", Unavailable, false),
            (
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
                Unavailable,
                false,
            ),
            (
                "READONLY You can't write against a read only replica. script: 5f, on @user_script:1.",
                Unavailable,
                false,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
                Unavailable,
                false,
            ),
            ("ERR max number of clients reached", Unavailable, false),
            (
                "OOM command not allowed when used memory > 'maxmemory'. script: 5f, on @user_script:1.",
                OutOfMemory,
                false,
            ),
            (
                "ERR Error running script (call to f_5f): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
                OutOfMemory,
                false,
            ),
            (
                "ERR Error running script (call to f_5f): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value",
                WrongType,
                false,
            ),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", WrongType, false),
            ("NOGROUP No such key 'a' or consumer group 'g' in XREADGROUP with GROUP option", NoGroup, false),
            ("UNBLOCKED the stream key no longer exists", NoGroup, false),
            ("NOPERM this user has no permissions to run the 'evalsha' command", Refused, false),
            (
                "ERR ACL failure in script: User x has no permissions to run the 'xadd' command",
                Refused,
                false,
            ),
            (
                "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
                Refused,
                false,
            ),
            ("ERR unknown command 'EVALSHA', with args beginning with: ", Refused, false),
            ("WRONGPASS invalid username-password pair or user is disabled.", Refused, false),
            ("DENIED Redis is running in protected mode because protected mode is enabled", Refused, false),
            ("ERR This instance has cluster support disabled", Settings, false),
            ("ERR user_script:1: attempt to index a nil value script: 5f, on @user_script:1.", Script, false),
            (
                "ERR Script attempted to access a non local key in a cluster node script: 5f, on @user_script:1.",
                Unavailable,
                false,
            ),
            ("BUSYGROUP Consumer Group name already exists", Script, false),
        ] {
            let fault = Fault::of_reply(text);
            assert_eq!((fault.kind, fault.passing), (kind, passing), "{text}");
        }
    }

    #[test]
    fn what_we_sent_is_not_quoted() {
        let fault = Fault::of_reply(
            "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'u' 'hunter2' ",
        );
        assert_eq!(fault, Fault::new(ErrorKind::Refused, "ERR unknown command 'HELLO'"));
    }

    #[test]
    fn what_the_library_says_is_understood() {
        let command = |kind, text: &'static str| Fault::of_command(&FredError::new(kind, text));
        assert_eq!(command(FredKind::Timeout, "").kind, ErrorKind::OutcomeUnknown);
        assert_eq!(command(FredKind::IO, "Connection closed.").kind, ErrorKind::OutcomeUnknown);
        assert_eq!(command(FredKind::Canceled, "Canceled.").kind, ErrorKind::OutcomeUnknown);
        assert_eq!(command(FredKind::Unknown, "channel closed").kind, ErrorKind::OutcomeUnknown);
        assert!(command(FredKind::Unknown, "Failed to route command.").passing);
        assert!(command(FredKind::Unknown, "Too many failed write attempts.").passing);
        let refused = "Os { code: 111, kind: ConnectionRefused, message: \"Connection refused\" }";
        let refused = Fault::of_connect(&FredError::new(FredKind::IO, refused));
        assert_eq!(refused, Fault::new(ErrorKind::Unreachable, "Connection refused"));
    }
}
