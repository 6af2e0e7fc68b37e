//! Suspects: timeouts whose holder died. One of them may be what it died of, so each runs alone.
//!
//! Once a second it is asked whether there are any. If so, all others are kept out: nobody may begin, and what runs may
//! end and be acknowledged (*solitude*). Then one suspect at a time is claimed, counted by the claim itself, and run.
//! Whoever dies now died of it; the fourth holder buries it without a try. Neighbours are never counted.
//!
//! Handlers that run for long make solitude rare. If it can't be had for a lease (at most 10 s), three times in a row,
//! suspects are claimed one by one among the others, uncounted; and one that has run alone for a lease (at most 30 s) is
//! let go on among others, its count taken back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use overdue_protocol::call::{Claim, ClaimedEntry, Holder};
use overdue_protocol::entry::EntryId;
use overdue_store::{Backoff, Error, ErrorKind};
use overdue_telemetry::Progress;
use overdue_telemetry::label::Loop;
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::crew::{Crew, Seats};
use crate::lone::Lone;
use crate::pause::jittered;
use crate::reach::ReadOn;
use crate::station::Station;

/// How often it is asked whether there are any.
const TURN: Duration = Duration::from_secs(1);
/// How long solitude is waited for, at most; no longer than a lease.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long new suspects are begun in one solitude; then the others have as long.
const SESSION: Duration = Duration::from_secs(5);
/// How long one suspect may keep the others out, at most; no longer than a lease.
const ALONE: Duration = Duration::from_secs(30);
/// So many solitudes in vain, and it is only tried again after [`RARELY`].
const MISSES: u32 = 3;
const RARELY: Duration = Duration::from_secs(60);
/// How often blocked readers are interrupted until all are out.
const KNOCK: Duration = Duration::from_millis(100);
/// So many deaths alone, and it is a dead letter.
const DEATHS: u64 = 3;
/// How long the loop may fail until this process is not ready: longer than a suspect may run alone.
const READY: Duration = Duration::from_secs(90);

pub(crate) struct Suspects {
    crew: Arc<Crew>,
    stations: watch::Receiver<Vec<Arc<Station>>>,
    /// Solitudes that were waited for in vain, one after the other.
    misses: u32,
    solitude_at: Instant,
    backoff: Backoff,
    progress: Progress,
}

impl Suspects {
    pub(crate) fn new(crew: Arc<Crew>, stations: watch::Receiver<Vec<Arc<Station>>>) -> Self {
        let progress = crew.options.health.register(Loop::Claim, &crew.name, READY);
        progress.succeed();
        Self { crew, stations, misses: 0, solitude_at: Instant::now(), backoff: Backoff::default(), progress }
    }

    /// Works until the stop, and until what runs alone then has ended; or until `end`.
    pub(crate) async fn run(mut self, end: CancellationToken) {
        let crew = self.crew.clone();
        let mut wait = jittered(TURN);
        while !crew.stopping() {
            crew.wait(wait).await;
            let began = Instant::now();
            wait = match end.run_until_cancelled(self.pass(&crew)).await {
                None => break,
                Some(Ok(())) => {
                    self.progress.succeed();
                    self.backoff.reset();
                    // The others have as long as they were kept out.
                    jittered(TURN).max(began.elapsed()).min(ALONE)
                }
                Some(Err(error)) => {
                    self.progress.fail(error.kind().as_str());
                    crew.fault("suspects", &error);
                    self.backoff.next_wait()
                }
            };
        }
        self.progress.retire();
    }

    async fn pass(&mut self, crew: &Crew) -> Result<(), Error> {
        if crew.stopping() || crew.read_on() != ReadOn::All {
            return Ok(());
        }
        let stations = self.stations.borrow().clone();
        let mut with_some = vec![];
        for station in &stations {
            if station.has_suspects().await? {
                with_some.push(station.clone());
            }
        }
        if with_some.is_empty() {
            return Ok(());
        }
        if self.misses < MISSES || self.solitude_at <= Instant::now() {
            match self.solitude(crew, &stations).await {
                Some(mut all) => {
                    self.misses = 0;
                    return session(crew, &with_some, &mut all).await;
                }
                None => (self.misses, self.solitude_at) = (self.misses + 1, Instant::now() + RARELY),
            }
        }
        if self.misses >= MISSES { one_among_others(crew, &with_some).await } else { Ok(()) }
    }

    /// Waits until no handler runs and all is acknowledged; nobody else begins while the permits are kept.
    async fn solitude<'a>(&self, crew: &'a Crew, stations: &[Arc<Station>]) -> Option<Seats<'a>> {
        let (all, deadline) =
            (crew.options.concurrency, tokio::time::Instant::now() + PATIENCE.min(crew.options.lease));
        let knocking = async {
            loop {
                for station in stations {
                    station.unblock().await;
                }
                sleep(KNOCK).await;
                self.progress.beat();
            }
        };
        let everybody = crew.permits.acquire_many(u32::try_from(all).unwrap_or(u32::MAX));
        let permits = tokio::select! {
            // First, so that it stands in the queue before a reader is interrupted.
            biased;
            permits = timeout_at(deadline, everybody) => permits.ok()?.ok()?,
            () = crew.stop.cancelled() => return None,
            () = knocking => return None,
        };
        permits.forget();
        let all = Seats::new(&crew.permits, all);
        for station in stations {
            let acknowledged = timeout_at(deadline, station.hands.empty());
            crew.stop.run_until_cancelled(acknowledged).await?.ok()?;
        }
        Some(all)
    }
}

