//! Looking through a queue by deadline.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use overdue_protocol::TimerId;
use overdue_protocol::call;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::page::repeated;
use crate::queue::{Queue, error};
use crate::when::When;

/// The most timers of a page.
const MOST: usize = 1_000;

/// An armed timer in a list. [`Queue::get`] tells more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its deadline, unix milliseconds on the server's clock.
    pub due_ms: u64,
    /// Its id.
    pub id: TimerId,
}

impl Listed {
    /// Its deadline, on the server's clock.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.due_ms)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Timers in the order of deadline, then id bytes.
    pub timers: Vec<Listed>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<Listed>,
}

/// A list to be read: `orders.list().due_before(t).limit(100).page()`.
///
/// Timers that are armed, fired or cancelled meanwhile may or may not be met; no other is left out or met twice.
#[must_use = "nothing is read until page() is awaited"]
pub struct List<'q, T> {
    queue: &'q Queue<T>,
    before: Option<When>,
    after: Option<Listed>,
    limit: usize,
}

impl<'q, T> List<'q, T> {
    pub(crate) fn new(queue: &'q Queue<T>) -> Self {
        Self { queue, before: None, after: None, limit: 100 }
    }

    /// Only timers that are due before then. `Duration::ZERO`: those that are due and not fired yet.
    pub fn due_before(mut self, when: impl Into<When>) -> Self {
        self.before = Some(when.into());
        self
    }

    /// How many timers a page holds: 1 to 1,000. Default 100.
    pub fn limit(mut self, timers: usize) -> Self {
        self.limit = timers.clamp(1, MOST);
        self
    }

    /// Go on where a page ended: [`Page::next`].
    pub fn after(mut self, next: Listed) -> Self {
        self.after = Some(next);
        self
    }

    /// Reads a page.
    ///
    /// # Errors
    /// `Invalid` for a time out of range; what Redis says.
    pub async fn page(self) -> Result<Page> {
        let doing = format!("list the timers of queue {}", self.queue.name());
        let until = Instant::now() + self.queue.limits.deadline;
        let before = self.before(&doing, until).await?;
        let lanes = self.queue.route.lanes().map_err(|failure| error(failure, &doing))?;
        let mut reads = JoinSet::new();
        for partition in lanes.all() {
            let (store, limit) = (self.queue.route.store.clone(), self.limit);
            let after = self.after.clone().map(|last| (last.due_ms, last.id));
            reads.spawn(async move {
                repeated(until, || store.index_page(&partition, after.clone(), before, limit)).await
            });
        }
        let mut timers = Vec::new();
        while let Some(read) = reads.join_next().await {
            let read = read.map_err(|_| Error::new(ErrorKind::Closed, &doing, "the runtime is shut down"))?;
            let read = read.map_err(|error| Error::of_look(&error, &doing))?;
            timers.extend(read.into_iter().map(|(id, due_ms)| Listed { due_ms, id }));
        }
        timers.sort_unstable();
        let more = timers.len() >= self.limit;
        timers.truncate(self.limit);
        let next = timers.last().filter(|_| more).cloned();
        Ok(Page { timers, next })
    }

    async fn before(&self, doing: &str, until: Instant) -> Result<Option<u64>> {
        let Some(when) = self.before else { return Ok(None) };
        let when = when.resolve().map_err(|why| Error::new(ErrorKind::Invalid, doing, why))?;
        let wait = match when {
            call::When::At(due) => return Ok(Some(due.unix_ms())),
            call::When::In(wait) => wait,
        };
        let now = repeated(until, || self.queue.route.store.time_ms()).await;
        let now = now.map_err(|error| Error::of_look(&error, doing))?;
        // What is due now counts: the bound itself is left out.
        Ok(Some(now.saturating_add(wait).saturating_add(1)))
    }
}
