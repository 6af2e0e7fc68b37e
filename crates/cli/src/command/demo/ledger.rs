//! What became of timers, or of plain keys: each has one id, and is to fire and to be handled once.

use std::collections::HashMap;

use overdue_protocol::Generation;
use overdue_protocol::entry::{Proof, Source};

use crate::stage::lateness::Lateness;

/// An entry that was fired, no retry.
pub(super) struct Fired {
    pub(super) generation: Generation,
    pub(super) source: Source,
    pub(super) due_ms: u64,
    pub(super) fired_ms: u64,
    pub(super) proof: Option<Proof>,
}

/// One of them.
struct Item {
    due_ms: u64,
    /// Known from the start for a timer, with its first entry for a key.
    generation: Option<Generation>,
    entries: u64,
    /// Entries of another generation than the one that was armed, or that came first.
    strange: u64,
    source: Option<Source>,
    unproven: bool,
    early: bool,
    starts: u32,
    ends: u32,
}

/// All of them. Whatever has another id is not theirs.
#[derive(Default)]
pub(super) struct Ledger {
    items: HashMap<String, Item>,
    /// Handlers under way, by consumer: when they started, unix µs.
    running: HashMap<(usize, String), u64>,
    handled: u64,
    lateness: Lateness,
}

/// One after the other, as they stand in the table.
#[derive(Clone, Default)]
pub(super) struct Tally {
    pub(super) expected: u64,
    pub(super) fired: u64,
    pub(super) by_index: u64,
    pub(super) by_notification: u64,
    /// Fired although nothing proved that the key had expired.
    pub(super) unproven: u64,
    /// Entries that were not the first of their id, or of a generation that nobody armed.
    pub(super) duplicates: u64,
    pub(super) handled: u64,
    /// Handled to the end more than once: the acknowledgement died with its process.
    pub(super) twice: u64,
    /// Started, cut off, and started again.
    pub(super) restarted: u64,
    pub(super) lost: u64,
    pub(super) early: u64,
    /// From due to the start of the handler that finished first, µs; 0 when nothing was handled.
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
}

impl Ledger {
    /// With all that is to fire: id, when it is due, and the generation where it is known.
    pub(super) fn new(items: impl IntoIterator<Item = (String, u64, Option<Generation>)>) -> Self {
        let item = |due_ms, generation| Item {
            due_ms,
            generation,
            entries: 0,
            strange: 0,
            source: None,
            unproven: false,
            early: false,
            starts: 0,
            ends: 0,
        };
        let items = items.into_iter().map(|(id, due_ms, generation)| (id, item(due_ms, generation)));
        Self { items: items.collect(), ..Self::default() }
    }

    /// Takes in an entry; whether it is of one of these.
    pub(super) fn fired(&mut self, id: &str, fired: &Fired) -> bool {
        let Some(item) = self.items.get_mut(id) else { return false };
        if *item.generation.get_or_insert(fired.generation) == fired.generation {
            item.entries += 1;
            item.source = Some(fired.source);
        } else {
            item.strange += 1;
        }
        item.unproven |= fired.proof == Some(Proof::Unproven);
        item.early |= fired.fired_ms < fired.due_ms;
        true
    }

    /// A handler has started.
    pub(super) fn started(&mut self, consumer: usize, id: String, source: Source, at_us: u64) {
        let Some(item) = self.items.get_mut(&id) else { return };
        item.starts += 1;
        item.source.get_or_insert(source);
        item.early |= at_us < item.due_ms * 1_000;
        self.running.insert((consumer, id), at_us);
    }

    /// A handler is done.
    pub(super) fn ended(&mut self, consumer: usize, id: String) {
        let Some(item) = self.items.get_mut(&id) else { return };
        item.ends += 1;
        let first = item.ends == 1;
        if let Some(at_us) = self.running.remove(&(consumer, id))
            && first
        {
            self.handled += 1;
            self.lateness.note(item.due_ms, at_us);
        }
    }

    /// How many there are.
    pub(super) fn expected(&self) -> u64 {
        self.items.len() as u64
    }

    /// How many were handled.
    pub(super) fn handled(&self) -> u64 {
        self.handled
    }

    /// Whether all were handled.
    pub(super) fn is_done(&self) -> bool {
        self.handled() == self.expected()
    }

    /// All of it.
    pub(super) fn tally(&self) -> Tally {
        let count = |of: &dyn Fn(&Item) -> bool| self.items.values().filter(|item| of(item)).count() as u64;
        let at = |quantile| self.lateness.at(quantile).unwrap_or(0);
        Tally {
            expected: self.expected(),
            fired: count(&|item| item.source.is_some()),
            by_index: count(&|item| item.source == Some(Source::Index)),
            by_notification: count(&|item| item.source == Some(Source::Notification)),
            unproven: count(&|item| item.unproven),
            duplicates: self.items.values().map(|item| item.entries.saturating_sub(1) + item.strange).sum(),
            handled: self.handled,
            twice: count(&|item| item.ends > 1),
            restarted: count(&|item| item.starts > 1 && item.ends == 1),
            lost: self.expected() - self.handled,
            early: count(&|item| item.early),
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: at(1.0),
        }
    }

    /// When the one with this id is due, unix ms.
    pub(super) fn due_ms(&self, id: &str) -> Option<u64> {
        Some(self.items.get(id)?.due_ms)
    }

    /// How many are due at `now_us`.
    pub(super) fn due(&self, now_us: u64) -> usize {
        self.items.values().filter(|item| item.due_ms * 1_000 <= now_us).count()
    }
}
