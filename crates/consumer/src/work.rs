//! One run of the handler: a task of its own.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use overdue_protocol::Entry;
use overdue_protocol::entry::Source;
use tokio::task::AbortHandle;

use crate::handler::Handler;
use crate::outcome::Outcome;
use crate::payload::Payload;
use crate::station::Hand;
use crate::timeout::Timeout;

/// Starts handlers; hides what they are and what payloads they take.
pub(crate) trait Work: Send + Sync {
    /// Starts the handler for one entry.
    fn start(&self, hand: Hand, entry: Entry) -> AbortHandle;
}

pub(crate) struct Handling<T, H> {
    handler: Arc<H>,
    payload: PhantomData<fn() -> T>,
}

impl<T: Payload, H: Handler<T>> Handling<T, H> {
    pub(crate) fn new(handler: H) -> Self {
        Self { handler: Arc::new(handler), payload: PhantomData }
    }
}

impl<T: Payload, H: Handler<T>> Work for Handling<T, H> {
    fn start(&self, hand: Hand, entry: Entry) -> AbortHandle {
        tokio::spawn(handle(self.handler.clone(), hand, entry)).abort_handle()
    }
}

async fn handle<T: Payload, H: Handler<T>>(handler: Arc<H>, hand: Hand, entry: Entry) {
    let started = Instant::now();
    let crew = hand.station.crew.clone();
    if entry.attempt == 1
        && entry.source != Source::Replay
        && let Some(late) = crew.clock.lateness(entry.due_ms, started)
    {
        crew.counts.lateness.record(late);
    }
    let outcome = caught(async {
        // Inside: a decoder may panic too.
        let payload = match T::decode(&entry.payload, entry.encoding.as_deref()) {
            Ok(payload) => payload,
            Err(why) => return Outcome::Reject { reason: with_flaw(why, &entry) },
        };
        let timeout = Timeout::new(entry, hand.ticket, hand.station.clone(), payload);
        within(crew.options.limit, handler.handle(timeout)).await
    });
    let outcome = outcome.await.unwrap_or_else(|panic| Outcome::Retry { reason: panic });
    crew.counts.handler_seconds.record(started.elapsed().as_secs_f64());
    tracing::debug!(entry = %hand.ticket.entry, ?outcome, "handled");
    hand.say(outcome);
}

/// A payload may be unreadable because something was wrong when it fired.
fn with_flaw(why: String, entry: &Entry) -> String {
    match &entry.flaw {
        Some(flaw) => format!("{why} (the timeout has a flaw: {})", String::from_utf8_lossy(flaw)),
        None => why,
    }
}

async fn within(limit: Option<Duration>, handler: impl Future<Output = Outcome>) -> Outcome {
    let Some(limit) = limit else { return handler.await };
    match tokio::time::timeout(limit, handler).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::Retry { reason: format!("the handler took longer than its limit of {limit:?}") },
    }
}

/// Runs a future; a panic in it is an error.
async fn caught<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(text_of(&*panic))),
    })
    .await
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("it says nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_text() {
        async fn panics(word: &str) {
            tokio::task::yield_now().await;
            panic!("no {word}");
        }
        assert_eq!(caught(panics("seat")).await, Err("the handler panicked: no seat".to_owned()));
        assert_eq!(caught(async { 7 }).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_past_its_limit_is_a_retry() {
        let outcome = within(Some(Duration::from_secs(2)), std::future::pending()).await;
        assert_eq!(outcome, Outcome::retry("the handler took longer than its limit of 2s"));
        assert_eq!(within(None, async { Outcome::Done }).await, Outcome::Done);
    }
}
