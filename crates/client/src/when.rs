//! Deadlines, as a producer gives them.

use std::time::{Duration, SystemTime};

use overdue_protocol::{Due, call};

/// When a timer is due.
///
/// A [`Duration`] counts from the *server's* now, so the caller's clock plays no part; a [`SystemTime`] is
/// compared with the server's clock. Both are rounded up to the next millisecond: never early. A deadline in the
/// past is armed like any other and fires at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So long after the server's now.
    After(Duration),
    /// At this time.
    At(SystemTime),
    /// At this time, milliseconds since 1970; 1 to 7258118400000 (the year 2200).
    UnixMs(u64),
}

impl From<Duration> for When {
    fn from(after: Duration) -> Self {
        When::After(after)
    }
}

impl From<SystemTime> for When {
    fn from(at: SystemTime) -> Self {
        When::At(at)
    }
}

impl When {
    /// As scripts take it, or why it is out of range.
    pub(crate) fn resolve(self) -> Result<call::When, String> {
        let due = match self {
            When::After(wait) => return milliseconds(wait).map(call::When::In),
            When::At(at) => Due::try_from(at),
            When::UnixMs(ms) => Due::from_unix_ms(ms),
        };
        due.map(call::When::At).map_err(|error| error.to_string())
    }
}

fn milliseconds(wait: Duration) -> Result<u64, String> {
    let ms = wait.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).ok().filter(|ms| *ms <= Due::MAX_MS).ok_or_else(|| too_far(ms))
}

fn too_far(ms: u128) -> String {
    format!("a wait of {ms} ms is out of range: the deadline would lie after 2200-01-01T00:00:00Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_deadline_is_never_early() {
        let resolve = |when: When| when.resolve().unwrap();
        assert_eq!(resolve(Duration::from_micros(1).into()), call::When::In(1));
        assert_eq!(resolve(Duration::ZERO.into()), call::When::In(0));
        let at = UNIX_EPOCH + Duration::from_micros(1_001);
        assert_eq!(resolve(at.into()), call::When::At(Due::from_unix_ms(2).unwrap()));
    }

    #[test]
    fn what_is_out_of_range_says_so() {
        let text = |when: When| when.resolve().unwrap_err();
        let bounds = "a deadline lies between 1970-01-01T00:00:00.001Z and 2200-01-01T00:00:00Z";
        assert_eq!(text(When::UnixMs(0)), format!("due 0 ms is out of range: {bounds}"));
        assert_eq!(text(When::UnixMs(1 << 53)), format!("due 9007199254740992 ms is out of range: {bounds}"));
        assert_eq!(
            text((UNIX_EPOCH - Duration::from_secs(1)).into()),
            format!("due -1000 ms is out of range: {bounds}")
        );
        assert_eq!(
            text(Duration::MAX.into()),
            "a wait of 18446744073709551616000 ms is out of range: the deadline would lie after 2200-01-01T00:00:00Z"
        );
    }
}
