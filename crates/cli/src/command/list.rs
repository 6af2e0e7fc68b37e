//! `overdue list`: lists armed timers by due time.

use std::collections::VecDeque;

use overdue_protocol::{Partition, TimerId};
use overdue_store::Store;
use serde::Serialize;

use super::place::{PAGE, Place};
use crate::args::timers::List;
use crate::exit::Failure;
use crate::output::text::{self, IdText};
use crate::output::{Output, Row};
use crate::settings::Settings;

#[derive(Serialize)]
struct Timer {
    #[serde(flatten)]
    id: IdText,
    due: String,
    due_ms: u64,
    partition: u32,
    #[serde(skip)]
    shown: [String; 2],
}

impl Row for Timer {
    const COLUMNS: &'static [&'static str] = &["DUE", "IN", "ID"];

    fn cells(&self) -> Vec<String> {
        let [distance, id] = &self.shown;
        vec![self.due.clone(), distance.clone(), id.clone()]
    }
}

/// Runs the command.
pub(crate) async fn run(args: &List, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = Place::open(settings, &args.queue).await?;
    let now_ms = place.store.time_ms().await?;
    let mut left = if args.limit == 0 { u64::MAX } else { args.limit };
    let mut index = Index::of(&place, args.due_before.map(|due| due.unix_ms()), left);
    let mut table = output.table();
    let mut found = false;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PAGE).min(PAGE);
        let page = index.next(most).await?;
        if page.is_empty() {
            break;
        }
        found = true;
        left -= page.len() as u64;
        table.page(
            &page
                .into_iter()
                .map(|(id, due_ms, partition)| row(&id, due_ms, partition, now_ms))
                .collect::<Vec<_>>(),
        )?;
    }
    if !found {
        output.say("no timer is armed")?;
    }
    Ok(())
}

fn row(id: &TimerId, due_ms: u64, partition: u32, now_ms: u64) -> Timer {
    Timer {
        id: IdText::new(id.as_bytes()),
        due: text::time(due_ms),
        due_ms,
        partition,
        shown: [text::distance(due_ms, now_ms), text::printable(id.as_bytes())],
    }
}

/// The indexes of all partitions, merged by due time and id.
struct Index<'a> {
    store: &'a Store,
    shares: Vec<Share>,
    before: Option<u64>,
    page: usize,
}

/// One partition: what was read of it and not given out, in order.
struct Share {
    partition: Partition,
    ahead: VecDeque<(TimerId, u64)>,
    after: Option<(u64, TimerId)>,
    ended: bool,
}

impl<'a> Index<'a> {
    /// Of a place; `wanted` is how many will be asked for at most.
    fn of(place: &'a Place, before: Option<u64>, wanted: u64) -> Self {
        let share = |partition| Share { partition, ahead: VecDeque::new(), after: None, ended: false };
        let shares: Vec<_> = place.partitions().into_iter().map(share).collect();
        // With many partitions a page of each would be much more than anybody looks at.
        let page = (4 * PAGE / shares.len()).clamp(16, PAGE).min(usize::try_from(wanted).unwrap_or(PAGE));
        Self { store: &place.store, shares, before, page }
    }

    /// The next timers by due time: id, due ms, partition. Empty at the end.
    async fn next(&mut self, most: usize) -> Result<Vec<(TimerId, u64, u32)>, Failure> {
        let mut page = Vec::new();
        while page.len() < most {
            for share in &mut self.shares {
                share.fill(self.store, self.before, self.page).await?;
            }
            let head = |share: &&mut Share| share.ahead.front().map(|(id, due)| (*due, id.clone()));
            let first = self.shares.iter_mut().filter(|share| !share.ahead.is_empty()).min_by_key(head);
            let Some(share) = first else { break };
            if let Some((id, due)) = share.ahead.pop_front() {
                page.push((id, due, share.partition.number()));
            }
        }
        Ok(page)
    }
}

impl Share {
    async fn fill(&mut self, store: &Store, before: Option<u64>, limit: usize) -> Result<(), Failure> {
        if self.ended || !self.ahead.is_empty() {
            return Ok(());
        }
        let page = store.index_page(&self.partition, self.after.clone(), before, limit).await?;
        self.ended = page.len() < limit;
        self.after = page.last().map(|(id, due)| (*due, id.clone()));
        self.ahead = page.into();
        Ok(())
    }
}
