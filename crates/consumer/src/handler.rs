//! What handles a timeout.

use std::future::Future;

use crate::outcome::{IntoOutcome, Outcome};
use crate::terms::Terms;
use crate::timeout::Timeout;

/// Handles timeouts. Closures that take a [`Timeout`] and return a future of an [`IntoOutcome`] are handlers.
///
/// A handler may be called again for the same timeout, with the same [`Timeout::idempotency_key`]: after a retry, and when the
/// process or the lease was lost. When the lease is lost its future is dropped. A panic is a retry.
pub trait Handler<T>: Send + Sync + 'static {
    /// Handles one timeout.
    fn handle(&self, timeout: Timeout<T>) -> impl Future<Output = Outcome> + Send;

    /// What holds for this handler where it differs from its consumer; asked once, at the start. Default: nothing.
    fn terms(&self) -> Terms {
        Terms::new()
    }
}

impl<T, F, Fut> Handler<T> for F
where
    T: Send,
    F: Fn(Timeout<T>) -> Fut + Send + Sync + 'static,
    Fut: Future + Send,
    Fut::Output: IntoOutcome,
{
    async fn handle(&self, timeout: Timeout<T>) -> Outcome {
        self(timeout).await.into_outcome()
    }
}
