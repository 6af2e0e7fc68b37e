//! Who armed, fired and handled what: counted from outside, from what the processes and Redis say.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use hdrhistogram::Histogram;
use overdue_protocol::Generation;
use overdue_protocol::entry::Source;

use crate::stage::journal::Line;

/// Something that was seen.
pub(super) enum Event {
    /// A consumer wrote a line.
    Journal { consumer: usize, line: Line },
    /// An entry entered the stream.
    Entry { generation: Generation, source: Source, due_ms: u64, fired_ms: u64, addressed: bool },
    /// The plain listener heard of a key.
    Heard { key: Bytes, at_us: u64 },
}

/// What is known of one armed timer.
#[derive(Default)]
struct Timer {
    entries: u64,
    source: Option<Source>,
    starts: u32,
    ends: u32,
}

/// The counts so far.
pub(super) struct Score {
    timers: HashMap<Generation, Timer>,
    /// Keys of keyed timers: when they end, and when the plain listener first heard of them, by how many µs too late.
    keys: HashMap<Bytes, (u64, Option<u64>)>,
    /// Handlers under way: when they started, too late by so many µs.
    running: HashMap<(usize, Generation), u64>,
    early: HashSet<Generation>,
    /// Entries of generations that nobody armed.
    strange: u64,
    handled: u64,
    lateness: Histogram<u64>,
}

/// One after the other, as they stand in the table.
pub(super) struct Counts {
    pub(super) armed: u64,
    pub(super) keyed: u64,
    pub(super) fired: u64,
    pub(super) by_index: u64,
    pub(super) by_notification: u64,
    /// Entries seen that were not the first of their generation, or of none that was armed.
    pub(super) duplicates: u64,
    pub(super) handled: u64,
    /// Handled to the end more than once: the acknowledgement died with its process.
    pub(super) twice: u64,
    /// Started, cut off, and started again.
    pub(super) restarted: u64,
    pub(super) lost: u64,
    pub(super) early: u64,
    /// From due to the start of the handler that finished first, µs.
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
    /// Keys of keyed timers that the plain listener heard of, and how late: their p50, µs.
    pub(super) heard: u64,
    pub(super) heard_p50_us: Option<u64>,
}

impl Score {
    /// With what was armed: generations, and keys with the end of their TTL in unix ms.
    pub(super) fn new(
        armed: impl IntoIterator<Item = Generation>,
        keys: impl IntoIterator<Item = (Bytes, u64)>,
    ) -> Self {
        Self {
            timers: armed.into_iter().map(|generation| (generation, Timer::default())).collect(),
            keys: keys.into_iter().map(|(key, due_ms)| (key, (due_ms, None))).collect(),
            running: HashMap::new(),
            early: HashSet::new(),
            strange: 0,
            handled: 0,
            lateness: Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("bounds of ours"),
        }
    }

    /// Takes something in.
    pub(super) fn note(&mut self, event: Event) {
        match event {
            Event::Journal { consumer, line: Line::Started { generation, due_ms, source, at_us } } => {
                self.started(consumer, generation, due_ms, source, at_us);
            }
            Event::Journal { consumer, line: Line::Ended { generation } } => self.ended(consumer, generation),
            // A retry of an attempt that died or was given back: no second firing.
            Event::Entry { addressed: true, .. } => {}
            Event::Entry { generation, source, due_ms, fired_ms, .. } => {
                if fired_ms < due_ms {
                    self.early.insert(generation);
                }
                match self.timers.get_mut(&generation) {
                    Some(timer) => {
                        timer.entries += 1;
                        timer.source = Some(source);
                    }
                    None => self.strange += 1,
                }
            }
            Event::Heard { key, at_us } => {
                if let Some((due_ms, late @ None)) = self.keys.get_mut(&key) {
                    *late = Some(at_us.saturating_sub(*due_ms * 1_000));
                }
            }
        }
    }

    fn started(&mut self, consumer: usize, generation: Generation, due_ms: u64, source: Source, at_us: u64) {
        let due_us = due_ms * 1_000;
        if at_us < due_us {
            self.early.insert(generation);
        }
        if let Some(timer) = self.timers.get_mut(&generation) {
            timer.starts += 1;
            timer.source.get_or_insert(source);
            self.running.insert((consumer, generation), at_us.saturating_sub(due_us));
        }
    }

    fn ended(&mut self, consumer: usize, generation: Generation) {
        let Some(timer) = self.timers.get_mut(&generation) else { return };
        timer.ends += 1;
        let late = self.running.remove(&(consumer, generation));
        if timer.ends == 1 {
            self.handled += 1;
            self.lateness.saturating_record(late.unwrap_or(0).max(1));
        }
    }

    /// How many timers were armed.
    pub(super) fn armed(&self) -> u64 {
        self.timers.len() as u64
    }

