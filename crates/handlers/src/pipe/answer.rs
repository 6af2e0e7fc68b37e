//! What a command answers: `{"key":…,"outcome":"done|retry|reject","after_ms":…,"reason":…}`.

use std::time::Duration;

use overdue_consumer::Outcome;
use serde::Deserialize;

/// The longest line, bytes.
pub(super) const LONGEST: usize = 1 << 20;
/// What is wrong with a longer one.
pub(super) const TOO_LONG: &str =
    "the command answered with a line of more than 1 MiB; an answer is one line, and logs belong on stderr";
/// The longest wait that a command may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 3600);
/// How much of a wrong answer is shown, bytes.
const SHOWN: usize = 200;

#[derive(Deserialize)]
struct Answer {
    key: String,
    outcome: Word,
    after_ms: Option<u64>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Done,
    Retry,
    Reject,
}

/// The outcome for the timeout with this idempotency key.
///
/// # Errors
/// It is no answer, or one to something else.
pub(super) fn read(line: &[u8], key: &str) -> Result<Outcome, String> {
    let answer: Answer = serde_json::from_slice(line).map_err(|error| {
        format!("the command's line on stdout is no answer ({error}; logs belong on stderr): {}", shown(line))
    })?;
    if answer.key != key {
        return Err(format!("the command answered for another key, {}", shown(answer.key.as_bytes())));
    }
    let reason = answer.reason.unwrap_or_default();
    Ok(match (answer.outcome, answer.after_ms.map(Duration::from_millis)) {
        (Word::Done, _) => Outcome::Done,
        (Word::Retry, Some(wait)) => Outcome::retry_after(wait.min(LONGEST_WAIT), reason),
        (Word::Retry, None) => Outcome::retry(reason),
        (Word::Reject, _) => Outcome::reject(reason),
    })
}

fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_it_says() {
        let of = |rest: &str| read(format!(r#"{{"key":"q/a/1",{rest}}}"#).as_bytes(), "q/a/1").unwrap();
        assert_eq!(of(r#""outcome":"done","reason":"x","more":[]"#), Outcome::Done);
        assert_eq!(of(r#""outcome":"retry""#), Outcome::retry(""));
        let later = Outcome::retry_after(Duration::from_millis(1500), "busy");
        assert_eq!(of(r#""outcome":"retry","after_ms":1500,"reason":"busy""#), later);
        let never = of(&format!(r#""outcome":"retry","after_ms":{}"#, u64::MAX));
        assert_eq!(never, Outcome::retry_after(LONGEST_WAIT, ""));
        assert_eq!(of(r#""outcome":"reject","reason":null"#), Outcome::reject(""));
    }

    #[test]
    fn what_is_no_answer_says_why() {
        let of = |line: &str| read(line.as_bytes(), "q/a/1").unwrap_err();
        for (line, why) in [
            ("hello", "expected value"),
            ("\n", "EOF while parsing"),
            (r#"{"key":"q/a/1"}"#, "missing field `outcome`"),
            (
                r#"{"key":"q/a/1","outcome":"ok"}"#,
                "unknown variant `ok`, expected one of `done`, `retry`, `reject`",
            ),
            (r#"{"key":"q/a/1","outcome":"retry","after_ms":-1}"#, "invalid value: integer `-1`"),
            (r#"{"key":"q/b/1","outcome":"done"}"#, "answered for another key, q/b/1"),
        ] {
            assert!(of(line).contains(why), "{line}: {}", of(line));
        }
        assert!(of(&"x".repeat(1000)).len() < 400);
    }
}
