//! One batch of verdicts of one kind, as a call.

use std::sync::atomic::Ordering;
use std::time::Duration;

use overdue_protocol::call::{
    Applied, Apply, ApplyItem, Bury, BuryItem, Complete, CompleteItem, PAGE_BYTES, Release, Retry, RetryItem,
    Words,
};
use overdue_store::Error;

use crate::station::{Act, Station, Verdict};

/// The most verdicts in a call.
pub(crate) const BATCH: usize = 256;

/// Which script says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Complete,
    Apply,
    Retry,
    Bury,
    Release,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Complete, Self::Apply, Self::Retry, Self::Bury, Self::Release];

    pub(crate) fn of(act: &Act) -> Self {
        match act {
            Act::Done | Act::Passed => Self::Complete,
            Act::Apply(_) => Self::Apply,
            Act::Retry(_) => Self::Retry,
            Act::Bury(..) => Self::Bury,
            Act::Release(_) => Self::Release,
        }
    }

    /// The most payload in a call: what the script has to carry; of [`Kind::Apply`] the effects. Acknowledging carries
    /// none.
    pub(crate) fn most_bytes(self) -> usize {
        match self {
            Self::Complete => usize::MAX,
            Self::Apply | Self::Retry | Self::Bury | Self::Release => PAGE_BYTES as usize,
        }
    }
}

/// Says a batch; answers what became of each.
pub(crate) async fn send(station: &Station, kind: Kind, batch: &[Verdict]) -> Result<Vec<Applied>, Error> {
    let (store, by) = (&station.crew.store, station.standing.clone());
    let history = station.crew.history.load(Ordering::Relaxed);
    let words = match kind {
        Kind::Complete => {
            let items = batch.iter().map(complete_item).collect();
            let answer = store.run(&Complete { by, items, history }).await?;
            let mut words = vec![Applied::Ok; batch.len()];
            for lost in answer.lost {
                if let Some(word) = words.get_mut(lost) {
                    *word = Applied::Lost;
                }
            }
            return Ok(words);
        }
        Kind::Apply => {
            let items = batch.iter().filter_map(apply_item).collect();
            return store.run(&Apply { by, items, history }).await;
        }
        Kind::Retry => store.run(&Retry { by, items: batch.iter().map(retry_item).collect() }).await,
        Kind::Bury => store.run(&Bury { by, items: batch.iter().map(bury_item).collect() }).await,
        Kind::Release => store.run(&Release { by, items: batch.iter().map(retry_item).collect() }).await,
    };
    Ok(words?.into_iter().map(applied).collect())
}

fn applied(word: Words) -> Applied {
    match word {
        Words::Ok => Applied::Ok,
        Words::Lost => Applied::Lost,
        Words::Gone => Applied::Gone,
    }
}

fn apply_item(verdict: &Verdict) -> Option<ApplyItem> {
    let Act::Apply(applying) = &verdict.act else { return None };
    Some(ApplyItem { entry: verdict.ticket.entry, effects: applying.effects.clone() })
}

fn complete_item(verdict: &Verdict) -> CompleteItem {
    let entry = verdict.ticket.entry;
    match verdict.act {
        Act::Passed => CompleteItem::Passed(entry),
        _ if verdict.ours => CompleteItem::DoneOurs(entry),
        _ => CompleteItem::Done(entry),
    }
}

fn retry_item(verdict: &Verdict) -> RetryItem {
    let wait = match verdict.act {
        Act::Retry(wait) | Act::Release(wait) => wait,
        _ => Duration::ZERO,
    };
    let delay_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX / 2);
    RetryItem { entry: verdict.ticket.entry, delay_ms }
}

fn bury_item(verdict: &Verdict) -> BuryItem {
    let (reason, detail) = match &verdict.act {
        Act::Bury(reason, detail) => (*reason, detail.clone().into()),
        _ => ("", bytes::Bytes::new()),
    };
    BuryItem { entry: verdict.ticket.entry, reason, detail }
}
