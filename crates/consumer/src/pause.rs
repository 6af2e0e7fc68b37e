//! The pauses of a loop that fails: 50 ms to 2 s, with jitter, back to the start at the first success.

use std::time::Duration;

use rand::RngExt;

const FIRST: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(2);

/// The next pause of one loop.
#[derive(Debug)]
pub(crate) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pause {
    /// How long to wait now; the next time it is twice as long.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = jittered(self.0);
        self.0 = (self.0 * 2).min(MOST);
        wait
    }

    /// It works again.
    pub(crate) fn reset(&mut self) {
        self.0 = FIRST;
    }
}

/// Somewhere between three quarters and all of it, so that processes that started together drift apart.
pub(crate) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(0.75..=1.0))
}
