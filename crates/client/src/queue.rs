//! A queue, as a producer sees it.

use std::marker::PhantomData;
use std::sync::Arc;

use overdue_protocol::call::CancelItem;
use overdue_protocol::{Generation, QueueName, TimerId};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::answer::{Armed, ArmedTimer, Scheduled};
use crate::client::Limits;
use crate::error::{Error, ErrorKind, Result, shown};
use crate::id::IntoTimerId;
use crate::list::List;
use crate::page::{Failure, repeated};
use crate::payload::{Decode, Encode, Encoding, Raw};
use crate::route::Route;
use crate::timer::Timer;
use crate::when::When;

/// A queue of timers whose payloads are `T`. Clones are cheap.
///
/// Calls that are made at the same time share round trips: nothing has to be collected by hand for speed. Calls for
/// one id are executed in the order in which they were first polled, but for those that wait for replicas.
///
/// A future that is dropped before it is ready may or may not have been executed.
pub struct Queue<T> {
    pub(crate) route: Arc<Route>,
    pub(crate) limits: Limits,
    created: bool,
    payload: PhantomData<fn() -> T>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { route: self.route.clone(), limits: self.limits, created: self.created, payload: PhantomData }
    }
}

impl<T> Queue<T> {
    pub(crate) fn new(route: Arc<Route>, limits: Limits, created: bool) -> Self {
        Self { route, limits, created, payload: PhantomData }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &QueueName {
        &self.route.name
    }

    /// Whether opening this handle created the queue.
    #[must_use]
    pub fn created(&self) -> bool {
        self.created
    }

    /// Disarms a timer; answers what was armed, or `None`. What has fired already is not touched.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the answer was lost: cancel it again. Others as for [`Timer::schedule`].
    pub async fn cancel(&self, id: impl IntoTimerId) -> Result<Option<Armed>> {
        let id = self.id(id, "cancel")?;
        self.disarm(CancelItem { id, generation: None }).await
    }

    /// Disarms a timer only if this generation of it is armed; `None` when it is not.
    ///
    /// # Errors
    /// As [`Queue::cancel`].
    pub async fn cancel_if(&self, id: impl IntoTimerId, generation: Generation) -> Result<Option<Armed>> {
        let id = self.id(id, "cancel")?;
        self.disarm(CancelItem { id, generation: Some(generation) }).await
    }

    /// Disarms many timers; answers one for each, in the order given.
    pub async fn cancel_many<I: IntoTimerId>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Vec<Result<Option<Armed>>> {
        let items = ids.into_iter().map(|id| Ok(CancelItem { id: self.id(id, "cancel")?, generation: None }));
        self.carry(items.collect(), |item| self.doing("cancel", &item.id)).await
    }

    async fn disarm(&self, item: CancelItem) -> Result<Option<Armed>> {
        let outcome = self.route.carry(std::slice::from_ref(&item)).await.pop();
        answered(outcome, || self.doing("cancel", &item.id))
    }

    /// Sends the items that are good; answers for all in the order given.
    pub(crate) async fn carry<I: crate::lane::Item>(
        &self,
        items: Vec<Result<I>>,
        doing: impl Fn(&I) -> String,
    ) -> Vec<Result<I::Answer>> {
        let good: Vec<I> = items.iter().filter_map(|item| item.as_ref().ok().cloned()).collect();
        let mut outcomes = self.route.carry(&good).await.into_iter();
        let answer = |item: Result<I>| item.and_then(|item| answered(outcomes.next(), || doing(&item)));
        items.into_iter().map(answer).collect()
    }

    /// How many timers are armed.
    ///
    /// # Errors
    /// What Redis says.
    pub async fn count(&self) -> Result<u64> {
        let doing = format!("count the timers of queue {}", self.name());
        let lanes = self.route.lanes().map_err(|failure| error(failure, &doing))?;
        let mut depths = JoinSet::new();
        for partition in lanes.all() {
            let (store, until) = (self.route.store.clone(), Instant::now() + self.limits.deadline);
            depths.spawn(async move { repeated(until, || store.depth(&partition)).await });
        }
        let mut count = 0;
        while let Some(depth) = depths.join_next().await {
            let depth =
                depth.map_err(|_| Error::new(ErrorKind::Closed, &doing, "the runtime is shut down"))?;
            count += depth.map_err(|error| Error::of_look(&error, &doing))?;
        }
        Ok(count)
    }

    /// Lists armed timers by deadline, in pages.
    pub fn list(&self) -> List<'_, T> {
        List::new(self)
    }

