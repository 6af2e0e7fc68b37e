//! The read loop of one partition: what is not ours yet becomes ours, as much as there is capacity for.
//!
//! In each turn: own pending entries that are out of hand first (at the start, and after anything that may have lost
//! an answer), then what is new. What others left behind is taken over elsewhere: see [`crate::suspects`].
//!
//! Capacity is a permit for each handler that may run. A reader holds the permits for what it asks; while it is
//! blocked it holds no more than its share of them, so that no partition starves. What is handled and not yet
//! acknowledged holds no permit, and is bounded by [`UNSETTLED`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use overdue_protocol::RawEntry;
use overdue_protocol::call::{Claim, From, Holder, Join, Joined, PAGE, Renew, Standing};
use overdue_protocol::entry::EntryId;
use overdue_store::{Backoff, Error, ErrorKind, Reader};
use overdue_telemetry::Progress;
use overdue_telemetry::label::Loop;
use tokio::time::timeout;

use crate::crew::{Crew, Seats};
use crate::reach::ReadOn;
use crate::station::Station;

/// The longest read.
const TURN: Duration = Duration::from_secs(1);
/// Not blocking at all.
const AT_ONCE: Duration = Duration::ZERO;
/// How long a reader with more to read waits for half of the permits: pages of one cost ten times as much.
const GATHER: Duration = Duration::from_millis(1);
/// The most entries in a read.
const COUNT: usize = 500;
/// The most payload in a read, ids too, as far as the largest entry met tells; before the first it is taken for 1 MiB.
const BYTES: usize = 4 * 1024 * 1024;
const LARGE: usize = 1024 * 1024;
/// How many entries beyond the concurrency may wait for the answer to their outcome.
const UNSETTLED: usize = 1024;
/// How long the loop may fail until this process is not ready.
const READY: Duration = Duration::from_secs(10);

pub(crate) struct Reading {
    station: Arc<Station>,
    reader: Option<Arc<Reader>>,
    /// The group must be joined first.
    join: Option<From>,
    /// Where the recovery of own entries goes on; `None` when there is none.
    recovery: Option<EntryId>,
    /// The last read came back full.
    more: bool,
    /// The largest entry met lately; `None` before the first.
    largest: Option<usize>,
    backoff: Backoff,
    progress: Progress,
}

impl Reading {
    /// `join` says whether the group must be joined first.
    pub(crate) fn new(station: Arc<Station>, join: Option<From>) -> Self {
        let progress = station.crew.options.health.register(Loop::Read, &station.label(), READY);
        Self {
            station,
            reader: None,
            join,
            recovery: Some(EntryId::ZERO),
            more: false,
            largest: None,
            backoff: Backoff::default(),
            progress,
        }
    }

    /// Works until the stop. Never cancel it before: a dropped read may have been given entries.
    pub(crate) async fn run(mut self) {
        let crew = self.station.crew.clone();
        while !crew.stopping() {
            let read_on = crew.read_on();
            if read_on == ReadOn::Nothing {
                self.progress.succeed();
                crew.wait(TURN / 4).await;
                continue;
            }
            match self.turn(&crew, read_on).await {
                Ok(()) => {
                    self.progress.succeed();
                    self.backoff.reset();
                }
                Err(error) => self.heal(&crew, &error).await,
            }
        }
        self.progress.retire();
        self.station.lend_reader(None);
        if let Some(reader) = self.reader {
            reader.close().await;
        }
    }

    async fn turn(&mut self, crew: &Crew, read_on: ReadOn) -> Result<(), Error> {
        if let Some(from) = self.join {
            self.join(crew, from).await?;
        }
        let reader = self.reader().await?;
        let Some(mut seats) = self.seats(crew, read_on).await else { return Ok(()) };
        if self.station.recover.swap(false, Ordering::Relaxed) {
            self.recovery = Some(EntryId::ZERO);
        }
        if let Some(after) = self.recovery {
            return self.recover(crew, &mut seats, after).await;
        }
        let block = if self.more && crew.partitions() > 1 { AT_ONCE } else { Self::patience(crew) };
        let count = seats.free().min(BYTES / self.largest.unwrap_or(LARGE).max(1)).clamp(1, COUNT);
        let asked = Instant::now();
        let page = reader.read(&self.station.stream, &crew.group, &crew.name, count, block).await?;
        self.more = page.len() >= count;
        let page = self.still_ours(crew, page, asked).await?;
        self.take(page, asked, &mut seats);
        Ok(())
    }

    /// How long to block: readers that have to take turns with the permits do not keep them for long.
    fn patience(crew: &Crew) -> Duration {
        let (partitions, permits) = (crew.partitions(), crew.options.concurrency);
        let turn = TURN.min(crew.options.lease / 4);
        if partitions > permits { turn.mul_f64(permits as f64 / partitions as f64) } else { turn }
    }

    /// Takes a page in hand, and learns how large entries are.
    fn take(&mut self, page: Vec<RawEntry>, asked: Instant, seats: &mut Seats<'_>) {
        let largest = page.iter().map(RawEntry::size).max().unwrap_or(0);
        if !page.is_empty() {
            // A large one is remembered for some ten pages.
            self.largest = Some(largest.max(self.largest.map_or(0, |before| before - before / 4)));
        }
        seats.spend(self.station.take(page, asked));
    }

