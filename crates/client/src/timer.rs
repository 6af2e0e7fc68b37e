//! A timer to be armed.

use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::call::{Mode, ScheduleItem};
use overdue_protocol::record::pack_extras;
use overdue_protocol::{InvalidName, TimerId, TraceParent};

use crate::answer::Scheduled;
use crate::carrier::Wait;
use crate::error::{Error, ErrorKind, Result};
use crate::payload::{Encode, Raw};
use crate::queue::{Queue, answered};
use crate::when::When;

/// The longest trace context, in bytes.
const TRACE_BYTES: usize = 512;

/// A timer to be armed: `orders.timer("order-1001").at(when).payload(&hold).only_later().schedule()`.
#[must_use = "a timer is not armed until schedule() is awaited"]
pub struct Timer<'q, T> {
    queue: &'q Queue<T>,
    id: Result<TimerId, InvalidName>,
    when: Option<When>,
    payload: Option<Result<Raw, String>>,
    mode: Mode,
    keyed: bool,
    trace: Option<Result<Bytes, String>>,
    wait: Option<Wait>,
}

impl<'q, T: Encode> Timer<'q, T> {
    pub(crate) fn new(queue: &'q Queue<T>, id: Result<TimerId, InvalidName>) -> Self {
        Self {
            queue,
            id,
            when: None,
            payload: None,
            mode: Mode::Upsert,
            keyed: false,
            trace: None,
            wait: None,
        }
    }

    /// Its deadline: a [`Duration`] from the server's now, a [`std::time::SystemTime`], or [`When::UnixMs`].
    pub fn at(mut self, when: impl Into<When>) -> Self {
        self.when = Some(when.into());
        self
    }

    /// Its payload. Only [`Raw`] timers can do without: theirs is empty then.
    pub fn payload(mut self, payload: &T) -> Self {
        self.payload = Some(payload.encode());
        self
    }

    /// Arm it only if it is not armed. Of the four, the last one that is called counts; without any, an armed
    /// timer is replaced.
    pub fn if_absent(self) -> Self {
        self.mode(Mode::IfAbsent)
    }

    /// Re-arm it only if it is armed.
    pub fn if_present(self) -> Self {
        self.mode(Mode::IfPresent)
    }

    /// Re-arm it only to a later deadline; arm it if it is not armed.
    pub fn only_later(self) -> Self {
        self.mode(Mode::OnlyLater)
    }

    /// Re-arm it only to an earlier deadline; arm it if it is not armed.
    pub fn only_earlier(self) -> Self {
        self.mode(Mode::OnlyEarlier)
    }

    /// What to do when it is armed already, as a value.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// A plain key `overdue:{queue:partition}:key:<id>` ends at the deadline too, so that every client of Redis can
    /// GET (the generation) and PTTL it. What happens to that key changes nothing: the index decides.
    pub fn keyed(mut self) -> Self {
        self.keyed = true;
        self
    }

    /// The W3C trace context that its handler goes on with, as the header `traceparent` has it. It must be valid.
    pub fn traceparent(mut self, text: &str) -> Self {
        let parsed = TraceParent::parse(text).map(|parent| Bytes::from(parent.to_string()));
        self.trace = Some(parsed.map_err(|error| error.to_string()));
        self
    }

    /// A trace context in a form of your own, handed to the handler as it is. At most 512 bytes.
    pub fn trace(mut self, trace: impl Into<Bytes>) -> Self {
        self.trace = Some(Ok(trace.into()));
        self
    }

    /// Answer only when `replicas` have it, or fail after `deadline` (`NotReplicated`; it is armed all the same).
    /// Such calls wait for each other, and are not ordered with other calls for this id that are under way.
    pub fn wait_replicas(mut self, replicas: u32, deadline: Duration) -> Self {
        self.wait = Some(Wait { replicas, deadline });
        self
    }

    /// Arms it.
    ///
    /// # Errors
    /// - `Invalid`: a limit is broken (id 1 to 512 bytes, payload up to `max_payload`, deadline up to the year 2200),
    ///   or the trace context is none.
    /// - `Unavailable`, `Refused`, `OutOfMemory`, `PartitionsDisagree`, `NewerFormat`: it was not armed.
    /// - `OutcomeUnknown`: the answer was lost and Redis could not confirm it: it is armed once, or not at all.
    /// - `NotReplicated`: it is armed, but not where [`Timer::wait_replicas`] wants it.
    pub async fn schedule(self) -> Result<Scheduled> {
        let (queue, wait) = (self.queue, self.wait);
        let item = self.item()?;
        let outcome = match wait {
            None => queue.route.carry(std::slice::from_ref(&item)).await.pop(),
            Some(wait) => Some(queue.route.carry_alone(&item, wait).await),
        };
        answered(outcome, || queue.doing("arm", &item.id))
    }

    pub(crate) fn item_of_many(self) -> Result<ScheduleItem> {
        if self.wait.is_some() {
            let doing = self.doing();
            return Err(Error::new(
                ErrorKind::Invalid,
                doing,
                "wait_replicas() is for one timer: use schedule()",
            ));
        }
        self.item()
    }

    /// Checks everything, without sending.
    fn item(self) -> Result<ScheduleItem> {
        let doing = self.doing();
        let invalid = |why: String| Error::new(ErrorKind::Invalid, &doing, why);
        let id = self.id.map_err(|error| invalid(error.to_string()))?;
        let when = self.when.ok_or_else(|| invalid("it has no deadline; give one with at()".into()))?;
        let when = when.resolve().map_err(invalid)?;
        let payload = match self.payload {
            Some(payload) => payload.map_err(invalid)?,
            None if T::NEEDED => return Err(invalid("it has no payload; give one with payload()".into())),
            None => Raw::default(),
        };
        let (size, max) = (payload.bytes().len(), self.queue.limits.max_payload);
        if size > max {
            return Err(invalid(format!(
                "its payload has {size} bytes; at most {max} are sent (max_payload)"
            )));
        }
        let mut extras = vec![("enc", payload.encoding().as_str().as_bytes())];
        let trace = self.trace.transpose().map_err(invalid)?;
        if let Some(trace) = &trace {
            if trace.len() > TRACE_BYTES {
                return Err(invalid(format!(
                    "its trace context has {} bytes; at most {TRACE_BYTES}",
                    trace.len()
                )));
            }
            extras.push(("trace", trace));
        }
        let extras = pack_extras(&extras);
        let call = Bytes::copy_from_slice(&rand::random::<[u8; 8]>());
        Ok(ScheduleItem {
            id,
            when,
            mode: self.mode,
            payload: payload.into_bytes(),
            call,
            extras,
            keyed: self.keyed,
        })
    }

    fn doing(&self) -> String {
        match &self.id {
            Ok(id) => self.queue.doing("arm", id),
            Err(_) => format!("arm a timer in queue {}", self.queue.name()),
        }
    }
}