    pub(crate) fn id(&self, id: impl IntoTimerId, verb: &str) -> Result<TimerId> {
        id.into_timer_id().map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                format!("{verb} a timer in queue {}", self.name()),
                error.to_string(),
            )
        })
    }

    pub(crate) fn doing(&self, verb: &str, id: &TimerId) -> String {
        format!("{verb} timer {} in queue {}", shown(id), self.name())
    }
}

impl<T: Encode> Queue<T> {
    /// Arms a timer, in place of one that is armed under this id. `when` is a [`std::time::Duration`] from the
    /// server's now, a [`std::time::SystemTime`], or [`When::UnixMs`].
    ///
    /// # Errors
    /// As [`Timer::schedule`].
    pub async fn schedule(
        &self,
        id: impl IntoTimerId,
        when: impl Into<When>,
        payload: &T,
    ) -> Result<Scheduled> {
        self.timer(id).at(when).payload(payload).schedule().await
    }

    /// A timer to be armed, with all there is to say about it.
    pub fn timer(&self, id: impl IntoTimerId) -> Timer<'_, T> {
        Timer::new(self, id.into_timer_id())
    }

    /// Arms many timers; answers one for each, in the order given. Partitions are worked on at the same time, and
    /// each answer stands for itself: some may be armed, others refused or unknown. The same id twice is armed
    /// twice, in order.
    ///
    /// All or nothing is not offered; `collect::<Result<Vec<_>, _>>()` tells whether all went well.
    pub async fn schedule_many<'q>(
        &'q self,
        timers: impl IntoIterator<Item = Timer<'q, T>>,
    ) -> Vec<Result<Scheduled>> {
        let items = timers.into_iter().map(|timer| timer.item_of_many()).collect();
        self.carry(items, |item| self.doing("arm", &item.id)).await
    }
}

impl<T: Decode> Queue<T> {
    /// The timer that is armed under this id, or `None`.
    ///
    /// # Errors
    /// `Unreadable` when its payload is no `T` or its record is broken; what Redis says.
    pub async fn get(&self, id: impl IntoTimerId) -> Result<Option<ArmedTimer<T>>> {
        let id = self.id(id, "look up")?;
        let doing = self.doing("look up", &id);
        let lanes = self.route.lanes().map_err(|failure| error(failure, &doing))?;
        let (partition, until) = (lanes.partition(&id), Instant::now() + self.limits.deadline);
        let found = repeated(until, || self.route.store.record(&partition, &id)).await;
        let Some((due_ms, record)) = found.map_err(|error| Error::of_look(&error, &doing))? else {
            return Ok(None);
        };
        let unreadable = |why| Error::new(ErrorKind::Unreadable, &doing, why);
        let Some(record) = record else {
            let flawed = "it is armed, but its record is missing or no record: it will fire with a flaw";
            return Err(unreadable(format!("{flawed} at {due_ms} unix ms")));
        };
        let extra =
            |name: &str| record.extras.iter().find(|(field, _)| field == name).map(|(_, value)| value);
        let encoding = extra("enc").map(|word| Encoding::from_word(word)).unwrap_or_default();
        let trace = extra("trace").cloned();
        let payload = T::decode(Raw::new(record.payload).encoded(encoding)).map_err(unreadable)?;
        Ok(Some(ArmedTimer { id, generation: record.generation, due_ms, payload, trace }))
    }
}

/// Says what was being done when an item failed.
pub(crate) fn answered<O>(outcome: Option<Result<O, Failure>>, doing: impl FnOnce() -> String) -> Result<O> {
    match outcome {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(failure)) => Err(error(failure, &doing())),
        None => Err(Error::new(ErrorKind::Server, doing(), "there is no answer for it")),
    }
}

pub(crate) fn error(failure: Failure, doing: &str) -> Error {
    match failure {
        Failure::Partitions(theirs) => Error::new(
            ErrorKind::PartitionsDisagree,
            doing,
            format!("its data is of {theirs} partition(s): nothing was written"),
        ),
        Failure::Other { kind, detail, scheduled } => Error::new(kind, doing, &*detail).with(scheduled),
    }
}
