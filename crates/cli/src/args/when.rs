//! How times are read: `--in` and `--at`, and moments in the past.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use overdue_protocol::Due;

use crate::settings::parse::any_duration;

/// Bare numbers below this are seconds that somebody took for milliseconds: as milliseconds it is 1973.
const LOOKS_LIKE_SECONDS: u64 = 100_000_000_000;
const TOO_FAR: &str = "too far away: the latest due time is 2200-01-01T00:00:00Z";
const NOT_A_TIME: &str =
    "not a time: write it like 2026-01-01T09:30:00Z, 2026-01-01T10:30:00+01:00 or unix milliseconds";
const NO_ZONE: &str = "a time without a zone: write Z or an offset such as +01:00 behind it";
const NEGATIVE: &str =
    "negative: a due time is unix milliseconds after 1970 or a time such as 2026-01-01T09:30:00Z";
const NOT_A_MOMENT: &str =
    "not a time: write it like 2026-01-01T09:30:00Z, unix milliseconds or, for so long ago, 2h";
const NEGATIVE_MOMENT: &str = "negative: for two hours ago write 2h";

/// Reads `--in`: a duration that ends before the latest due time. The server's clock decides in the end.
pub(crate) fn parse_in(text: &str) -> Result<Duration, String> {
    in_from(text, SystemTime::now())
}

fn in_from(text: &str, now: SystemTime) -> Result<Duration, String> {
    let within = any_duration(text)
        .map_err(|problem| if problem.starts_with("too long") { TOO_FAR.to_owned() } else { problem })?;
    let due = now.checked_add(within).ok_or(TOO_FAR)?;
    Due::try_from(due).map(|_| within).map_err(|_| TOO_FAR.to_owned())
}

/// Reads `--at`: RFC 3339 with a zone, or unix milliseconds. The past is allowed.
pub(crate) fn parse_at(text: &str) -> Result<Due, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return parse_unix_ms(text);
    }
    if text.strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok() || any_duration(rest).is_ok()) {
        return Err(NEGATIVE.to_owned());
    }
    let ms = parse_rfc3339(text)?;
    u64::try_from(ms)
        .ok()
        .filter(|ms| *ms > 0)
        .ok_or("before 1970: a due time lies after it")
        .map_err(str::to_owned)
        .and_then(|ms| Due::from_unix_ms(ms).map_err(|_| TOO_FAR.to_owned()))
}

/// A moment by the server's clock: a time, or how long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Unix milliseconds.
    At(u64),
    /// So long before now.
    Ago(Duration),
}

impl Moment {
    /// Unix milliseconds, when the server's clock stands at `now_ms`.
    pub(crate) fn unix_ms(self, now_ms: u64) -> u64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(ago) => now_ms.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// Reads a moment: a time as `--at` has it, or a duration, which means so long ago.
pub(crate) fn parse_moment(text: &str) -> Result<Moment, String> {
    if let Ok(ago) = any_duration(text) {
        return Ok(Moment::Ago(ago));
    }
    parse_at(text).map(|due| Moment::At(due.unix_ms())).map_err(|problem| match problem.as_str() {
        NOT_A_TIME => NOT_A_MOMENT.to_owned(),
        NEGATIVE => NEGATIVE_MOMENT.to_owned(),
        _ => problem,
    })
}

fn parse_unix_ms(digits: &str) -> Result<Due, String> {
    let ms: u64 = digits.parse().map_err(|_| TOO_FAR)?;
    if ms < LOOKS_LIKE_SECONDS {
        let meant = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(ms));
        return Err(format!("looks like seconds: write unix milliseconds ({}) or {meant}", ms * 1000));
    }
    Due::from_unix_ms(ms).map_err(|_| TOO_FAR.to_owned())
}

/// Unix milliseconds. humantime reads only times that end in Z, so an offset is taken off first.
fn parse_rfc3339(text: &str) -> Result<i64, String> {
    let (local, offset_s) = split_zone(text)?;
    let utc = humantime::parse_rfc3339(&format!("{local}Z")).map_err(|_| NOT_A_TIME)?;
    let since = utc.duration_since(UNIX_EPOCH).map_err(|_| NOT_A_TIME)?;
    let ms = i64::try_from(since.as_nanos().div_ceil(1_000_000)).map_err(|_| TOO_FAR)?;
    Ok(ms - offset_s * 1000)
}

