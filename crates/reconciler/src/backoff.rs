//! How long to wait after a failure: 50 ms, doubled up to 2 s, with jitter.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The waits of one loop. Reset by success.
pub(crate) struct Backoff {
    waits: Option<ExponentialBackoff>,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { waits: None }
    }

    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
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
    pub(crate) fn reset(&mut self) {
        self.waits = None;
    }
}
