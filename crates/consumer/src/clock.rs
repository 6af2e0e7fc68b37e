//! The server's clock, guessed from ours: for the metrics alone. Nothing is decided by it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use overdue_store::{Error, Store};

/// Not known yet.
const UNKNOWN: i64 = i64::MIN;

/// The difference between the server's clock and the time since this process met it.
pub(crate) struct Clock {
    start: Instant,
    /// Unix microseconds on the server's clock at `start`.
    at_start: AtomicI64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { start: Instant::now(), at_start: AtomicI64::new(UNKNOWN) }
    }
}

impl Clock {
    /// Asks the server three times and keeps the quickest answer.
    pub(crate) async fn set(&self, store: &Store) -> Result<(), Error> {
        let mut best = None;
        for _ in 0..3 {
            let asked = Instant::now();
            let server = store.time_ms().await?;
            let took = asked.elapsed();
            if best.is_none_or(|(shortest, _)| took < shortest) {
                // The answer is of the middle of the journey, and cut to whole milliseconds: half of one more.
                let local = micros(asked - self.start) + micros(took) / 2;
                let server = i64::try_from(server).unwrap_or(i64::MAX / 1000).saturating_mul(1000) + 500;
                best = Some((took, server - local));
            }
        }
        if let Some((_, at_start)) = best {
            self.at_start.store(at_start, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How late `now` is after `due_ms`, in seconds; `None` while the server's clock is not known.
    pub(crate) fn lateness(&self, due_ms: u64, now: Instant) -> Option<f64> {
        let at_start = self.at_start.load(Ordering::Relaxed);
        let due = i64::try_from(due_ms).ok()?.checked_mul(1000)?;
        let late = at_start.checked_add(micros(now - self.start))?.checked_sub(due)?;
        (at_start != UNKNOWN).then(|| late.max(0) as f64 / 1e6)
    }

    /// Unix milliseconds on the server's clock; 0 while it is not known.
    pub(crate) fn now_ms(&self) -> u64 {
        let at_start = self.at_start.load(Ordering::Relaxed);
        let now = at_start.saturating_add(micros(self.start.elapsed()));
        u64::try_from(now / 1000).unwrap_or(0)
    }
}

fn micros(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_unknown_clock_says_nothing() {
        let clock = Clock::default();
        assert_eq!((clock.lateness(1, Instant::now()), clock.now_ms()), (None, 0));
        clock.at_start.store(10_000_000, Ordering::Relaxed);
        assert_eq!(clock.lateness(9_000, clock.start), Some(1.0));
        assert_eq!(clock.lateness(10_500, clock.start + Duration::from_secs(1)), Some(0.5));
        assert_eq!(clock.lateness(11_000, clock.start), Some(0.0));
    }
}
