//! The end of a consumer: in order, and every step under a deadline.
//!
//! 1. Stop reading. What a read was given at the last moment is handed back.
//! 2. Handlers may finish within the grace; then they are dropped and their timeouts handed back.
//! 3. Say what is not said yet, and look once more for entries whose answer was lost.
//! 4. Retire from the group, leave the members, close.

use std::time::Duration;

use overdue_protocol::call::Retire;
use overdue_protocol::entry::EntryId;
use overdue_store::Error;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::report::Report;
use crate::run::Floor;
use crate::station::Station;

/// How long the readers may take to end: they are interrupted, so it is a matter of milliseconds.
const READERS: Duration = Duration::from_secs(5);
/// How often a reader is interrupted again: a read that began a moment later is not touched by the first time.
const KNOCK: Duration = Duration::from_millis(20);
/// How long dropped handlers may take to be gone; longer is a handler that blocks its thread.
const DROPPED: Duration = Duration::from_secs(2);
/// How long looking for own entries may take.
const LOOK: Duration = Duration::from_secs(2);
/// How long the last outcomes may take.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long goodbyes may take.
const GOODBYE: Duration = Duration::from_secs(2);

impl Floor {
    /// Ends, and says what was done.
    pub(crate) async fn leave(mut self) -> Report {
        self.crew.stop.cancel();
        self.stop_reading().await;
        self.finish_handlers().await;
        // What is found goes to the lanes, as the rest did.
        let looking = async {
            for station in &self.stations {
                if let Err(error) = station.hand_back_own().await {
                    self.crew.warn("leave", format_args!("{error}; the lease will run out"));
                }
            }
        };
        let _ = timeout(LOOK, looking).await;
        self.closing.cancel();
        ended(&mut self.lanes, LAST_WORDS).await;
        self.end.cancel();
        ended(&mut self.renewals, GOODBYE).await;
        let unsettled: usize = self.stations.iter().map(|station| station.hands.len()).sum();
        let _ = timeout(GOODBYE, self.say_goodbye()).await;
        self.crew.store.close().await;
        let report = self.crew.counts.report(unsettled as u64);
        tracing::info!(queue = %self.crew.queue, group = %self.crew.group, ?report, "the consumer has ended");
        report
    }

    async fn stop_reading(&mut self) {
        let deadline = Instant::now() + READERS;
        while !self.readings.is_empty() && Instant::now() < deadline {
            for station in &self.stations {
                let _ = timeout_at(deadline, station.unblock()).await;
            }
            let _ = timeout(KNOCK, async { while self.readings.join_next().await.is_some() {} }).await;
        }
        self.readings.abort_all();
    }

    /// All permits are back: no handler runs.
    async fn finish_handlers(&self) {
        let crew = &self.crew;
        let all = u32::try_from(crew.options.concurrency).unwrap_or(u32::MAX);
        if timeout(crew.options.grace, crew.permits.acquire_many(all)).await.is_ok() {
            return;
        }
        for station in &self.stations {
            station.hands.stop_all();
        }
        if timeout(DROPPED, crew.permits.acquire_many(all)).await.is_err() {
            crew.warn("leave", "a handler blocks its thread and can't be dropped; its lease will run out");
        }
    }

    async fn say_goodbye(&self) {
        let crew = &self.crew;
        for station in &self.stations {
            let standing = station.standing.clone();
            let retire = Retire {
                partition: standing.partition,
                group: standing.group,
                consumer: standing.consumer,
                min_idle_ms: 0,
            };
            if let Err(error) = crew.store.run(&retire).await {
                crew.warn("leave", error);
            }
        }
        if let Err(error) = crew.store.leave(&crew.name).await {
            crew.warn("leave", error);
        }
    }
}

impl Station {
    /// Hands back own entries that were never in hand: the answer that named them was lost.
    async fn hand_back_own(self: &std::sync::Arc<Self>) -> Result<(), Error> {
        let mut after = Some(EntryId::ZERO);
        while let Some(from) = after {
            let (entries, next) = self.claim_own(from, usize::MAX).await?;
            self.take(entries, std::time::Instant::now());
            after = next;
        }
        Ok(())
    }
}

/// Waits for tasks, then ends them.
async fn ended(tasks: &mut JoinSet<()>, patience: Duration) {
    let _ = timeout(patience, async { while tasks.join_next().await.is_some() {} }).await;
    tasks.abort_all();
}
