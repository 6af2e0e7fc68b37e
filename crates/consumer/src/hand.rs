//! What this process holds of one partition: read or claimed, and not settled with Redis yet.
//!
//! An entry goes through these states; it is in the map until Redis has answered what became of it and its task is
//! gone, and while it is there it is never started again.
//!
//! ```text
//! Running --outcome--> Deciding --answered--> (out)
//!    |---lease lost--> Dropped --task gone--> (out, and own entries are looked for)
//!    `---shutdown----> Stopping --task gone--> Deciding (a release)
//! ```
//!
//! The map is locked once for a page or a batch, not once for an entry.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use overdue_protocol::entry::EntryId;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// One stay of an entry in the map; an entry that was lost and comes back has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) entry: EntryId,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its handler runs.
    Running,
    /// Its outcome is on the way to Redis.
    Deciding,
    /// Its lease is lost; its task is being dropped.
    Dropped,
    /// The process ends; its task is being dropped.
    Stopping,
}

struct Hold {
    number: u64,
    state: State,
    leased_until: Instant,
    task: Option<AbortHandle>,
    lost: Option<CancellationToken>,
}

impl Hold {
    /// Tells the handler, and drops it.
    fn stop(&mut self, state: State) {
        self.state = state;
        if let Some(lost) = &self.lost {
            lost.cancel();
        }
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

#[derive(Default)]
pub(crate) struct Hands {
    held: Mutex<Held>,
    /// Told whenever something left the map.
    pub(crate) room: Notify,
    /// The same, for all who wait for it.
    left: Notify,
}

#[derive(Default)]
struct Held {
    holds: HashMap<EntryId, Hold>,
    last: u64,
}

impl Held {
    fn of(&mut self, ticket: Ticket) -> Option<&mut Hold> {
        self.holds.get_mut(&ticket.entry).filter(|hold| hold.number == ticket.number)
    }

    fn remove(&mut self, ticket: Ticket) -> bool {
        self.of(ticket).is_some() && self.holds.remove(&ticket.entry).is_some()
    }
}

impl Hands {
    /// Takes entries in; `None` for each that is in hand already.
    pub(crate) fn admit(
        &self,
        entries: impl Iterator<Item = (EntryId, State)>,
        leased_until: Instant,
    ) -> Vec<Option<Ticket>> {
        let mut held = self.lock();
        let held = &mut *held;
        let admit = |(entry, state): (EntryId, State)| {
            if let Some(hold) = held.holds.get_mut(&entry) {
                if hold.state == State::Running {
                    hold.leased_until = leased_until;
                }
                return None;
            }
            held.last += 1;
            let number = held.last;
            held.holds.insert(entry, Hold { number, state, leased_until, task: None, lost: None });
            Some(Ticket { entry, number })
        };
        entries.map(admit).collect()
    }

    /// Notes the tasks that were started for entries just admitted.
    pub(crate) fn attach(&self, tasks: impl Iterator<Item = (Ticket, AbortHandle)>) {
        let mut held = self.lock();
        for (ticket, task) in tasks {
            match held.of(ticket) {
                // Lost before the task was known here.
                Some(Hold { state: State::Dropped | State::Stopping, .. }) => task.abort(),
                Some(hold) => hold.task = Some(task),
                // It was quicker.
                None => {}
            }
        }
    }

    /// Keeps the outcomes that still count, and notes that they are on the way. The others are out of hand;
    /// answers whether there were any.
    pub(crate) fn decide<V>(&self, outcomes: &mut Vec<V>, ticket: impl Fn(&V) -> Ticket) -> bool {
        let before = outcomes.len();
        let mut held = self.lock();
        outcomes.retain(|outcome| {
            let ticket = ticket(outcome);
            match held.of(ticket) {
                None => false,
                Some(Hold { state: State::Dropped, .. }) => {
                    held.remove(ticket);
                    false
                }
                Some(hold) => {
                    hold.state = State::Deciding;
                    true
                }
            }
        });
        drop(held);
        let some = outcomes.len() < before;
        if some {
            self.tell();
        }
        some
    }

    /// Redis has answered: they are out of hand.
    pub(crate) fn settle(&self, tickets: impl Iterator<Item = Ticket>) {
        let mut held = self.lock();
        for ticket in tickets {
            held.remove(ticket);
        }
        drop(held);
        self.tell();
    }

    /// Waits until nothing is in hand.
    pub(crate) async fn empty(&self) {
        loop {
            let mut left = pin!(self.left.notified());
            left.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            left.await;
        }
    }

    fn tell(&self) {
        self.room.notify_one();
        self.left.notify_waiters();
    }

    /// A task is gone without an outcome; answers in which state its entry was. A lost entry is out of hand now.
    pub(crate) fn task_gone(&self, ticket: Ticket) -> Option<State> {
        let mut held = self.lock();
        let state = held.of(ticket)?.state;
        if state == State::Dropped {
            held.remove(ticket);
        }
        drop(held);
        self.tell();
        Some(state)
    }

    /// Leases lost to others: drops their handlers. Whose outcome is on the way already, the answer decides.
    pub(crate) fn lose(&self, tickets: impl Iterator<Item = Ticket>) -> u64 {
        let mut held = self.lock();
        let mut lost = 0;
        for ticket in tickets {
            if let Some(hold) = held.of(ticket).filter(|hold| hold.state == State::Running) {
                hold.stop(State::Dropped);
                lost += 1;
            }
        }
        lost
    }

    /// Drops the handlers whose lease has certainly run out, because it could not be renewed.
    pub(crate) fn lose_expired(&self, now: Instant) -> u64 {
        let mut lost = 0;
        for hold in self.lock().holds.values_mut() {
            if hold.state == State::Running && hold.leased_until <= now {
                hold.stop(State::Dropped);
                lost += 1;
            }
        }
        lost
    }

    /// Drops every handler; their entries are handed back when the tasks are gone.
    pub(crate) fn stop_all(&self) {
        for hold in self.lock().holds.values_mut() {
            if hold.state == State::Running {
                hold.stop(State::Stopping);
            }
        }
    }

    /// What must be renewed.
    pub(crate) fn leased(&self) -> Vec<Ticket> {
        let held = self.lock();
        let ours = held.holds.iter().filter(|(_, hold)| hold.state != State::Dropped);
        ours.map(|(&entry, hold)| Ticket { entry, number: hold.number }).collect()
    }

    /// Leases were renewed.
    pub(crate) fn renewed(&self, tickets: &[Ticket], leased_until: Instant) {
        let mut held = self.lock();
        for &ticket in tickets {
            if let Some(hold) = held.of(ticket) {
                hold.leased_until = leased_until;
            }
        }
    }

    /// Every entry in the map.
    pub(crate) fn entries(&self) -> Vec<EntryId> {
        self.lock().holds.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().holds.len()
    }

    /// A token that is cancelled when the entry is lost or handed back. Made only when somebody asks.
    pub(crate) fn lost(&self, ticket: Ticket) -> CancellationToken {
        let mut held = self.lock();
        let Some(hold) = held.of(ticket) else {
            // It is over.
            let gone = CancellationToken::new();
            gone.cancel();
            return gone;
        };
        let lost = hold.lost.get_or_insert_with(CancellationToken::new).clone();
        if matches!(hold.state, State::Dropped | State::Stopping) {
            lost.cancel();
        }
        lost
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // No code of others runs under the lock, so what it guards is whole.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
