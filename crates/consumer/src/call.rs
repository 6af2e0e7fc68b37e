//! One batch of verdicts of one kind, as a call.

use overdue_protocol::call::{
    Bury, BuryItem, Complete, CompleteItem, PAGE_BYTES, Release, Retry, RetryItem, Words,
};
use overdue_store::Error;

use crate::station::{Act, Station, Verdict};

/// The most verdicts in a call.
pub(crate) const BATCH: usize = 256;

/// Which script says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Complete,
    Retry,
    Bury,
    Release,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Complete, Self::Retry, Self::Bury, Self::Release];

    pub(crate) fn of(act: &Act) -> Self {
        match act {
            Act::Done | Act::Passed => Self::Complete,
            Act::Retry(_) => Self::Retry,
            Act::Bury(..) => Self::Bury,
            Act::Release => Self::Release,
        }
    }

    /// The most payload in a call: what the script has to carry. Acknowledging carries none.
    pub(crate) fn most_bytes(self) -> usize {
        match self {
            Self::Complete => usize::MAX,
            Self::Retry | Self::Bury | Self::Release => PAGE_BYTES as usize,
        }
    }
}

/// Says a batch; answers a word for each.
pub(crate) async fn send(station: &Station, kind: Kind, batch: &[Verdict]) -> Result<Vec<Words>, Error> {
    let (store, by) = (&station.crew.store, station.standing.clone());
    match kind {
        Kind::Complete => {
            let items = batch.iter().map(complete_item).collect();
            let answer = store.run(&Complete { by, items }).await?;
            let mut words = vec![Words::Ok; batch.len()];
            for lost in answer.lost {
                if let Some(word) = words.get_mut(lost) {
                    *word = Words::Lost;
                }
            }
            Ok(words)
        }
        Kind::Retry => store.run(&Retry { by, items: batch.iter().map(retry_item).collect() }).await,
        Kind::Bury => store.run(&Bury { by, items: batch.iter().map(bury_item).collect() }).await,
        Kind::Release => {
            store
                .run(&Release { by, entries: batch.iter().map(|verdict| verdict.ticket.entry).collect() })
                .await
        }
    }
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
    let delay_ms = match verdict.act {
        Act::Retry(wait) => u64::try_from(wait.as_millis()).unwrap_or(u64::MAX / 2),
        _ => 0,
    };
    RetryItem { entry: verdict.ticket.entry, delay_ms }
}

fn bury_item(verdict: &Verdict) -> BuryItem {
    let (reason, detail) = match &verdict.act {
        Act::Bury(reason, detail) => (*reason, detail.clone().into()),
        _ => ("", bytes::Bytes::new()),
    };
    BuryItem { entry: verdict.ticket.entry, reason, detail }
}
