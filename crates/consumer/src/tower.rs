//! Services of the tower ecosystem are handlers, so that its layers limit rates and concurrency (feature `tower`).

use std::future::poll_fn;

use tower_service::Service;

use crate::handler::Handler;
use crate::outcome::{HandlerError, IntoOutcome, Outcome};
use crate::timeout::Timeout;

/// A [`Handler`] made of a service of [`Timeout`]s. Each timeout gets a clone of it, which is waited for until it is
/// ready; an error is a retry, as in a closure.
///
/// What waits for a permit of a layer holds its lease (it is renewed) and its place among those that run: a consumer
/// reads no more than its concurrency. A rate limit is shared through a buffer, for it can't be cloned:
///
/// ```ignore
/// let service = tower::ServiceBuilder::new()
///     .buffer(64)
///     .rate_limit(100, Duration::from_secs(1))
///     .concurrency_limit(8)
///     .service_fn(|t: Timeout<Raw>| async move { charge(t).await.map(|()| Done) });
/// consumer.serve(Tower::new(service), stop).await?;
/// ```
#[derive(Clone, Debug)]
pub struct Tower<S>(S);

impl<S> Tower<S> {
    /// A handler of this service.
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

impl<T, S> Handler<T> for Tower<S>
where
    T: Send + 'static,
    S: Service<Timeout<T>> + Clone + Send + Sync + 'static,
    S::Response: IntoOutcome,
    S::Error: Into<HandlerError>,
    S::Future: Send,
{
    async fn handle(&self, timeout: Timeout<T>) -> Outcome {
        let mut service = self.0.clone();
        let answered = async {
            poll_fn(|context| service.poll_ready(context)).await?;
            service.call(timeout).await
        };
        answered.await.map_err(Into::into).into_outcome()
    }
}
