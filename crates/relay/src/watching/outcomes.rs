//! What became of watched keys: counted.

use std::collections::BTreeMap;

use overdue_protocol::QueueName;
use overdue_protocol::call::SettledWord;
use overdue_protocol::watch::{Rule, Seen};
use overdue_telemetry::label::{SettledBy, Source, SuppressedReason};
use overdue_telemetry::{Histogram, Metric};
use overdue_watch::{Fire, Looked, Outcome};

/// The counts of one batch: each series is written once.
#[derive(Default)]
struct Counts {
    words: BTreeMap<&'static str, u64>,
    /// How many of a queue have fired; how late, goes to the histogram.
    fired: BTreeMap<QueueName, (u64, Histogram)>,
    suppressed: BTreeMap<(QueueName, SuppressedReason), u64>,
}

/// What events have fired.
pub(super) fn fired(fires: &[Fire], outcomes: &[Outcome]) {
    let mut counts = Counts::default();
    for (fire, outcome) in fires.iter().zip(outcomes) {
        counts.add(&fire.rule, outcome.word, outcome.due_ms, outcome.now_ms, Source::Notification);
        if let Some(reason) = suppressed(outcome.word) {
            *counts.suppressed.entry((fire.rule.queue.clone(), reason)).or_default() += 1;
        }
    }
    counts.write(SettledBy::Event, Source::Notification);
}

/// What looks have found; answers how many deadlines.
pub(super) fn looked(looked: &[Looked]) -> u64 {
    let mut counts = Counts::default();
    let mut found = 0;
    for one in looked {
        let Some(word) = one.word else { continue };
        let rule = &one.ask.rule;
        counts.add(rule, word, one.due_ms, one.now_ms, Source::Index);
        if let (Seen::Due(_), SettledWord::Ok) = (one.seen, word) {
            found += 1;
        }
    }
    counts.write(SettledBy::Look, Source::Index);
    found
}

/// Why an event put nothing into the stream.
fn suppressed(word: SettledWord) -> Option<SuppressedReason> {
    match word {
        SettledWord::Dup | SettledWord::Paid => Some(SuppressedReason::Known),
        SettledWord::Old => Some(SuppressedReason::Old),
        _ => None,
    }
}

impl Counts {
    fn add(&mut self, rule: &Rule, word: SettledWord, due_ms: u64, now_ms: u64, source: Source) {
        *self.words.entry(word.as_str()).or_default() += 1;
        if !word.is_fired() {
            return;
        }
        let (count, lateness) = self
            .fired
            .entry(rule.queue.clone())
            .or_insert_with(|| (0, Metric::Lateness.histogram(&[rule.queue.as_str(), source.as_str()])));
        *count += 1;
        // Of a key that nobody had looked at, nobody knows when it was due.
        if due_ms > 0 {
            lateness.record(now_ms.saturating_sub(due_ms) as f64 / 1000.0);
        }
    }

    fn write(self, by: SettledBy, source: Source) {
        let all: u64 = self.words.values().sum();
        if all > 0 {
            Metric::WatchBatch.observe(all as f64, &[by.as_str()]);
        }
        for (word, count) in self.words {
            Metric::WatchSettled.count(count, &[by.as_str(), word]);
        }
        for ((queue, reason), count) in self.suppressed {
            Metric::Suppressed.count(count, &[queue.as_str(), reason.as_str()]);
        }
        for (queue, (count, _)) in self.fired {
            Metric::Fired.count(count, &[queue.as_str(), source.as_str()]);
        }
    }
}
