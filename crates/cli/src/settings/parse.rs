//! How the text of a setting becomes a value. Errors say what to write, and never repeat the text: it may
//! be a secret, and whoever shows the error knows where the text stood.

use std::str::FromStr;
use std::time::Duration;

use overdue_protocol::call::From;
use overdue_protocol::{GroupName, QueueName};

use super::Listen;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Empty text means: not set.
pub(crate) fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A duration of any length. A bare number is refused: nobody should have to guess its unit.
pub(crate) fn any_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.parse::<f64>().is_ok_and(|n| n >= 0.0) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(format!("a number without a unit: write {text}s, {text}m or {text}h"));
    }
    if text.starts_with('-') {
        return Err("negative: write a duration from 0s up, such as 5m".to_owned());
    }
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => "too long: write a duration such as 15m or 7d".to_owned(),
        _ => "not a duration: write it like 500ms, 30s, 15m, 1h30m or 7d".to_owned(),
    })
}

/// A duration from `least` to `most`.
pub(crate) fn duration(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let given = any_duration(text)?;
    if given < least {
        return Err(format!("too short: at least {}", humantime::format_duration(least)));
    }
    if given > most {
        return Err(format!("too long: at most {}", humantime::format_duration(most)));
    }
    Ok(given)
}

/// A whole number from `least` to `most`.
pub(crate) fn number<N>(text: &str, least: N, most: N) -> Result<N, String>
where
    N: Copy + FromStr + PartialOrd + std::fmt::Display,
{
    let text = text.trim();
    let given: Option<N> = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    given
        .filter(|n| *n >= least && *n <= most)
        .ok_or_else(|| format!("not a whole number from {least} to {most}"))
}

/// A number of bytes, plain or in KiB or MiB, from `least` to `most` bytes.
pub(crate) fn size(text: &str, least: usize, most: usize) -> Result<usize, String> {
    let text = text.trim();
    let (digits, unit) = match (text.strip_suffix("KiB"), text.strip_suffix("MiB")) {
        (Some(digits), _) => (digits, 1024),
        (_, Some(digits)) => (digits, 1024 * 1024),
        _ => (text, 1),
    };
    let digits = digits.trim_end();
    let given: Option<usize> =
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    given
        .and_then(|n| n.checked_mul(unit))
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| format!("not a size from {least} to {most} bytes: write it like 65536, 64KiB or 1MiB"))
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("not one of {}", words.join(", "))
    })
}

/// Queue names between commas.
pub(crate) fn queues(text: &str) -> Result<Vec<QueueName>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(queue).collect()
}

/// A queue's name.
pub(crate) fn queue(text: &str) -> Result<QueueName, String> {
    QueueName::new(text).map_err(|error| error.to_string())
}

/// A group's name.
pub(crate) fn group(text: &str) -> Result<GroupName, String> {
    GroupName::new(text).map_err(|error| error.to_string())
}

/// Where a new group begins.
pub(crate) fn from(text: &str) -> Result<From, String> {
    choice(text, &[("oldest", From::Oldest), ("new", From::New)])
}

/// Checks the scheme; whoever sends requests there reads the rest.
pub(crate) fn web_url(text: &str) -> Result<String, String> {
    if ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme) && text.len() > scheme.len()) {
        return Ok(text.to_owned());
    }
    Err("not a web address: write it like https://example.com/timeouts".to_owned())
}

/// `address:port` or `off`.
pub(crate) fn listen(text: &str) -> Result<Listen, String> {
    if text == "off" {
        return Ok(Listen::Off);
    }
    text.parse().map(Listen::At).map_err(|_| {
        "not an address: write an IP address and a port such as 127.0.0.1:9633 or [::]:9633, or off"
            .to_owned()
    })
}

/// A level or pairs, as [`overdue_telemetry::logs::init`] takes them.
pub(crate) fn log_filter(text: &str) -> Result<Option<String>, String> {
    let Some(filter) = optional(text) else { return Ok(None) };
    overdue_telemetry::logs::check_filter(&filter).map_err(|error| error.to_string())?;
    Ok(Some(filter))
}

