//! The items of one call that are not answered yet, and the answers so far.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use overdue_store as store;
use tokio::time::{Instant, sleep};

use crate::ErrorKind;
use crate::answer::Scheduled;

/// Why one item failed; the caller knows what was being done, and to what.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The partition belongs to a queue of so many partitions; nothing was written.
    Partitions(u32),
    /// Anything else.
    Other { kind: ErrorKind, detail: Arc<str>, scheduled: Option<Scheduled> },
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, detail: impl Into<Arc<str>>) -> Self {
        Failure::Other { kind, detail: detail.into(), scheduled: None }
    }

    /// What the store said while it did `what`.
    pub(crate) fn of(error: &store::Error, what: &str) -> Self {
        Self::new(error.kind().into(), said(error, what))
    }
}

/// What the store said, without what it was doing: a caller thinks of one timer, not of the call that carried it.
pub(crate) fn said(error: &store::Error, what: &str) -> String {
    let text = error.to_string();
    let said = text.strip_prefix("cannot ").and_then(|text| text.strip_prefix(what)?.strip_prefix(": "));
    said.unwrap_or(&text).to_owned()
}

pub(crate) type Outcome<O> = Result<O, Failure>;

/// Keeps, beside the items of a call, where their answers belong and until when each may be tried again.
pub(crate) struct Page<O> {
    slots: Vec<Slot>,
    outcomes: Vec<Option<Outcome<O>>>,
}

struct Slot {
    place: usize,
    until: Instant,
}

impl<O> Page<O> {
    /// A page of items that may be tried again until then.
    pub(crate) fn new(until: impl IntoIterator<Item = Instant>) -> Self {
        let slots: Vec<_> =
            until.into_iter().enumerate().map(|(place, until)| Slot { place, until }).collect();
        let outcomes = slots.iter().map(|_| None).collect();
        Self { slots, outcomes }
    }

    /// Until when the last of the open items may be tried again.
    pub(crate) fn until(&self) -> Instant {
        self.slots.iter().map(|slot| slot.until).max().unwrap_or_else(Instant::now)
    }

    /// Notes an answer for each of `items`; those with `None` stay, to be sent again.
    pub(crate) fn settle<I>(
        &mut self,
        items: &mut Vec<I>,
        answers: impl IntoIterator<Item = Option<Outcome<O>>>,
    ) {
        let open = std::mem::take(items).into_iter().zip(std::mem::take(&mut self.slots));
        for ((item, slot), answer) in open.zip(answers) {
            if answer.is_none() {
                items.push(item);
                self.slots.push(slot);
            } else {
                self.outcomes[slot.place] = answer;
            }
        }
    }

    /// Notes the same failure for all of `items`.
    pub(crate) fn fail<I>(&mut self, items: &mut Vec<I>, failure: &Failure) {
        self.settle(items, std::iter::repeat_with(|| Some(Err(failure.clone()))));
    }

    /// Notes the failure for those whose time is over.
    pub(crate) fn give_up<I>(&mut self, items: &mut Vec<I>, failure: &Failure) {
        let now = Instant::now();
        let late: Vec<_> =
            self.slots.iter().map(|slot| (slot.until <= now).then(|| Err(failure.clone()))).collect();
        self.settle(items, late);
    }

    /// The answers, in the order of the items.
    pub(crate) fn into_outcomes(self) -> Vec<Outcome<O>> {
        let lost = || Err(Failure::new(ErrorKind::Server, "the answer is too short"));
        self.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(lost)).collect()
    }
}

/// Waits between tries: 10 ms, doubling up to 500 ms, with jitter.
pub(crate) struct Pauses(Box<dyn Iterator<Item = Duration> + Send>);

impl Pauses {
    pub(crate) fn new() -> Self {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(10))
            .with_max_delay(Duration::from_millis(500))
            .without_max_times()
            .with_jitter();
        Self(Box::new(pauses.build()))
    }

    pub(crate) async fn pause(&mut self) {
        sleep(self.0.next().unwrap_or(Duration::from_millis(500))).await;
    }
}

/// Whether the call was certainly not executed and may succeed soon.
pub(crate) fn passes(error: &store::Error) -> bool {
    matches!(error.kind(), store::ErrorKind::Unreachable | store::ErrorKind::Unavailable)
}

/// Does again until then what may be done any number of times.
pub(crate) async fn repeated<T, F: Future<Output = store::Result<T>>>(
    until: Instant,
    mut attempt: impl FnMut() -> F,
) -> store::Result<T> {
    let mut pauses = Pauses::new();
    loop {
        match attempt().await {
            Err(error)
                if (passes(&error) || error.kind() == store::ErrorKind::OutcomeUnknown)
                    && Instant::now() < until =>
            {
                pauses.pause().await;
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_stand_in_the_order_of_the_items_whatever_order_they_came_in() {
        let mut items = vec!['a', 'b', 'c'];
        let mut page = Page::new([Instant::now(); 3]);
        page.settle(&mut items, [Some(Ok(1)), None, Some(Ok(3))]);
        assert_eq!(items, ['b']);
        page.settle(&mut items, [Some(Ok(2))]);
        let outcomes: Vec<_> = page.into_outcomes().into_iter().map(Result::unwrap).collect();
        assert_eq!(outcomes, [1, 2, 3]);
    }

    #[test]
    fn only_those_whose_time_is_over_are_given_up() {
        let now = Instant::now();
        let mut items = vec!['a', 'b'];
        let mut page: Page<()> = Page::new([now, now + Duration::from_secs(60)]);
        page.give_up(&mut items, &Failure::Partitions(2));
        assert_eq!(items, ['b']);
    }

    #[test]
    fn an_error_speaks_of_one_timer() {
        let error =
            store::Error::new(store::ErrorKind::OutOfMemory, "arm 3 timer(s) in q/0", "it is full: at a:b");
        assert_eq!(said(&error, "arm 3 timer(s) in q/0"), "it is full: at a:b");
        assert_eq!(said(&error, "something else"), "cannot arm 3 timer(s) in q/0: it is full: at a:b");
    }
}
