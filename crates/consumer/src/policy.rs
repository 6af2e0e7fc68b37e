//! How long a retry waits.

use std::time::Duration;

use rand::RngExt;

/// How long to wait after an attempt failed, before the next.
///
/// Closures are policies: `|attempt| Duration::from_secs(attempt.into())`.
pub trait Policy: Send + Sync + 'static {
    /// The wait after `attempt` (1 = the first) failed.
    fn wait(&self, attempt: u32) -> Duration;
}

impl<F: Fn(u32) -> Duration + Send + Sync + 'static> Policy for F {
    fn wait(&self, attempt: u32) -> Duration {
        self(attempt)
    }
}

/// The default policy: `first` doubles with each attempt up to `most`, and half of it is left to chance, so that
/// what failed together does not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first attempt. Default 1 s.
    pub first: Duration,
    /// The longest wait. Default 1 h.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_secs(3600) }
    }
}

impl Backoff {
    /// The longest wait after `attempt`.
    fn full(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

impl Policy for Backoff {
    fn wait(&self, attempt: u32) -> Duration {
        self.full(attempt).mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_an_hour() {
        let seconds = |attempt| Backoff::default().full(attempt).as_secs();
        assert_eq!([1, 2, 3, 11, 12].map(seconds), [1, 2, 4, 1024, 2048]);
        assert_eq!([13, 14, 20, 32, 33, u32::MAX].map(seconds), [3600; 6]);
    }

    #[test]
    fn at_least_half_of_it_is_waited() {
        let policy = Backoff::default();
        let waits: Vec<_> = (0..1000).map(|_| policy.wait(3).as_secs_f64()).collect();
        assert!(waits.iter().all(|wait| (2.0..=4.0).contains(wait)));
        assert!(waits.iter().any(|&wait| wait < 2.5) && waits.iter().any(|&wait| wait > 3.5));
    }
}
