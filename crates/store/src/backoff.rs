//! How long a loop waits after a failure: 50 ms, doubled up to 2 s, with jitter. For every loop of Overdue.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The waits of one loop. Reset by success.
#[derive(Default)]
pub struct Backoff {
    waits: Option<ExponentialBackoff>,
}

impl Backoff {
    /// The next wait.
    #[must_use]
    pub fn next_wait(&mut self) -> Duration {
        let waits = self.waits.get_or_insert_with(|| {
            ExponentialBuilder::default()
                .with_min_delay(Duration::from_millis(50))
                .with_max_delay(Duration::from_secs(2))
                .without_max_times()
                .with_jitter()
                .build()
        });
        // With jitter the library adds up to one whole wait: the bound holds all the same.
        waits.next().unwrap_or(Duration::from_secs(2)).min(Duration::from_secs(2))
    }

    /// It works again.
    pub fn reset(&mut self) {
        self.waits = None;
    }
}