/// The schemes that the store can connect to.
const SCHEMES: [&str; 7] = [
    "redis://",
    "rediss://",
    "unix://",
    "redis-sentinel://",
    "rediss-sentinel://",
    "redis-cluster://",
    "rediss-cluster://",
];

/// Checks the scheme; the store reads the rest.
pub(crate) fn redis_url(text: &str) -> Result<String, String> {
    if SCHEMES.iter().any(|scheme| text.starts_with(scheme) && text.len() > scheme.len()) {
        return Ok(text.to_owned());
    }
    Err("not a Redis URL: write redis://host:6379/, rediss://host:6380/, unix:///path/to/socket, \
         redis-sentinel://... or redis-cluster://..."
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<T: std::fmt::Debug>(result: Result<T, String>) -> String {
        result.unwrap_err()
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(any_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(any_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(any_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(error(any_duration("15")), "a number without a unit: write 15s, 15m or 15h");
        assert_eq!(error(any_duration("0")), "a number without a unit: write 0s, 0m or 0h");
        assert_eq!(error(any_duration("1.5")), "a number without a unit: write 1.5s, 1.5m or 1.5h");
        assert_eq!(error(any_duration("-5m")), "negative: write a duration from 0s up, such as 5m");
        for nonsense in ["1e9d", "", "s", "5 parsecs", "nan", "inf", "five"] {
            let expected = "not a duration: write it like 500ms, 30s, 15m, 1h30m or 7d";
            assert_eq!(error(any_duration(nonsense)), expected, "{nonsense}");
        }
        let much = "99999999999999999999999d";
        assert_eq!(error(any_duration(much)), "too long: write a duration such as 15m or 7d");
    }

    #[test]
    fn durations_have_bounds() {
        assert_eq!(duration("1s", SECOND, HOUR), Ok(SECOND));
        assert_eq!(duration("1h", SECOND, HOUR), Ok(HOUR));
        assert_eq!(error(duration("999ms", SECOND, HOUR)), "too short: at least 1s");
        assert_eq!(error(duration("61m", SECOND, HOUR)), "too long: at most 1h");
    }

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(number("16", 1_u32, 100), Ok(16));
        for bad in ["0", "101", "-1", "+5", "1e2", "", "0x10", "99999999999999999999"] {
            assert_eq!(error(number(bad, 1_u32, 100)), "not a whole number from 1 to 100", "{bad}");
        }
    }

    #[test]
    fn sizes_are_bytes_kib_or_mib() {
        assert_eq!(size("1048576", 0, 1 << 20), Ok(1 << 20));
        assert_eq!(size("64KiB", 0, 1 << 20), Ok(65_536));
        assert_eq!(size("1 MiB", 0, 1 << 20), Ok(1 << 20));
        for bad in ["2MiB", "1MB", "-1", "", "1.5MiB", "99999999999999999MiB"] {
            let expected = "not a size from 0 to 1048576 bytes: write it like 65536, 64KiB or 1MiB";
            assert_eq!(error(size(bad, 0, 1 << 20)), expected, "{bad}");
        }
    }

    #[test]
    fn words_addresses_queues_and_urls() {
        assert_eq!(choice("b", &[("a", 1), ("b", 2)]), Ok(2));
        assert_eq!(error(choice("c", &[("a", 1), ("b", 2)])), "not one of a, b");
        assert_eq!(listen("off"), Ok(Listen::Off));
        assert_eq!(listen("127.0.0.1:0"), Ok(Listen::At(([127, 0, 0, 1], 0).into())));
        assert!(error(listen("9633")).starts_with("not an address: write an IP address and a port"));
        assert_eq!(queues("").unwrap(), vec![]);
        assert_eq!(queues("a, b").unwrap().len(), 2);
        assert!(error(queues("Orders")).contains("\"Orders\" is not valid"));
        assert!(redis_url("rediss://host/2").is_ok());
        for bad in ["", "redis:/x", "redis://", "http://x", "localhost:6379"] {
            assert!(error(redis_url(bad)).starts_with("not a Redis URL: write redis://host:6379/"), "{bad}");
        }
    }
}