/// Runs suspects, one at a time.
async fn session(crew: &Crew, stations: &[Arc<Station>], all: &mut Seats<'_>) -> Result<(), Error> {
    let began = Instant::now();
    for station in stations {
        let mut after = Some(EntryId::ZERO);
        while let Some(from) = after {
            if crew.stopping() || began.elapsed() >= SESSION {
                return Ok(());
            }
            let asked = Instant::now();
            let (suspect, next) = station.claim_suspect(from, true).await?;
            after = next;
            if let Some(suspect) = suspect
                && !station.try_alone(suspect, asked, all).await
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Solitude can't be had: one suspect begins among the others, uncounted.
async fn one_among_others(crew: &Crew, stations: &[Arc<Station>]) -> Result<(), Error> {
    for station in stations {
        let permit = tokio::time::timeout(TURN, crew.permits.acquire());
        let Some(Ok(Ok(permit))) = crew.stop.run_until_cancelled(permit).await else { return Ok(()) };
        permit.forget();
        let (mut seats, mut after) = (Seats::new(&crew.permits, 1), Some(EntryId::ZERO));
        while let Some(from) = after {
            let asked = Instant::now();
            let (suspect, next) = station.claim_suspect(from, false).await?;
            if let Some(suspect) = suspect {
                seats.spend(station.take(vec![suspect.entry], asked));
                return Ok(());
            }
            after = next;
        }
    }
    Ok(())
}

impl Station {
    fn others(&self, alone: bool) -> Holder {
        let lease_ms = u64::try_from(self.crew.options.lease.as_millis()).unwrap_or(u64::MAX);
        Holder::Others { lease_ms, alone }
    }

    async fn has_suspects(&self) -> Result<bool, Error> {
        let (by, holder) = (self.standing.clone(), self.others(false));
        let look = Claim { by, holder, after: EntryId::ZERO, limit: 0 };
        Ok(self.crew.store.run(&look).await?.next.is_some())
    }

    /// Claims the next one; and where to go on.
    async fn claim_suspect(
        &self,
        after: EntryId,
        alone: bool,
    ) -> Result<(Option<ClaimedEntry>, Option<EntryId>), Error> {
        let (by, holder) = (self.standing.clone(), self.others(alone));
        let claim = Claim { by, holder, after, limit: 1 };
        let mut claimed = match self.crew.store.run(&claim).await {
            Ok(claimed) => claimed,
            Err(error) => {
                // It may be ours now, and nobody knows.
                self.look_for_own();
                return Err(error);
            }
        };
        let suspect = claimed.entries.pop();
        if let Some(suspect) = &suspect {
            let crew = &self.crew;
            crew.counts.claimed(1);
            if let Some(pass) = crew.throttle.pass("took over", Instant::now()) {
                let holder = String::from_utf8_lossy(&suspect.holder);
                tracing::info!(
                    queue = %crew.queue, group = %crew.group, entry = %suspect.entry.id, %holder, alone,
                    "took over a timeout whose lease ran out{pass}"
                );
            }
        }
        Ok((suspect, claimed.next))
    }

    /// Runs a suspect alone until it is out of hand, or buries it; false when the others can't be kept out any longer.
    async fn try_alone(self: &Arc<Self>, suspect: ClaimedEntry, asked: Instant, all: &mut Seats<'_>) -> bool {
        let (crew, entry, lone) = (&self.crew, suspect.entry.id, Lone::default());
        // The counter is 1 for the delivery, and one more for each time it was begun alone; this time was counted too.
        let deaths = suspect.deliveries.saturating_sub(2);
        if deaths >= DEATHS {
            let holder = String::from_utf8_lossy(&suspect.holder).into_owned();
            let detail = format!("{deaths} holders died while it ran alone; the last was {holder}");
            crew.warn("deaths", format_args!("entry {entry} is a dead letter: {detail}"));
            self.bury(&suspect.entry, asked, &detail);
        } else {
            crew.counts.suspects.increment(1);
            self.take_alone(suspect.entry, asked, &lone);
        }
        tokio::select! {
            () = self.hands.empty() => return true,
            () = crew.stop.cancelled() => {}
            () = self.goes_on_among_others(entry) => {}
        }
        if lone.take_seat() {
            all.spend(1);
        }
        false
    }

    /// After a while its count is taken back; until that is done it stays alone.
    async fn goes_on_among_others(&self, entry: EntryId) {
        let mut wait = ALONE.min(self.crew.options.lease);
        loop {
            sleep(wait).await;
            let (by, holder) = (self.standing.clone(), Holder::Among { entries: vec![entry] });
            let claim = Claim { by, holder, after: EntryId::ZERO, limit: 1 };
            match self.crew.store.run(&claim).await {
                Ok(_) => return,
                // There is no count any more; and who joins again needs a permit for it.
                Err(error) if error.kind() == ErrorKind::NoGroup => return,
                Err(error) => self.crew.fault("suspects", &error),
            }
            wait = TURN;
        }
    }
}
