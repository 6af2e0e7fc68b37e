//! A fired timer, or a watched key that has ended, as a handler sees it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use overdue_protocol::entry::{EVICTED, Entry, Kind, Proof, Source, idempotency_key};
use overdue_protocol::{Generation, GroupName, QueueName, TimerId, TraceParent};
use tokio_util::sync::CancellationToken;

use crate::duty::Duty;
use crate::hand::Ticket;
use crate::station::Station;

/// One fired timer, or one watched key that has ended, in the hands of a handler.
pub struct Timeout<T> {
    entry: Box<Entry>,
    run: Run,
    payload: T,
}

/// One run of a handler.
pub(crate) struct Run {
    pub(crate) ticket: Ticket,
    pub(crate) station: Arc<Station>,
    pub(crate) duty: Arc<Duty>,
    /// It tries what others wait for.
    pub(crate) probes: bool,
    /// The trace context to hand on.
    pub(crate) trace: Option<TraceParent>,
}

impl<T> Timeout<T> {
    pub(crate) fn new(entry: Box<Entry>, run: Run, payload: T) -> Self {
        Self { entry, run, payload }
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        self.run.station.standing.partition.queue()
    }

    /// The group that handles it here.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        &self.run.station.standing.group
    }

    /// The partition of the queue that it came from.
    #[must_use]
    pub fn partition(&self) -> u32 {
        self.run.station.standing.partition.number()
    }

    /// The id of the timer; for a watched key its name, which may be longer than an id.
    #[must_use]
    pub fn id(&self) -> &TimerId {
        &self.entry.id
    }

    /// The generation: given when the timer was armed, or to the expiry of a watched key; never used twice for an id, the
    /// same at every attempt.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.entry.generation
    }

    /// The idempotency key, `queue/id/generation`: what an outside effect should be recorded under.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        idempotency_key(self.queue(), &self.entry.id, self.entry.generation)
    }

    /// A key of your own beside this timeout's partition, `{orders:3}seats`: one that its [`crate::Effects`] may write.
    /// Each partition has its own; a sum over all of them is read from all.
    #[must_use]
    pub fn key(&self, name: impl AsRef<[u8]>) -> Bytes {
        self.run.station.standing.partition.neighbour(name.as_ref())
    }

    /// The deadline of the timer, on the server's clock.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.entry.due_ms)
    }

    /// The deadline of the timer, unix milliseconds on the server's clock; the same at every attempt.
    #[must_use]
    pub fn due_ms(&self) -> u64 {
        self.entry.due_ms
    }

    /// When this attempt entered the stream, unix milliseconds on the server's clock.
    #[must_use]
    pub fn fired_ms(&self) -> u64 {
        self.entry.fired_ms
    }

    /// Which attempt this is; 1 is the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.entry.attempt
    }

    /// What has ended: a timer, or a watched key.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.entry.kind
    }

    /// The name of the watched key that has ended; `None` for a timer.
    #[must_use]
    pub fn key_name(&self) -> Option<&Bytes> {
        (self.entry.kind == Kind::Key).then(|| self.entry.id.as_bytes())
    }

    /// The name of the watch rule that the key matched; `None` for a timer.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.entry.rule.as_deref().and_then(|rule| std::str::from_utf8(rule).ok())
    }

    /// The database of the watched key; `None` for a timer.
    #[must_use]
    pub fn db(&self) -> Option<u8> {
        self.entry.db
    }

    /// What says that the watched key has expired. [`Proof::Unproven`]: it was gone when it was due, and may have been
    /// deleted; a rule with `on_unproven = "drop"` lets none of those through. `None` for a timer.
    #[must_use]
    pub fn proof(&self) -> Option<Proof> {
        self.entry.proof
    }

    /// When the payload was read from the watched key, unix milliseconds on the server's clock: what was written to it
    /// later is not in it.
    #[must_use]
    pub fn captured_ms(&self) -> Option<u64> {
        self.entry.captured_ms
    }

    /// When the payload was read from the watched key, on the server's clock.
    #[must_use]
    pub fn captured(&self) -> Option<SystemTime> {
        self.entry.captured_ms.map(|ms| UNIX_EPOCH + Duration::from_millis(ms))
    }

    /// Why the watched key ended, when it did not expire.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.entry.cause.as_deref().and_then(|cause| std::str::from_utf8(cause).ok())
    }

    /// Whether Redis evicted the watched key for want of memory, before its time.
    #[must_use]
    pub fn evicted(&self) -> bool {
        self.cause() == Some(EVICTED)
    }

    /// What fired it.
    #[must_use]
    pub fn source(&self) -> Source {
        self.entry.source
    }

    /// What was wrong when it fired. Timers: `no record`, `bad record`. Watched keys whose rule asks for a value:
    /// `no_value`, `value_too_large`, `value_type`; the payload is empty then.
    #[must_use]
    pub fn flaw(&self) -> Option<&str> {
        self.entry.flaw.as_deref().and_then(|flaw| std::str::from_utf8(flaw).ok())
    }

    /// The trace context of whoever armed it, as it was given.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        self.entry.trace.as_deref().and_then(|trace| std::str::from_utf8(trace).ok())
    }

    /// The `traceparent` to hand on (W3C Trace Context): the trace of whoever armed it, and as its parent the span in
    /// which this attempt is handled. `None` when no valid one was given.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.run.trace.as_ref().map(TraceParent::as_str)
    }

    /// Whether what this handler works with may be reached, as far as the consumer knows. A handler that had to wait
    /// (for a connection, for its turn) asks once more before it begins, and answers [`crate::Outcome::Unreachable`] if
    /// another has met an outage meanwhile.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.run.probes || self.run.duty.reach.is_up()
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &T {
        &self.payload
    }

    /// The payload, by value.
    #[must_use]
    pub fn into_payload(self) -> T {
        self.payload
    }

    /// The payload as bytes, undecoded.
    #[must_use]
    pub fn raw_payload(&self) -> &Bytes {
        &self.entry.payload
    }

    /// How the payload is written, when known: raw, text, json, msgpack.
    #[must_use]
    pub fn encoding(&self) -> Option<&str> {
        self.entry.encoding.as_deref().and_then(|name| std::str::from_utf8(name).ok())
    }

    /// Cancelled when this timeout is not ours any more: its lease was lost, or the consumer ends and hands it back.
    ///
    /// The handler's own future is dropped at the same moment; this is for what runs beside it, such as a task that
    /// it spawned or a process.
    #[must_use]
    pub fn lost(&self) -> CancellationToken {
        self.run.station.hands.lost(self.run.ticket)
    }
}

impl<T> std::fmt::Debug for Timeout<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Timeout");
        out.field("key", &self.idempotency_key()).field("attempt", &self.attempt());
        if self.kind() == Kind::Key {
            out.field("rule", &self.rule()).field("db", &self.db()).field("proof", &self.proof());
        }
        for (name, value) in [("cause", self.cause()), ("flaw", self.flaw())] {
            if let Some(value) = value {
                out.field(name, &value);
            }
        }
        out.finish_non_exhaustive()
    }
}
