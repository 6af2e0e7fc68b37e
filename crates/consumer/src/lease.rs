//! Leases are renewed by a task of their own, every third of a lease.
//!
//! Redis says which are lost. Only when it can't be asked, a lease is given up here at its end: the local clock may
//! make us stop earlier, never later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use overdue_protocol::call::Renew;
use overdue_store::{Backoff, Error, ErrorKind};
use overdue_telemetry::Progress;
use overdue_telemetry::label::{HandledResult, Loop};
use tokio_util::sync::CancellationToken;

use crate::hand::Ticket;
use crate::pause::jittered;
use crate::station::Station;

/// The most leases in a call.
const PAGE: usize = 500;
/// How often it shows that it is there.
const BEAT: Duration = Duration::from_secs(5);

pub(crate) struct Renewal {
    station: Arc<Station>,
    progress: Progress,
}

impl Renewal {
    pub(crate) fn new(station: Arc<Station>) -> Self {
        let options = &station.crew.options;
        let progress = options.health.register(Loop::Renew, &station.label(), options.lease);
        Self { station, progress }
    }

    /// Works until `end`.
    pub(crate) async fn run(self, end: CancellationToken) {
        let third = self.station.crew.options.lease / 3;
        let mut backoff = Backoff::default();
        let mut wait = jittered(third);
        // Nothing is in hand yet, so there is nothing to renew.
        self.progress.succeed();
        while end.run_until_cancelled(self.sleep(wait)).await.is_some() {
            let pass = tokio::time::timeout(third, self.pass());
            wait = match end.run_until_cancelled(pass).await {
                None => break,
                Some(Ok(Ok(()))) => {
                    self.progress.succeed();
                    backoff.reset();
                    jittered(third)
                }
                Some(failed) => {
                    let kind = match &failed {
                        Ok(Err(error)) => error.kind().as_str(),
                        _ => "deadline",
                    };
                    self.progress.fail(kind);
                    match failed {
                        Ok(Err(error)) => self.station.crew.fault("renew", &error),
                        _ => self.station.crew.unanswered(&"leases were not renewed in time"),
                    }
                    self.lost(self.station.hands.lose_expired(Instant::now()));
                    backoff.next_wait().min(third)
                }
            };
        }
        self.progress.retire();
    }

    /// A third of a long lease is longer than a loop may be silent.
    async fn sleep(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until {
            tokio::time::sleep(BEAT.min(until.saturating_duration_since(Instant::now()))).await;
            self.progress.beat();
        }
    }

    /// Renews all that is in hand.
    async fn pass(&self) -> Result<(), Error> {
        for page in self.station.hands.leased().chunks(PAGE) {
            self.renew(page).await?;
        }
        Ok(())
    }

    async fn renew(&self, page: &[Ticket]) -> Result<(), Error> {
        let (station, asked) = (&self.station, Instant::now());
        let entries = page.iter().map(|ticket| ticket.entry).collect();
        let lost = match station.crew.store.run(&Renew { by: station.standing.clone(), entries }).await {
            Ok(lost) => lost,
            // The reader joins again; what of this is ours then, the next pass sees.
            Err(error) if error.kind() == ErrorKind::NoGroup => return Ok(()),
            Err(error) => return Err(error),
        };
        let counts = &station.crew.counts;
        counts.leases_renewed.increment((page.len() - lost.len().min(page.len())) as u64);
        station.hands.renewed(page, asked + station.crew.options.lease);
        self.lost(station.hands.lose(lost.iter().filter_map(|&place| page.get(place).copied())));
        Ok(())
    }

    fn lost(&self, n: u64) {
        if n > 0 {
            let crew = &self.station.crew;
            crew.counts.leases_lost.increment(n);
            crew.counts.handled(HandledResult::Lost, n);
            crew.warn("lost", format_args!("{n} lease(s) were lost; their handlers are dropped"));
        }
    }
}