/// The time without its zone, and the offset of that zone from UTC in seconds.
fn split_zone(text: &str) -> Result<(&str, i64), String> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Ok((local, 0));
    }
    // 2026-01-01T09:30:00 has 19 characters; an offset has 6 more, with two more dashes looking like one.
    let cut = text.len().checked_sub(6).filter(|cut| *cut >= 19 && text.is_char_boundary(*cut));
    let Some((local, zone)) = cut.map(|cut| text.split_at(cut)) else {
        let with_zone = format!("{text}Z");
        return Err(
            if humantime::parse_rfc3339(&with_zone).is_ok() { NO_ZONE } else { NOT_A_TIME }.to_owned()
        );
    };
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ if humantime::parse_rfc3339(&format!("{text}Z")).is_ok() => return Err(NO_ZONE.to_owned()),
        _ => return Err(NOT_A_TIME.to_owned()),
    };
    let (hours, minutes) = zone[1..].split_once(':').ok_or(NOT_A_TIME)?;
    Ok((local, sign * (two_digits(hours, 23)? * 3600 + two_digits(minutes, 59)? * 60)))
}

fn two_digits(text: &str, most: i64) -> Result<i64, &'static str> {
    let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= most).ok_or(NOT_A_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_time_is_rfc_3339_or_unix_milliseconds() {
        for (text, ms) in [
            ("1767225600000", 1_767_225_600_000),
            ("100000000000", 100_000_000_000),
            ("2026-01-01T00:00:00Z", 1_767_225_600_000),
            ("2026-01-01T00:00:00.123Z", 1_767_225_600_123),
            ("2026-01-01T00:00:00.123456Z", 1_767_225_600_124),
            ("2026-01-01T01:30:00+01:30", 1_767_225_600_000),
            ("2025-12-31T19:00:00-05:00", 1_767_225_600_000),
            ("2026-01-01T01:00:00.500+01:00", 1_767_225_600_500),
            ("1970-01-01T00:00:01Z", 1_000),
            ("2200-01-01T00:00:00Z", Due::MAX_MS),
            ("7258118400000", Due::MAX_MS),
        ] {
            assert_eq!(parse_at(text).map(Due::unix_ms), Ok(ms), "{text}");
        }
    }

    #[test]
    fn seconds_are_refused() {
        assert_eq!(
            parse_at("1767225600").unwrap_err(),
            "looks like seconds: write unix milliseconds (1767225600000) or 2026-01-01T00:00:00Z"
        );
        assert!(parse_at("99999999999").unwrap_err().starts_with("looks like seconds"));
        assert!(parse_at("0").unwrap_err().starts_with("looks like seconds"));
    }

    #[test]
    fn what_is_no_time_says_what_to_write() {
        for nonsense in [
            "",
            "tomorrow",
            "2026-01-01",
            "09:30",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00+25:00",
            "1.5e12",
            "0x19b77b1d000",
            "nan",
            "éééééééééééééééééééééééé",
        ] {
            assert_eq!(parse_at(nonsense).unwrap_err(), NOT_A_TIME, "{nonsense}");
        }
        assert_eq!(parse_at("2026-01-01T09:30:00").unwrap_err(), NO_ZONE);
        assert_eq!(parse_at("2026-01-01T09:30:00.123456").unwrap_err(), NO_ZONE);
        assert_eq!(parse_at("-5").unwrap_err(), NEGATIVE);
    }

    #[test]
    fn the_far_future_and_the_time_before_1970_are_refused() {
        for far in
            ["9007199254740992", "7258118400001", "2200-01-01T00:00:00.001Z", "99999999999999999999999"]
        {
            assert_eq!(parse_at(far).unwrap_err(), TOO_FAR, "{far}");
        }
        assert_eq!(
            parse_at("1970-01-01T00:30:00+01:00").unwrap_err(),
            "before 1970: a due time lies after it"
        );
    }

    #[test]
    fn a_moment_is_a_time_or_how_long_ago() {
        let now = 1_767_225_600_000;
        for (text, ms) in [
            ("2026-01-01T00:00:00Z", now),
            ("1767225600001", now + 1),
            ("2h", now - 7_200_000),
            ("1day 1s", now - 86_401_000),
            ("0s", now),
            ("1000y", 0),
        ] {
            assert_eq!(parse_moment(text).map(|moment| moment.unix_ms(now)), Ok(ms), "{text}");
        }
        assert_eq!(parse_moment("yesterday").unwrap_err(), NOT_A_MOMENT);
        assert_eq!(parse_moment("-2h").unwrap_err(), NEGATIVE_MOMENT);
        assert!(parse_moment("15").unwrap_err().starts_with("looks like seconds"));
    }

    #[test]
    fn a_wait_ends_before_2200() {
        let now = UNIX_EPOCH + Duration::from_millis(1_767_225_600_000);
        assert_eq!(in_from("15m", now), Ok(Duration::from_secs(900)));
        assert_eq!(in_from("0s", now), Ok(Duration::ZERO));
        for far in ["200y", "99999999999999999999999d", "500000000000y"] {
            assert_eq!(in_from(far, now).unwrap_err(), TOO_FAR, "{far}");
        }
        assert_eq!(in_from("15", now).unwrap_err(), "a number without a unit: write 15s, 15m or 15h");
    }
}
