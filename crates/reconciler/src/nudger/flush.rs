//! Was a database flushed or swapped? FLUSHDB and SWAPDB publish nothing: all their keys are gone without proof at once.
//!
//! Two signs, each within a rolling window. The database *shrank* by more than half, and the server has expired and evicted
//! too few keys to explain it. Or many keys are *missing*: gone at their due, although every notification from before is
//! answered, and those of them that the server has not expired are more than half of all that were nudged. What was due before
//! we looked at the server at all is no sign: it may have expired while nobody listened.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// What is looked back at.
const WINDOW: Duration = Duration::from_secs(10);
/// Readings are kept a little longer: a key that is missing now may have expired before it was waited for.
const KEPT: Duration = Duration::from_secs(12);
/// Fewer are no sign.
const MANY: u64 = 100;
/// Closer readings, and closer counts, are put together.
const SPACING: Duration = Duration::from_millis(500);

/// What a node says of a database.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    /// Its clock, microseconds.
    pub(super) position: u64,
    /// Keys in the database.
    pub(super) keys: u64,
    /// How many the node has expired and evicted since it was started.
    pub(super) ended: u64,
    /// Which start that was.
    pub(super) run: String,
}

/// Why a database counts as flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Shrank { from: u64, to: u64, explained: u64 },
    Missing { keys: u64, nudged: u64 },
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shrank { from, to, explained } => {
                write!(f, "it had {from} keys and has {to}, and only {explained} have expired")
            }
            Self::Missing { keys, nudged } => {
                write!(f, "{keys} of {nudged} keys that were due are gone, and have not expired")
            }
        }
    }
}

/// Counts of one stretch of time.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    nudged: u64,
    proven: u64,
    missing: u64,
}

/// A state that holds for a while.
#[derive(Clone, Copy, Debug)]
struct Flushed {
    last_sign: Instant,
    walked: bool,
}

/// What is known of one feed's database.
#[derive(Debug, Default)]
pub(super) struct Track {
    readings: VecDeque<Reading>,
    /// The node's clock at the first of an unbroken row of readings, milliseconds.
    since_ms: Option<u64>,
    counts: VecDeque<(Instant, Counts)>,
    proven: u64,
    flushed: Option<Flushed>,
}

impl Track {
    /// The position of the last reading; 0 = none.
    pub(super) fn position(&self) -> u64 {
        self.readings.back().map_or(0, |reading| reading.position)
    }

    /// How many expiries our nudges have proven: the best guess where the node does not tell how many there were.
    pub(super) fn proven(&self) -> u64 {
        self.proven
    }

    /// Whether the database counts as flushed.
    pub(super) fn is_flushed(&self) -> bool {
        self.flushed.is_some()
    }

    /// What became of keys is known that were due and were nudged; for so many the nudge is the proof.
    pub(super) fn nudged(&mut self, now: Instant, nudged: u64, proven: u64) {
        self.proven += proven;
        self.count(now, Counts { nudged, proven, missing: 0 });
    }

    /// The node was asked. Answers a sign.
    pub(super) fn read(&mut self, reading: Reading) -> Option<Sign> {
        if reading.position <= self.position() {
            return None; // Another of our tasks was quicker.
        }
        while self.readings.front().is_some_and(|old| reading.at.duration_since(old.at) > KEPT) {
            self.readings.pop_front();
        }
        // Another server, or another life of it: what was before says nothing.
        if self.readings.back().is_some_and(|last| last.run != reading.run || last.ended > reading.ended) {
            self.readings.clear();
        }
        if self.readings.is_empty() {
            self.since_ms = Some(reading.position / 1000);
            self.counts.clear();
        }
        let shrank = |old: &Reading| {
            let explained = reading.ended - old.ended;
            let lost = old.keys.saturating_sub(reading.keys).saturating_sub(explained);
            let sign = Sign::Shrank { from: old.keys, to: reading.keys, explained };
            (lost > MANY && lost * 2 > old.keys).then_some(sign)
        };
        let sign = self.readings.iter().find_map(shrank);
        let close = |old: &Reading| reading.at.duration_since(old.at) < SPACING;
        if sign.is_some() {
            self.readings.clear(); // One flush is one sign.
        } else if self.readings.iter().nth_back(1).is_some_and(close) {
            self.readings.pop_back();
        }
        self.readings.push_back(reading);
        sign
    }

    /// Keys with these deadlines, unix milliseconds, are missing. Answers a sign.
    pub(super) fn missing(&mut self, now: Instant, dues_ms: &[u64]) -> Option<Sign> {
        let since_ms = self.since_ms?;
        let missing = dues_ms.iter().filter(|&&due_ms| due_ms >= since_ms).count() as u64;
        self.count(now, Counts { missing, ..Counts::default() });
        let mut sum = Counts::default();
        for (_, counts) in &self.counts {
            sum.nudged += counts.nudged;
            sum.proven += counts.proven;
            sum.missing += counts.missing;
        }
        let ended = |reading: Option<&Reading>| reading.map_or(0, |reading| reading.ended);
        let explained = ended(self.readings.back()) - ended(self.readings.front());
        // What expired unheard is no loss. Some are always deleted without a word in a gap: they must not cost the others their
        // timeouts.
        let lost = (sum.missing + sum.proven).saturating_sub(explained).min(sum.missing);
        let sign = Sign::Missing { keys: lost, nudged: sum.nudged };
        (lost > MANY && lost * 2 > sum.nudged).then_some(sign)
    }

    /// A sign was seen: the database counts as flushed. True when it did not before.
    pub(super) fn declare(&mut self, now: Instant) -> bool {
        let walked = self.flushed.is_some_and(|flushed| flushed.walked);
        self.flushed.replace(Flushed { last_sign: now, walked }).is_none()
    }

    /// The walk over its keys has ended.
    pub(super) fn walked(&mut self) {
        self.flushed.iter_mut().for_each(|flushed| flushed.walked = true);
    }

    /// Ends the state when its time is over; true when it ends now.
    pub(super) fn end(&mut self, now: Instant) -> bool {
        let over = |flushed: &mut Flushed| flushed.walked && now.duration_since(flushed.last_sign) >= WINDOW;
        self.flushed.take_if(over).is_some()
    }

    fn count(&mut self, now: Instant, more: Counts) {
        while self.counts.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            self.counts.pop_front();
        }
        if self.counts.back().is_none_or(|(at, _)| now.duration_since(*at) >= SPACING) {
            self.counts.push_back((now, Counts::default()));
        }
        if let Some((_, counts)) = self.counts.back_mut() {
            counts.nudged += more.nudged;
            counts.proven += more.proven;
            counts.missing += more.missing;
        }
    }
}

#[cfg(test)]
mod tests;
