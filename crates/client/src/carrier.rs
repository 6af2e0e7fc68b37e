//! Carries pages of items to one partition, each item once.
//!
//! What was certainly not executed is sent again until the item's time is over. What may have been executed is
//! never sent again: Redis is asked instead (PROTOCOL.md section 4).

use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::call::{self, Ask, Cancel, CancelItem, Cancelled, ScheduleItem, When};
use overdue_protocol::{Call, Partition};
use overdue_store::{Error, Executed, Result, Store};
use tokio::time::Instant;
use tracing::debug;

use crate::ErrorKind;
use crate::answer::{Armed, Change, Scheduled};
use crate::page::{Failure, Outcome, Page, Pauses, passes, repeated, said};

/// Wait until so many replicas have it, at most so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) replicas: u32,
    pub(crate) deadline: Duration,
}

pub(crate) struct Carrier {
    pub(crate) store: Store,
    pub(crate) partition: Partition,
    /// How many partitions we think the queue has.
    pub(crate) partitions: u32,
}

impl Carrier {
    /// Arms timers, each tried at most until its time; answers in their order.
    pub(crate) async fn arm(
        &self,
        items: Vec<ScheduleItem>,
        until: Vec<Instant>,
        wait: Option<Wait>,
    ) -> Vec<Outcome<Scheduled>> {
        let mut page = Page::new(until);
        let mut call =
            call::Schedule { partition: self.partition.clone(), partitions: self.partitions, items };
        let mut pauses = Pauses::new();
        while !call.items.is_empty() {
            match self.run(&call, wait).await {
                Ok((answer, replicas)) => {
                    note(&mut page, &mut call.items, answer, wait.map(|wait| (wait, replicas)));
                }
                Err(error) if error.was_executed() == Executed::Unknown => {
                    self.ask(&mut call, &mut page, &error, wait).await;
                }
                Err(error) => {
                    let failure = Failure::of(&error, &call.what());
                    not_executed(&mut page, &mut call.items, &error, &failure, &mut pauses).await;
                }
            }
        }
        page.into_outcomes()
    }

    async fn run(&self, call: &call::Schedule, wait: Option<Wait>) -> Result<(call::Scheduled, u32)> {
        match wait {
            Some(Wait { replicas, deadline }) => self.store.run_with_wait(call, replicas, deadline).await,
            None => self.store.run(call).await.map(|answer| (answer, 0)),
        }
    }

    /// Asks whether the timers stand as `call` left them, and notes an answer for each.
    async fn ask(
        &self,
        call: &mut call::Schedule,
        page: &mut Page<Scheduled>,
        error: &Error,
        wait: Option<Wait>,
    ) {
        debug!(%error, "asking Redis whether it was done");
        let lost = said(error, &call.what());
        let mut ask = Ask(call.clone());
        for item in &mut ask.0.items {
            // The bytes that name the call are enough.
            (item.payload, item.extras, item.when) = (Bytes::new(), Bytes::new(), When::In(0));
        }
        let (held, asked) = match repeated(page.until(), || self.store.run(&ask)).await {
            Ok(held) => (held, "asked afterwards, Redis holds nothing of this call".to_owned()),
            Err(error) => (
                vec![None; call.items.len()],
                format!("Redis could not be asked: {}", said(&error, &ask.what())),
            ),
        };
        let unknown = Failure::new(ErrorKind::OutcomeUnknown, format!("{lost}; {asked}"));
        let answers = held.into_iter().map(|held| {
            let Some((generation, due_ms)) = held else { return Some(Err(unknown.clone())) };
            let scheduled = Scheduled { generation, due_ms, change: Change::Confirmed };
            Some(match wait {
                None => Ok(scheduled),
                Some(wait) => Err(not_replicated(scheduled, wait, "an unknown number")),
            })
        });
        page.settle(&mut call.items, answers);
    }

