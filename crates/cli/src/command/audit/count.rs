//! Counts what a partition holds, in pages, until nothing moved meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use overdue_protocol::entry::EntryId;
use overdue_protocol::tally::{self, GroupCounter};
use overdue_protocol::{GroupName, Partition, RawEntry};
use overdue_store::{GroupInfo, Store};
use tokio::time::sleep;

use super::account::{Books, Group, Timers};
use crate::command::groups::waiting_retries;
use crate::command::pages::Pages;
use crate::command::place::PAGE;
use crate::exit::Failure;
use crate::stage::progress::Progress;

/// How often a partition that moves is counted.
const TRIES: u32 = 5;
/// The longest pause before it is counted again.
const PAUSE: Duration = Duration::from_millis(100);

/// What is read before and after: if it is the same, nothing moved.
#[derive(PartialEq)]
struct Stand {
    tally: BTreeMap<String, String>,
    groups: Vec<GroupInfo>,
    armed: u64,
    retries: u64,
    length: u64,
    last: Option<EntryId>,
}

impl Stand {
    async fn read(store: &Store, partition: &Partition) -> Result<Self, Failure> {
        let stream = partition.stream();
        let mut tally = store.tally(partition).await?;
        // Says who fired last, not what.
        tally.remove(tally::LAST_SWEEPER);
        Ok(Self {
            tally,
            groups: store.groups(partition).await?,
            armed: store.depth(partition).await?,
            retries: store.retry_depth(partition).await?,
            length: store.length(&stream).await?,
            last: store.last_entries(&stream, 1).await?.first().map(|entry| entry.id),
        })
    }

    fn counter(&self, field: &str) -> i64 {
        self.tally.get(field).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The groups that have books or read the stream.
    fn group_names(&self) -> BTreeSet<String> {
        let with_base = self.tally.keys().filter_map(|field| field.strip_prefix("base:"));
        with_base.map(str::to_owned).chain(self.groups.iter().map(|group| group.name.clone())).collect()
    }
}

/// The books of a partition, balanced; or moving, when it moved each time.
pub(super) async fn settled(
    store: &Store,
    partition: &Partition,
    progress: &mut Progress,
) -> Result<Books, Failure> {
    let mut tries = 1;
    loop {
        let before = Stand::read(store, partition).await?;
        let books = books(store, partition, &before, progress).await?;
        let moving = before != Stand::read(store, partition).await?;
        if !moving || tries == TRIES {
            return Ok(Books { moving, ..books }.balance());
        }
        tries += 1;
        sleep(PAUSE.mul_f64(rand::random_range(0.1..1.0))).await;
    }
}

async fn books(
    store: &Store,
    partition: &Partition,
    stand: &Stand,
    progress: &mut Progress,
) -> Result<Books, Failure> {
    let timers = Timers {
        scheduled: stand.counter(tally::SCHEDULED),
        foreign: stand.counter(tally::FOREIGN),
        replaced: stand.counter(tally::REPLACED),
        cancelled: stand.counter(tally::CANCELLED),
        fired: stand.counter(tally::FIRED_TIMERS),
        armed: signed(stand.armed),
        ..Timers::default()
    };
    let waiting = waiting_retries(store, partition).await?;
    let mut readers: Vec<_> =
        stand.group_names().iter().filter_map(|name| Reader::new(store, partition, stand, name)).collect();
    let mut pages = Pages::open(store, partition.stream()).await?;
    let (place, mut counted) = (format!("{}/{}", partition.queue(), partition.number()), 0);
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            break;
        }
        for reader in &mut readers {
            reader.count(&page).await?;
        }
        counted += page.len();
        progress.is_at(&format!("{place}: counted {counted} of {} entries", stand.length));
    }
    let group = |reader: Reader| {
        let waiting = waiting.get(&reader.group).copied().unwrap_or(0);
        group(stand, &reader, signed(waiting))
    };
    Ok(Books { timers, groups: readers.into_iter().map(group).collect(), moving: false })
}

fn group(stand: &Stand, reader: &Reader, waiting: i64) -> Group {
    let of = |counter: GroupCounter| stand.counter(&counter.field(&reader.group));
    Group {
        group: reader.group.to_string(),
        fired: stand.counter(tally::FIRED_TIMERS),
        watched: stand.counter(tally::WATCHED_FIRED),
        base: of(GroupCounter::Base),
        replayed: of(GroupCounter::Replayed),
        done: of(GroupCounter::Done),
        buried: of(GroupCounter::Buried),
        discarded: of(GroupCounter::Discarded),
        waiting,
        live: reader.live,
        kept: stand.tally.contains_key(&GroupCounter::Base.field(&reader.group)),
        plain: reader.plain,
        gone: reader.gone,
        ..Group::default()
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Counts what is live for one group: not finished by it, and not addressed to another. Of a plain group all that is
/// there: nobody counts its acknowledgements, but what is deleted.
struct Reader<'a> {
    store: &'a Store,
    partition: &'a Partition,
    group: GroupName,
    plain: bool,
    /// Not in the stream: it would begin at the oldest entry.
    gone: bool,
    /// The last entry that was delivered to it.
    read: EntryId,
    /// What it holds, in order, from where the counting is.
    held: VecDeque<EntryId>,
    after: Option<EntryId>,
    all_held: bool,
    live: i64,
}

impl<'a> Reader<'a> {
    /// `None` for foreign groups whose names can't be names of ours: they have no books.
    fn new(store: &'a Store, partition: &'a Partition, stand: &Stand, name: &str) -> Option<Self> {
        let info = stand.groups.iter().find(|group| group.name == name);
        let group = GroupName::new(name).ok()?;
        Some(Self {
            store,
            partition,
            plain: stand.tally.contains_key(&tally::plain(&group)),
            group,
            gone: info.is_none(),
            read: info.map_or(EntryId::ZERO, |info| info.last_delivered),
            held: VecDeque::new(),
            after: None,
            all_held: info.is_none_or(|info| info.pending == 0),
            live: 0,
        })
    }

    /// Counts the next page of the stream.
    async fn count(&mut self, page: &[RawEntry]) -> Result<(), Failure> {
        for entry in page {
            let for_us = entry.field("group").is_none_or(|group| group == self.group.as_str());
            if for_us && (self.plain || entry.id > self.read || self.holds(entry.id).await?) {
                self.live += 1;
            }
        }
        Ok(())
    }

    /// Whether it holds the entry. Entries are asked for in order.
    async fn holds(&mut self, id: EntryId) -> Result<bool, Failure> {
        loop {
            while self.held.front().is_some_and(|held| *held < id) {
                self.held.pop_front();
            }
            if let Some(held) = self.held.front() {
                return Ok(*held == id);
            }
            if self.all_held {
                return Ok(false);
            }
            let page = self.store.pending_page(self.partition, &self.group, self.after, PAGE).await?;
            self.all_held = page.len() < PAGE;
            self.after = page.last().map(|pending| pending.id);
            self.held = page.into_iter().map(|pending| pending.id).collect();
        }
    }
}
