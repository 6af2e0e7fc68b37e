//! One run of the handler: a task of its own.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use overdue_protocol::entry::Source;
use overdue_protocol::{Entry, QueueName, TraceParent};
use tokio::task::AbortHandle;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::duty::Duty;
use crate::handler::Handler;
use crate::outcome::Outcome;
use crate::payload::Payload;
use crate::reach::Begin;
use crate::station::{Hand, Start};
use crate::timeout::{Run, Timeout};

/// Starts handlers; hides what they are and what payloads they take.
pub(crate) trait Work: Send + Sync {
    /// Starts the handler for one entry.
    fn start(&self, start: Start, entry: Box<Entry>) -> AbortHandle;
}

pub(crate) struct Handling<T, H> {
    handler: Arc<H>,
    duty: Arc<Duty>,
    payload: PhantomData<fn() -> T>,
}

impl<T: Payload, H: Handler<T>> Handling<T, H> {
    pub(crate) fn new(handler: H, duty: Arc<Duty>) -> Self {
        Self { handler: Arc::new(handler), duty, payload: PhantomData }
    }
}

impl<T: Payload, H: Handler<T>> Work for Handling<T, H> {
    fn start(&self, start: Start, entry: Box<Entry>) -> AbortHandle {
        let hand = Hand::new(start, self.duty.clone(), &entry);
        // Boxed: the runtime moves a task some eight times until it ends.
        tokio::spawn(Box::pin(handle(self.handler.clone(), hand, entry))).abort_handle()
    }
}

async fn handle<T: Payload, H: Handler<T>>(handler: Arc<H>, hand: Hand, entry: Box<Entry>) {
    let probe = match hand.duty.reach.begin() {
        Begin::Run(probe) => probe,
        Begin::Wait(wait) => return hand.give_back(wait),
    };
    let started = Instant::now();
    let crew = &hand.station.crew;
    if entry.attempt == 1
        && entry.source != Source::Replay
        && let Some(late) = crew.clock.lateness(entry.due_ms, started)
    {
        crew.counts.lateness.record(late);
    }
    let (trace, span) = context(&crew.queue, &entry);
    let outcome = caught(
        async {
            // Inside: a decoder may panic too.
            let payload = match T::decode(&entry.payload, entry.encoding.as_deref()) {
                Ok(payload) => payload,
                Err(why) => return Outcome::Reject { reason: with_flaw(why, &entry) },
            };
            let (station, duty) = (hand.station.clone(), hand.duty.clone());
            let run = Run { ticket: hand.ticket, station, duty, probes: probe.is_some(), trace };
            let handling = handler.handle(Timeout::new(entry, run, payload));
            let outcome = within(hand.duty.terms.limit, handling).await;
            tracing::debug!(entry = %hand.ticket.entry, ?outcome, "handled");
            outcome
        }
        .instrument(span),
    );
    let outcome = outcome.await.unwrap_or_else(|panic| Outcome::Retry { reason: panic });
    crew.counts.handler_seconds.record(started.elapsed().as_secs_f64());
    let reach = &hand.duty.reach;
    match outcome {
        Outcome::Unreachable { reason } => {
            let wait = reach.failed(&reason, probe);
            hand.give_back(wait);
        }
        Outcome::Halt { reason } => {
            let wait = reach.halt(&reason, probe);
            hand.give_back(wait);
        }
        // It says nothing of what the handler works with.
        Outcome::Release => hand.say(Outcome::Release),
        outcome => {
            reach.reached(probe);
            hand.say(outcome);
        }
    }
}

/// The span in which a handler runs, and what it hands on of the trace of whoever armed the timer.
fn context(queue: &QueueName, entry: &Entry) -> (Option<TraceParent>, Span) {
    let parent =
        entry.trace.as_deref().and_then(|trace| TraceParent::parse(std::str::from_utf8(trace).ok()?).ok());
    let trace = parent.as_ref().map(|parent| parent.child(rand::random()));
    let span = tracing::info_span!(
        "timeout", %queue, id = %entry.id, attempt = entry.attempt, trace_id = Empty, parent_id = Empty, span_id = Empty
    );
    if let (Some(parent), Some(own)) = (&parent, &trace) {
        span.record("trace_id", parent.trace_id());
        span.record("parent_id", parent.parent_id());
        span.record("span_id", own.parent_id());
    }
    (trace, span)
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

    /// Notes the fields of spans, as a subscriber sees them.
    #[derive(Clone, Default)]
    struct Notes(Arc<std::sync::Mutex<Vec<String>>>);

    impl tracing::field::Visit for Notes {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            self.0.lock().expect("nobody panics").push(format!("{field}={value:?}"));
        }
    }

    impl tracing::Subscriber for Notes {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            span.record(&mut self.clone());
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
            values.record(&mut self.clone());
        }
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {}
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn the_span_says_which_timeout_it_is_and_continues_its_trace() {
        let fields = [
            ("id", "order-1"),
            ("gen", "7"),
            ("due", "1"),
            ("fired", "1"),
            ("src", "index"),
            ("payload", ""),
        ];
        let trace = ("trace", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let fields =
            fields.into_iter().chain([trace]).map(|(name, value)| (name.into(), value.into())).collect();
        let raw = overdue_protocol::RawEntry { id: overdue_protocol::entry::EntryId::ZERO, fields };
        let (entry, queue) =
            (Entry::decode(&raw).expect("an entry"), QueueName::new("orders").expect("a name"));
        let notes = Notes::default();
        let (trace, _) = tracing::subscriber::with_default(notes.clone(), || context(&queue, &entry));
        let own = trace.expect("it has one").parent_id().to_owned();
        let want = [
            "queue=orders".to_owned(),
            "id=order-1".to_owned(),
            "attempt=1".to_owned(),
            "trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"".to_owned(),
            "parent_id=\"00f067aa0ba902b7\"".to_owned(),
            format!("span_id={own:?}"),
        ];
        assert_eq!(*notes.0.lock().expect("nobody panics"), want);
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_past_its_limit_is_a_retry() {
        let outcome = within(Some(Duration::from_secs(2)), std::future::pending()).await;
        assert_eq!(outcome, Outcome::retry("the handler took longer than its limit of 2s"));
        assert_eq!(within(None, async { Outcome::Done }).await, Outcome::Done);
    }
}