    /// Disarms timers, each tried at most until its time; answers in their order.
    pub(crate) async fn disarm(
        &self,
        items: Vec<CancelItem>,
        until: Vec<Instant>,
    ) -> Vec<Outcome<Option<Armed>>> {
        let mut page = Page::new(until);
        let mut call = Cancel { partition: self.partition.clone(), items };
        let mut pauses = Pauses::new();
        while !call.items.is_empty() {
            match self.store.run(&call).await {
                Ok(answers) => progress(&mut page, &mut call.items, answers.into_iter().map(disarmed)),
                Err(error) if error.was_executed() == Executed::Unknown => {
                    let detail = format!("{}; a cancel can always be made again", said(&error, &call.what()));
                    page.fail(&mut call.items, &Failure::new(ErrorKind::OutcomeUnknown, detail));
                }
                Err(error) => {
                    let failure = Failure::of(&error, &call.what());
                    not_executed(&mut page, &mut call.items, &error, &failure, &mut pauses).await;
                }
            }
        }
        page.into_outcomes()
    }
}

/// Notes the answer of a schedule.
fn note(
    page: &mut Page<Scheduled>,
    items: &mut Vec<ScheduleItem>,
    answer: call::Scheduled,
    waited: Option<(Wait, u32)>,
) {
    match answer {
        call::Scheduled::Items(answers) => {
            let answers =
                answers.iter().map(|answer| Scheduled::read(answer).map(|it| replicated(it, waited)));
            progress(page, items, answers);
        }
        call::Scheduled::Partitions(theirs) => page.fail(items, &Failure::Partitions(theirs)),
        call::Scheduled::OutOfRange(at) => {
            let failure = Failure::new(
                ErrorKind::Invalid,
                "the deadline is out of range on the server's clock: it would lie after 2200-01-01T00:00:00Z",
            );
            let answers: Vec<_> = (0..items.len()).map(|i| (i == at).then(|| Err(failure.clone()))).collect();
            progress(page, items, answers);
        }
    }
}

/// Settles a page; one that answers nothing would be sent for ever.
fn progress<I, O>(
    page: &mut Page<O>,
    items: &mut Vec<I>,
    answers: impl IntoIterator<Item = Option<Outcome<O>>>,
) {
    let sent = items.len();
    page.settle(items, answers);
    if items.len() == sent {
        page.fail(items, &Failure::new(ErrorKind::Server, "the script answers for no timer at all"));
    }
}

/// After an error that says "not executed": those whose time is not over stay, if it may pass by itself.
async fn not_executed<I, O>(
    page: &mut Page<O>,
    items: &mut Vec<I>,
    error: &Error,
    failure: &Failure,
    pauses: &mut Pauses,
) {
    if !passes(error) {
        page.fail(items, failure);
        return;
    }
    page.give_up(items, failure);
    if !items.is_empty() {
        debug!(%error, timers = items.len(), "not executed; trying again");
        pauses.pause().await;
    }
}

fn replicated(scheduled: Scheduled, waited: Option<(Wait, u32)>) -> Outcome<Scheduled> {
    match waited {
        Some((wait, replicas)) if replicas < wait.replicas => {
            Err(not_replicated(scheduled, wait, &replicas.to_string()))
        }
        _ => Ok(scheduled),
    }
}

fn not_replicated(scheduled: Scheduled, wait: Wait, have: &str) -> Failure {
    let detail = format!(
        "generation {} stands on the primary, but {have} of {} replicas confirmed it within {:?}: a failover now may lose it",
        scheduled.generation, wait.replicas, wait.deadline
    );
    Failure::Other { kind: ErrorKind::NotReplicated, detail: detail.into(), scheduled: Some(scheduled) }
}

/// `None` when the timer was not looked at.
fn disarmed(answer: Cancelled) -> Option<Outcome<Option<Armed>>> {
    match answer {
        Cancelled::Disarmed { generation, due_ms } => Some(Ok(Some(Armed { generation, due_ms }))),
        Cancelled::Absent | Cancelled::Other(_) => Some(Ok(None)),
        Cancelled::More => None,
    }
}
