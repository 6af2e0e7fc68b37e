//! Who armed, fired, handled and heard what: counted from outside, from what the processes and Redis say.

use std::collections::HashSet;

use bytes::Bytes;

use super::ledger::{Fired, Ledger, Tally};
use crate::stage::journal::Line;
use crate::stage::lateness::Lateness;

/// Something that was seen.
pub(super) enum Event {
    /// A consumer wrote a line.
    Journal { consumer: usize, line: Line },
    /// An entry entered the stream.
    Entry { id: String, fired: Fired },
    /// A plain listener heard of a key.
    Heard { listener: Listener, key: Bytes, at_us: u64 },
}

/// A plain keyspace listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    /// On the Redis where relays watch the keys, and so make Redis end them on time.
    Beside,
    /// On a Redis that nobody watches.
    Alone,
}

/// What a plain listener heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) seen: u64,
    /// How late, of those it heard of, µs; `None` when it heard of none.
    pub(super) p50_us: Option<u64>,
}

/// The counts so far.
pub(super) struct Score {
    timers: Ledger,
    keys: Ledger,
    /// Entries of ids that are neither.
    strange: u64,
    beside: Ear,
    alone: Ear,
}

/// What a plain listener has heard so far: when it first heard of each key.
#[derive(Default)]
struct Ear {
    heard: HashSet<Bytes>,
    lateness: Lateness,
}

/// The counts at the end.
pub(super) struct Counts {
    pub(super) timers: Tally,
    pub(super) keys: Tally,
    /// Entries that should not be, of timers and keys, by what was seen and by Redis' own count.
    pub(super) duplicates: u64,
    pub(super) beside: Heard,
    pub(super) alone: Heard,
}

impl Score {
    /// With what was armed and what was written.
    pub(super) fn new(timers: Ledger, keys: Ledger) -> Self {
        Self { timers, keys, strange: 0, beside: Ear::default(), alone: Ear::default() }
    }

    /// Takes something in.
    pub(super) fn note(&mut self, event: Event) {
        match event {
            Event::Journal { consumer, line: Line::Started { source, at_us, id } } => {
                self.ledger(&id).started(consumer, id, source, at_us);
            }
            Event::Journal { consumer, line: Line::Ended { id } } => self.ledger(&id).ended(consumer, id),
            Event::Entry { id, fired } => {
                let known = self.ledger(&id).fired(&id, &fired);
                self.strange += u64::from(!known);
            }
            Event::Heard { listener, key, at_us } => {
                let Some(due_ms) = std::str::from_utf8(&key).ok().and_then(|id| self.keys.due_ms(id)) else {
                    return;
                };
                let ear = match listener {
                    Listener::Beside => &mut self.beside,
                    Listener::Alone => &mut self.alone,
                };
                if ear.heard.insert(key) {
                    ear.lateness.note(due_ms, at_us);
                }
            }
        }
    }

    fn ledger(&mut self, id: &str) -> &mut Ledger {
        if self.keys.due_ms(id).is_some() { &mut self.keys } else { &mut self.timers }
    }

    /// The timers.
    pub(super) fn timers(&self) -> &Ledger {
        &self.timers
    }

    /// The plain keys.
    pub(super) fn keys(&self) -> &Ledger {
        &self.keys
    }

    /// Of how many keys the plain listener on the Redis that nobody watches has heard, so far.
    pub(super) fn heard_alone(&self) -> u64 {
        self.alone.lateness.len()
    }

    /// All of it. `entries` is Redis' own count of entries that were fired, where it keeps one: what no follower
    /// can miss.
    pub(super) fn counts(&self, entries: Option<u64>) -> Counts {
        let (timers, keys) = (self.timers.tally(), self.keys.tally());
        let seen = timers.duplicates + keys.duplicates + self.strange;
        let more = entries.map_or(0, |entries| entries.saturating_sub(timers.fired + keys.fired));
        let heard = |ear: &Ear| Heard { seen: ear.lateness.len(), p50_us: ear.lateness.at(0.5) };
        let (beside, alone) = (heard(&self.beside), heard(&self.alone));
        Counts { timers, keys, duplicates: seen.max(more), beside, alone }
    }
}

#[cfg(test)]
mod tests {
    use overdue_protocol::entry::{Proof, Source};

    use super::*;

