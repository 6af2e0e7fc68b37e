//! What a command finds in its environment.
//!
//! Linux takes no string of more than 128 KiB there, and no system one with a NUL in it: the name of a watched key may be
//! both. So its base64 is always there, the name itself only when it is text and fits, and the idempotency key in
//! base64 when it does not fit percent-encoded. A name that does not even fit in base64 is not handed to a command at all:
//! what would it do without?

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use overdue_consumer::{Raw, Timeout};

use crate::child::Variable;

/// The longest `NAME=value`, with the NUL behind it, bytes.
const LONGEST: usize = 128 * 1024;

/// The variables of a timeout.
///
/// # Errors
/// Its name does not fit.
pub(super) fn of(timeout: &Timeout<Raw>) -> Result<Vec<Variable>, String> {
    let id = timeout.id().as_bytes();
    let base64 = STANDARD.encode(id);
    let (queue, generation) = (timeout.queue().as_str(), timeout.generation().to_string());
    let key = key(&timeout.idempotency_key(), queue, &base64, &generation);
    let (Some(key), Some(base64)) = (key, fitting("OVERDUE_ID_BASE64", base64.as_bytes())) else {
        return Err(format!(
            "its id of {} bytes fits into no environment variable; handle it with the library, or with --print --json",
            id.len()
        ));
    };
    let number = |number: u64| Some(OsString::from(number.to_string()));
    let text = |name, value: Option<&str>| (name, value.and_then(|value| fitting(name, value.as_bytes())));
    Ok(vec![
        ("OVERDUE_KEY", Some(key)),
        ("OVERDUE_QUEUE", Some(queue.into())),
        ("OVERDUE_GROUP", Some(timeout.group().as_str().into())),
        ("OVERDUE_ID", plain("OVERDUE_ID", id)),
        ("OVERDUE_ID_BASE64", Some(base64)),
        ("OVERDUE_GENERATION", Some(generation.into())),
        ("OVERDUE_DUE_MS", number(timeout.due_ms())),
        ("OVERDUE_ATTEMPT", number(timeout.attempt().into())),
        ("OVERDUE_SOURCE", Some(timeout.source().as_str().into())),
        ("OVERDUE_KIND", Some(timeout.kind().as_str().into())),
        text("OVERDUE_RULE", timeout.rule()),
        ("OVERDUE_DB", timeout.db().and_then(|db| number(db.into()))),
        text("OVERDUE_PROOF", timeout.proof().map(|proof| proof.as_str())),
        text("OVERDUE_CAUSE", timeout.cause()),
        ("OVERDUE_CAPTURED_MS", timeout.captured_ms().and_then(number)),
        text("OVERDUE_ENCODING", timeout.encoding()),
        text("OVERDUE_FLAW", timeout.flaw()),
        text("TRACEPARENT", timeout.traceparent()),
    ])
}

/// The idempotency key, in the shorter form if need be. No id gives the same key as another: percent-encoded ids hold
/// no colon.
fn key(whole: &str, queue: &str, base64: &str, generation: &str) -> Option<OsString> {
    let short = || fitting("OVERDUE_KEY", format!("{queue}/base64:{base64}/{generation}").as_bytes());
    fitting("OVERDUE_KEY", whole.as_bytes()).or_else(short)
}

/// The id as it is, when it can be read as text.
fn plain(name: &str, id: &[u8]) -> Option<OsString> {
    std::str::from_utf8(id).ok().and_then(|_| fitting(name, id))
}

/// What can stand in an environment.
fn fitting(name: &str, value: &[u8]) -> Option<OsString> {
    let fits = name.len() + value.len() + 2 <= LONGEST && !value.contains(&0);
    fits.then(|| OsStr::from_bytes(value).to_os_string())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_id_that_is_no_text_is_not_in_the_environment() {
        assert_eq!(plain("OVERDUE_ID", b"a\nb/{}"), Some("a\nb/{}".into()));
        assert_eq!((plain("OVERDUE_ID", b"\xff"), plain("OVERDUE_ID", b"a\0b")), (None, None));
    }

    #[test]
    fn what_is_said_to_fit_can_be_handed_over() {
        let longest = LONGEST - "X".len() - 2;
        let value = fitting("X", &vec![b'x'; longest]).unwrap();
        assert!(Command::new("true").env("X", value).status().unwrap().success());
        assert_eq!(fitting("X", &vec![b'x'; longest + 1]), None);
    }

    #[test]
    fn an_id_of_64_kib_has_a_key_whatever_its_bytes() {
        let key_of = |id: &[u8]| {
            let whole = format!("q/{}/7", "%FF".repeat(id.len()));
            key(&whole, "q", &STANDARD.encode(id), "7").map(|key| key.into_string().unwrap())
        };
        assert_eq!(key_of(b"\xff").unwrap(), "q/%FF/7");
        let long = key_of(&[0xff; 65_536]).unwrap();
        assert!(long.starts_with("q/base64://") && long.ends_with("==/7"), "{}", &long[..80]);
        assert_eq!(key_of(&[0xff; 100_000]), None);
    }
}
