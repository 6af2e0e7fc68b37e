//! What the nudges of one partition report.

use std::collections::BTreeMap;
use std::time::Duration;

use overdue_protocol::call::SettledWord;
use overdue_protocol::watch::Seen;
use overdue_telemetry::label::{NudgeResult, SettledBy, Source, UnprovenResult};
use overdue_telemetry::{Counter, Gauge, Histogram, Metric};
use overdue_watch::{Looked, Outcome};

/// Handles to the metrics of a queue.
pub(super) struct Metrics {
    queue: String,
    took: Histogram,
    batch: Histogram,
    fired: Counter,
    lateness: Histogram,
    /// Keys at the barrier.
    pub(super) waiting: Share,
    /// Overdue members of no rule of ours.
    pub(super) strays: Share,
    pub(super) strays_removed: Counter,
}

/// What came of the keys of a page: a series is looked up by its labels, which takes longer than the rest of a nudge, so
/// each is written once.
#[derive(Default)]
pub(super) struct Tally {
    results: BTreeMap<NudgeResult, u64>,
    words: BTreeMap<&'static str, u64>,
}

/// One partition's part of a gauge that is of the whole queue.
pub(super) struct Share {
    gauge: Gauge,
    mine: u64,
}

impl Share {
    /// So many are of this partition now.
    pub(super) fn set(&mut self, now: u64) {
        self.gauge.increment(now as f64 - self.mine as f64);
        self.mine = now;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Metrics {
    pub(super) fn new(queue: &str) -> Self {
        let share = |metric: Metric| Share { gauge: metric.gauge(&[queue]), mine: 0 };
        Self {
            took: Metric::NudgeSeconds.histogram(&[queue]),
            batch: Metric::WatchBatch.histogram(&[SettledBy::Nudge.as_str()]),
            fired: Metric::Fired.counter(&[queue, Source::Index.as_str()]),
            lateness: Metric::Lateness.histogram(&[queue, Source::Index.as_str()]),
            waiting: share(Metric::NudgesWaiting),
            strays: share(Metric::Strays),
            strays_removed: Metric::StraysRemoved.counter(&[queue]),
            queue: queue.to_owned(),
        }
    }

    /// A page of nudges was answered.
    pub(super) fn page(&self, took: Duration, keys: usize) {
        self.took.record(took.as_secs_f64());
        self.batch.record(keys as f64);
    }

    /// One key was nudged that the index had due at `due_ms`.
    pub(super) fn nudged(&self, tally: &mut Tally, looked: &Looked, due_ms: u64) {
        let result = match (looked.seen, looked.word) {
            (Seen::Proven, Some(word)) if word.is_fired() => {
                self.fire(if looked.due_ms > 0 { looked.due_ms } else { due_ms }, looked.now_ms);
                NudgeResult::Fired
            }
            (Seen::Proven, Some(SettledWord::Dup | SettledWord::Paid)) => NudgeResult::Known,
            (Seen::Due(_) | Seen::Forever, Some(SettledWord::Ok)) => NudgeResult::Alive,
            (Seen::Gone, _) => NudgeResult::Gone,
            _ => NudgeResult::Again,
        };
        *tally.results.entry(result).or_default() += 1;
        if let Some(word) = looked.word {
            *tally.words.entry(word.as_str()).or_default() += 1;
        }
    }

    /// All keys of a page were counted.
    pub(super) fn counted(&self, tally: Tally) {
        tally.results.into_iter().for_each(|(result, count)| self.nudges(result, count));
        tally.words.into_iter().for_each(|(word, count)| settled(word, count));
    }

    /// One key that was gone at its due was settled.
    pub(super) fn unproven(&self, outcome: &Outcome, flushed: bool) {
        let result = match outcome.word {
            SettledWord::Unproven => {
                self.fire(outcome.due_ms, outcome.now_ms);
                UnprovenResult::Fired
            }
            SettledWord::Dropped if flushed => UnprovenResult::Flushed,
            SettledWord::Dropped => UnprovenResult::Dropped,
            _ => UnprovenResult::Known,
        };
        self.settled(result, 1);
        settled(outcome.word.as_str(), 1);
    }

    /// So many nudges came to this.
    pub(super) fn nudges(&self, result: NudgeResult, count: u64) {
        Metric::Nudges.count(count, &[&self.queue, result.as_str()]);
    }

    /// So many keys that were gone at their due came to this.
    pub(super) fn settled(&self, result: UnprovenResult, count: u64) {
        Metric::Unproven.count(count, &[&self.queue, result.as_str()]);
    }

    fn fire(&self, due_ms: u64, now_ms: u64) {
        self.fired.increment(1);
        self.lateness.record(now_ms.saturating_sub(due_ms) as f64 / 1000.0);
    }
}

fn settled(word: &'static str, count: u64) {
    Metric::WatchSettled.count(count, &[SettledBy::Nudge.as_str(), word]);
}
