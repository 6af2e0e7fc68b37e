//! Deadlines (PROTOCOL.md section 3, rule 4).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A deadline: unix milliseconds on the server's clock, 1 to [`Due::MAX_MS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Due(u64);

/// A deadline outside the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueOutOfRange {
    /// What was asked for, in milliseconds since 1970; saturated.
    pub given_ms: i128,
}

impl std::fmt::Display for DueOutOfRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "due {} ms is out of range: a deadline lies between 1970-01-01T00:00:00.001Z and 2200-01-01T00:00:00Z",
            self.given_ms
        )
    }
}

impl std::error::Error for DueOutOfRange {}

impl Due {
    /// The latest deadline: 2200-01-01, in unix milliseconds.
    pub const MAX_MS: u64 = 7_258_118_400_000;

    /// A deadline at `ms` unix milliseconds.
    ///
    /// # Errors
    /// 0, or later than [`Due::MAX_MS`].
    pub fn from_unix_ms(ms: u64) -> Result<Self, DueOutOfRange> {
        if (1..=Self::MAX_MS).contains(&ms) {
            Ok(Self(ms))
        } else {
            Err(DueOutOfRange { given_ms: ms.into() })
        }
    }

    /// The deadline as unix milliseconds.
    #[must_use]
    pub fn unix_ms(self) -> u64 {
        self.0
    }
}

impl TryFrom<SystemTime> for Due {
    type Error = DueOutOfRange;

    /// Rounds up to the next millisecond: a deadline is never early.
    fn try_from(at: SystemTime) -> Result<Self, DueOutOfRange> {
        let ms = match at.duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_nanos().div_ceil(1_000_000) as i128,
            Err(before) => -((before.duration().as_nanos() / 1_000_000) as i128),
        };
        u64::try_from(ms)
            .ok()
            .and_then(|ms| Self::from_unix_ms(ms).ok())
            .ok_or(DueOutOfRange { given_ms: ms })
    }
}

impl From<Due> for SystemTime {
    fn from(due: Due) -> Self {
        UNIX_EPOCH + Duration::from_millis(due.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_the_rest_is_refused() {
        assert!(Due::from_unix_ms(0).is_err());
        assert_eq!(Due::from_unix_ms(1).unwrap().unix_ms(), 1);
        assert!(Due::from_unix_ms(Due::MAX_MS).is_ok());
        assert!(Due::from_unix_ms(Due::MAX_MS + 1).is_err());
        assert!(Due::try_from(UNIX_EPOCH - Duration::from_secs(1)).is_err());
        assert_eq!(Due::try_from(UNIX_EPOCH + Duration::from_nanos(1)).unwrap().unix_ms(), 1);
    }
}