    /// How many of them were handled.
    pub(super) fn handled(&self) -> u64 {
        self.handled
    }

    /// How many keys the plain listener heard of, of those that are due at `now_us`.
    pub(super) fn heard(&self, now_us: u64) -> (usize, usize) {
        let due = self.keys.values().filter(|(due_ms, _)| due_ms * 1_000 <= now_us);
        due.fold((0, 0), |(heard, due), (_, late)| (heard + usize::from(late.is_some()), due + 1))
    }

    /// All of it. `entries` is Redis' own count of entries that were fired, where it keeps one: what no follower
    /// can miss.
    pub(super) fn counts(&self, entries: Option<u64>) -> Counts {
        let count =
            |of: &dyn Fn(&Timer) -> bool| self.timers.values().filter(|timer| of(timer)).count() as u64;
        let fired = count(&|timer| timer.source.is_some());
        let seen =
            self.timers.values().map(|timer| timer.entries.saturating_sub(1)).sum::<u64>() + self.strange;
        let mut heard: Vec<u64> = self.keys.values().filter_map(|(_, late)| *late).collect();
        heard.sort_unstable();
        let at = |quantile| self.lateness.value_at_quantile(quantile);
        Counts {
            armed: self.armed(),
            keyed: self.keys.len() as u64,
            fired,
            by_index: count(&|timer| timer.source == Some(Source::Index)),
            by_notification: count(&|timer| timer.source == Some(Source::Notification)),
            duplicates: entries.map_or(seen, |entries| entries.saturating_sub(fired).max(seen)),
            handled: self.handled,
            twice: count(&|timer| timer.ends > 1),
            restarted: count(&|timer| timer.starts > 1 && timer.ends == 1),
            lost: self.armed() - self.handled,
            early: self.early.len() as u64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: self.lateness.max(),
            heard: heard.len() as u64,
            heard_p50_us: heard.get(heard.len() / 2).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(generation: Generation, addressed: bool) -> Event {
        Event::Entry { generation, source: Source::Index, due_ms: 10, fired_ms: 11, addressed }
    }

    fn started(consumer: usize, generation: Generation, at_us: u64) -> Event {
        let line = Line::Started { generation, due_ms: 10, source: Source::Index, at_us };
        Event::Journal { consumer, line }
    }

    fn ended(consumer: usize, generation: Generation) -> Event {
        Event::Journal { consumer, line: Line::Ended { generation } }
    }

    #[test]
    fn a_handler_that_was_cut_off_is_no_second_handling() {
        let mut score = Score::new([1, 2, 3], []);
        // 1: cut off and done by another. 2: done twice. 3: never done.
        let events = [
            entry(1, false),
            started(0, 1, 12_000),
            entry(1, true),
            started(1, 1, 2_010_000),
            ended(1, 1),
            entry(2, false),
            started(0, 2, 11_000),
            ended(0, 2),
            started(1, 2, 2_011_000),
            ended(1, 2),
            entry(3, false),
        ];
        events.into_iter().for_each(|event| score.note(event));
        let counts = score.counts(Some(3));
        assert_eq!((counts.fired, counts.handled, counts.lost), (3, 2, 1));
        assert_eq!((counts.twice, counts.restarted, counts.duplicates, counts.early), (1, 1, 0, 0));
        assert!(counts.p50_us.abs_diff(1_000) <= 1 && counts.max_us.abs_diff(2_000_000) <= 2_000);
    }

    #[test]
    fn duplicates_are_found_by_the_follower_and_by_redis_own_count() {
        let mut score = Score::new([1], []);
        [entry(1, false), entry(1, false), entry(9, false)].into_iter().for_each(|event| score.note(event));
        assert_eq!(score.counts(None).duplicates, 2);
        assert_eq!(score.counts(Some(5)).duplicates, 4);
    }

    #[test]
    fn early_is_early_whoever_saw_it() {
        let mut score = Score::new([1, 2], []);
        score.note(Event::Entry {
            generation: 1,
            source: Source::Index,
            due_ms: 10,
            fired_ms: 9,
            addressed: false,
        });
        score.note(started(0, 2, 9_999));
        assert_eq!(score.counts(None).early, 2);
    }

    #[test]
    fn the_plain_listener_counts_for_the_keyed_timers_only() {
        let keys = [(Bytes::from("a"), 10), (Bytes::from("b"), 20)];
        let mut score = Score::new([], keys);
        for (key, at_us) in [("a", 15_000), ("a", 99_000), ("other", 1)] {
            score.note(Event::Heard { key: Bytes::from(key), at_us });
        }
        let counts = score.counts(None);
        assert_eq!((counts.keyed, counts.heard, counts.heard_p50_us), (2, 1, Some(5_000)));
        assert_eq!(score.heard(15_000), (1, 1));
    }
}