    /// Permits, at least one; `None` when there were none for a while, or at the stop.
    async fn seats<'a>(&self, crew: &'a Crew, read_on: ReadOn) -> Option<Seats<'a>> {
        let all = crew.options.concurrency;
        while self.station.hands.len() >= all + UNSETTLED {
            let room = timeout(TURN, self.station.hands.room.notified());
            crew.stop.run_until_cancelled(room).await?.ok()?;
        }
        let most = if self.more { all } else { all / crew.partitions().max(1) };
        let most = if read_on == ReadOn::One { 1 } else { most.clamp(1, COUNT) };
        let mut free = 0;
        if self.more && most > 1 {
            let half = u32::try_from(most / 2).unwrap_or(1);
            if let Ok(Ok(permits)) = timeout(GATHER, crew.permits.acquire_many(half)).await {
                permits.forget();
                free = most / 2;
            }
        }
        if free == 0 {
            let one = timeout(TURN, crew.permits.acquire());
            crew.stop.run_until_cancelled(one).await?.ok()?.ok()?.forget();
            free = 1;
        }
        let more = crew.permits.available_permits().min(most - free);
        if let Ok(permits) = crew.permits.try_acquire_many(u32::try_from(more).unwrap_or(0)) {
            permits.forget();
            free += more;
        }
        Some(Seats::new(&crew.permits, free))
    }

    async fn reader(&mut self) -> Result<Arc<Reader>, Error> {
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        let reader = Arc::new(Reader::open(self.station.crew.store.settings(), "consumer").await?);
        self.station.lend_reader(Some(reader.clone()));
        self.reader = Some(reader.clone());
        Ok(reader)
    }

    /// An answer that lay unread for long (the process was stopped) may hold what is another's by now.
    async fn still_ours(
        &self,
        crew: &Crew,
        page: Vec<RawEntry>,
        asked: Instant,
    ) -> Result<Vec<RawEntry>, Error> {
        if page.is_empty() || asked.elapsed() < crew.options.lease / 2 {
            return Ok(page);
        }
        let entries = page.iter().map(|raw| raw.id).collect();
        let lost = crew.store.run(&Renew { by: self.station.standing.clone(), entries }).await?;
        let ours = page.into_iter().enumerate().filter(|(place, _)| !lost.contains(place));
        Ok(ours.map(|(_, raw)| raw).collect())
    }

    /// One page of own pending entries that are not in hand.
    async fn recover(&mut self, crew: &Crew, seats: &mut Seats<'_>, after: EntryId) -> Result<(), Error> {
        let asked = Instant::now();
        let (entries, next) = self.station.claim_own(after, seats.free()).await?;
        if !entries.is_empty() {
            tracing::debug!(queue = %crew.queue, n = entries.len(), "own entries that were out of hand");
        }
        self.recovery = next;
        self.take(entries, asked, seats);
        Ok(())
    }

    async fn join(&mut self, crew: &Crew, from: From) -> Result<(), Error> {
        match self.station.join(from).await? {
            Joined::Exists => {}
            Joined::Created | Joined::Recreated => {
                crew.counts.group_recreated.increment(1);
                crew.warn(
                    "joined again",
                    "the group was gone (stream deleted, group destroyed or a flush) and is joined again at the \
                     oldest entry; finished work may be handed out again if the stream has other groups",
                );
            }
        }
        self.join = None;
        Ok(())
    }

    /// After a fault: own entries may be out of hand, and the group may be gone.
    async fn heal(&mut self, crew: &Crew, error: &Error) {
        if crew.stopping() {
            return;
        }
        self.recovery = Some(EntryId::ZERO);
        self.more = false;
        if matches!(error.kind(), ErrorKind::NoGroup | ErrorKind::WrongType) {
            self.join = Some(From::Oldest);
        }
        self.progress.fail(error.kind().as_str());
        crew.fault("read", error);
        crew.wait(self.backoff.next_wait()).await;
    }
}

/// The most entries of a claim.
fn page_of(free: usize) -> u32 {
    u32::try_from(free).unwrap_or(PAGE).clamp(1, PAGE)
}

impl Station {
    /// Joins the group.
    pub(crate) async fn join(&self, from: From) -> Result<Joined, Error> {
        let Standing { partition, group, .. } = self.standing.clone();
        self.crew.store.run(&Join { partition, group, from }).await
    }

    /// Finds one page of own pending entries that are not in hand, and where to go on.
    pub(crate) async fn claim_own(
        &self,
        after: EntryId,
        most: usize,
    ) -> Result<(Vec<RawEntry>, Option<EntryId>), Error> {
        let holder = Holder::Own { in_hand: self.hands.entries() };
        let claim = Claim { by: self.standing.clone(), holder, after, limit: page_of(most) };
        let claimed = self.crew.store.run(&claim).await?;
        Ok((claimed.entries.into_iter().map(|claimed| claimed.entry).collect(), claimed.next))
    }

    /// Own entries may be out of hand: the next turn looks for them.
    pub(crate) fn look_for_own(&self) {
        self.recover.store(true, Ordering::Relaxed);
    }
}
