//! What the endpoint's answer makes of the timeout.
//!
//! | answer | outcome |
//! |---|---|
//! | header `overdue-outcome: reject`, whatever the status | a dead letter at once |
//! | 2xx | done |
//! | 429, 503 with Retry-After | comes again then, with the same attempt; an hour at most |
//! | 502, 503, 504 | the endpoint is away: no attempt, see `Outcome::Unreachable` |
//! | 410 | nothing more is sent until a person has acted, see `Outcome::Halt` |
//! | all else, redirects too | a retry with the status and the beginning of the body as its reason |

use std::time::{Duration, SystemTime};

use hyper::header::{HeaderName, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};
use overdue_consumer::Outcome;

/// The most of a body that is kept, bytes.
pub(super) const BODY: usize = 1024;
/// The longest wait that an endpoint may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
const OUTCOME: HeaderName = HeaderName::from_static("overdue-outcome");

/// The outcome; `body` is the beginning of the body.
pub(super) fn outcome(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Outcome {
    let rejected = headers.get(OUTCOME).is_some_and(|word| word.as_bytes().eq_ignore_ascii_case(b"reject"));
    let reason = || reason(status, headers, body);
    if rejected {
        return Outcome::reject(reason());
    }
    match (status, retry_after(headers, now)) {
        (status, _) if status.is_success() => Outcome::Done,
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(wait)) => {
            Outcome::postpone(wait, reason())
        }
        (StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT, _) => {
            Outcome::unreachable(reason())
        }
        (StatusCode::GONE, _) => Outcome::halt(reason()),
        _ => Outcome::retry(reason()),
    }
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let wait = match text.parse().map(Duration::from_secs) {
        Ok(wait) => wait,
        // More seconds than a number holds.
        Err(_) if digits => LONGEST_WAIT,
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST_WAIT))
}

/// The status, where a redirect points to, and the beginning of the body.
fn reason(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    let mut reason = format!("the endpoint answered {status}");
    if status.is_redirection() {
        let target = headers.get(LOCATION).map(|target| String::from_utf8_lossy(target.as_bytes()));
        let target = target.map(|target| format!(" to {target}")).unwrap_or_default();
        reason += &format!(", a redirect{target}, which is not followed: correct the URL");
    }
    let body = String::from_utf8_lossy(&body[..body.len().min(BODY)]);
    let body = body.trim();
    if body.is_empty() { reason } else { reason + ": " + body }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn of(status: u16, header: Option<(&'static str, &str)>, body: &[u8]) -> Outcome {
        let header = header.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        outcome(StatusCode::from_u16(status).unwrap(), &header.into_iter().collect(), body, NOW)
    }

    #[test]
    fn each_status_does_what_the_table_says() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(of(status, None, b"x"), Outcome::Done);
        }
        let retry = |status| Outcome::retry(format!("the endpoint answered {status}: no seat"));
        assert_eq!(of(400, None, b" no seat\n"), retry("400 Bad Request"));
        assert_eq!(of(404, None, b"no seat"), retry("404 Not Found"));
        assert_eq!(of(429, None, b"no seat"), retry("429 Too Many Requests"));
        assert_eq!(of(500, Some(("retry-after", "5")), b"no seat"), retry("500 Internal Server Error"));
        assert_eq!(of(599, None, b"no seat"), retry("599 <unknown status code>"));
        for (status, name) in [(502, "Bad Gateway"), (503, "Service Unavailable"), (504, "Gateway Timeout")] {
            let away = Outcome::unreachable(format!("the endpoint answered {status} {name}"));
            assert_eq!(of(status, None, b""), away);
        }
        assert_eq!(of(410, None, b""), Outcome::halt("the endpoint answered 410 Gone"));
        for status in [200, 410, 503] {
            let rejected = of(status, Some(("overdue-outcome", "Reject")), b"no such order");
            assert!(matches!(rejected, Outcome::Reject { reason } if reason.ends_with(": no such order")));
        }
        assert_eq!(of(200, Some(("overdue-outcome", "rejected")), b""), Outcome::Done);
    }

    #[test]
    fn a_redirect_says_where_to_and_is_a_retry() {
        let away = of(301, Some(("location", "https://b.example/x")), b"");
        let reason = "the endpoint answered 301 Moved Permanently, a redirect to https://b.example/x, which is not \
                      followed: correct the URL";
        assert_eq!(away, Outcome::retry(reason));
    }

    #[test]
    fn who_says_when_is_heard_within_an_hour() {
        for (text, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("86400", Some(3600)),
            ("99999999999999999999999", Some(3600)),
            ("Thu, 01 Jan 1970 00:00:30 GMT", Some(30)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            for status in [429, 503] {
                let waits = match of(status, Some(("retry-after", text)), b"") {
                    Outcome::Postpone { wait, .. } => Some(wait.as_secs()),
                    _ => None,
                };
                assert_eq!(waits, seconds, "{status} {text:?}");
            }
        }
    }

    #[test]
    fn a_kib_of_the_body_is_kept() {
        let long = of(400, None, "ü".repeat(BODY).as_bytes());
        let Outcome::Retry { reason } = long else { panic!("{long:?}") };
        assert_eq!(reason.matches('ü').count(), BODY / 2);
    }
}