    fn score() -> Score {
        let timers = [("t1", 1), ("t2", 2), ("t3", 3)].map(|(id, gen_)| (id.to_owned(), 10, Some(gen_)));
        let keys = ["k1", "k2"].map(|id| (id.to_owned(), 10, None));
        Score::new(Ledger::new(timers), Ledger::new(keys))
    }

    fn entry(id: &str, generation: u64) -> Event {
        let fired = Fired { generation, source: Source::Index, due_ms: 10, fired_ms: 11, proof: None };
        Event::Entry { id: id.to_owned(), fired }
    }

    fn started(consumer: usize, id: &str, at_us: u64) -> Event {
        let line = Line::Started { source: Source::Index, at_us, id: id.to_owned() };
        Event::Journal { consumer, line }
    }

    fn ended(consumer: usize, id: &str) -> Event {
        Event::Journal { consumer, line: Line::Ended { id: id.to_owned() } }
    }

    fn after(events: impl IntoIterator<Item = Event>) -> Score {
        let mut score = score();
        events.into_iter().for_each(|event| score.note(event));
        score
    }

    #[test]
    fn a_handler_that_was_cut_off_is_no_second_handling() {
        // t1: cut off and done by another. t2: done twice. t3: never done.
        let counts = after([
            entry("t1", 1),
            started(0, "t1", 12_000),
            started(1, "t1", 2_010_000),
            ended(1, "t1"),
            entry("t2", 2),
            started(0, "t2", 11_000),
            ended(0, "t2"),
            started(1, "t2", 2_011_000),
            ended(1, "t2"),
            entry("t3", 3),
        ])
        .counts(Some(3));
        let timers = &counts.timers;
        assert_eq!((timers.fired, timers.handled, timers.lost), (3, 2, 1));
        assert_eq!((timers.twice, timers.restarted, counts.duplicates, timers.early), (1, 1, 0, 0));
        assert!(timers.p50_us.abs_diff(1_000) <= 1 && timers.max_us.abs_diff(2_000_000) <= 2_000);
    }

    #[test]
    fn a_key_that_fires_twice_is_a_duplicate_whatever_its_generation() {
        let counts = after([entry("k1", 7), entry("k1", 8), entry("k2", 9), entry("k2", 9)]).counts(None);
        assert_eq!((counts.keys.fired, counts.keys.duplicates, counts.duplicates), (2, 2, 2));
        assert_eq!(counts.keys.lost, 2);
    }

    #[test]
    fn a_generation_that_nobody_armed_is_a_duplicate() {
        assert_eq!(after([entry("t1", 9)]).counts(None).duplicates, 1);
        assert_eq!(after([entry("t1", 9), entry("t1", 1)]).counts(None).duplicates, 1);
    }

    #[test]
    fn duplicates_are_found_by_the_follower_and_by_redis_own_count() {
        let score = after([entry("t1", 1), entry("t1", 1), entry("unknown", 9)]);
        assert_eq!(score.counts(None).duplicates, 2);
        assert_eq!(score.counts(Some(5)).duplicates, 4);
    }

    #[test]
    fn early_is_early_whoever_saw_it() {
        let early = Fired { generation: 1, source: Source::Index, due_ms: 10, fired_ms: 9, proof: None };
        let counts = after([Event::Entry { id: "t1".into(), fired: early }, started(0, "k2", 9_999)]);
        let counts = counts.counts(None);
        assert_eq!((counts.timers.early, counts.keys.early), (1, 1));
    }

    #[test]
    fn what_nothing_proved_is_counted() {
        let proof = Some(Proof::Unproven);
        let fired = Fired { generation: 1, source: Source::Index, due_ms: 10, fired_ms: 11, proof };
        assert_eq!(after([Event::Entry { id: "k1".into(), fired }]).counts(None).keys.unproven, 1);
    }

    #[test]
    fn plain_listeners_count_for_the_plain_keys_only() {
        let heard = |listener, key: &str, at_us| Event::Heard { listener, key: key.to_owned().into(), at_us };
        let counts = after([
            heard(Listener::Alone, "k1", 15_000),
            heard(Listener::Alone, "k1", 99_000),
            heard(Listener::Alone, "session:1", 1),
            heard(Listener::Beside, "t1", 1),
        ])
        .counts(None);
        assert_eq!((counts.alone.seen, counts.beside), (1, Heard { seen: 0, p50_us: None }));
        assert!(counts.alone.p50_us.is_some_and(|late| late.abs_diff(5_000) <= 5));
    }
}
