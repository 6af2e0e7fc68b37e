//! Pauses of loops that work.

use std::time::Duration;

use rand::RngExt;

/// Somewhere between three quarters and all of it, so that processes that started together drift apart.
pub(crate) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(0.75..=1.0))
}
