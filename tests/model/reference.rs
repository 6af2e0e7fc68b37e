//! The reference: what must be on the server, kept in memory.

use std::collections::BTreeMap;

use overdue_protocol::entry::EntryId;

use crate::operation::GROUPS;

/// One arming of a timer, through its whole life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timeout {
    pub(crate) name: Vec<u8>,
    pub(crate) generation: u64,
    pub(crate) due: u64,
    pub(crate) payload: String,
    pub(crate) attempt: u32,
    pub(crate) src: &'static str,
}

/// An armed timer.
#[derive(Clone, Debug)]
pub(crate) struct Armed {
    pub(crate) timeout: Timeout,
    pub(crate) keyed: bool,
    /// Whether it is due.
    pub(crate) is_due: bool,
}

/// An entry of the stream or a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) timeout: Timeout,
    pub(crate) group: Option<usize>,
}

/// A waiting retry.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) timeout: Timeout,
    pub(crate) group: usize,
    pub(crate) not_before: u64,
    pub(crate) is_due: bool,
}

/// A group that is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) read: EntryId,
    /// Entry and consumer.
    pub(crate) pending: BTreeMap<EntryId, usize>,
}

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) index: BTreeMap<Vec<u8>, Armed>,
    pub(crate) stream: BTreeMap<EntryId, Entry>,
    /// The last entry id ever given.
    pub(crate) last: EntryId,
    pub(crate) dead: BTreeMap<EntryId, Entry>,
    pub(crate) retries: BTreeMap<Vec<u8>, Waiting>,
    pub(crate) groups: [Option<Group>; 2],
    /// Groups that have a part in the books: they are there, or were removed behind our back.
    pub(crate) booked: [bool; 2],
    /// Groups that are plain ones.
    pub(crate) plain: [bool; 2],
    /// How often effects counted.
    pub(crate) counted: u64,
}

impl Reference {
    /// Whether finished entries of this group need nobody else.
    pub(crate) fn alone(&self) -> bool {
        self.groups.iter().flatten().count() == 1
    }

    /// The ids of what is due in the index, in the order of a sweep.
    pub(crate) fn due(&self) -> Vec<Vec<u8>> {
        let mut due: Vec<_> = self
            .index
            .iter()
            .filter(|(_, armed)| armed.is_due)
            .map(|(name, armed)| (armed.timeout.due, name.clone()))
            .collect();
        due.sort();
        due.into_iter().map(|(_, name)| name).collect()
    }

    /// The members of what is due in the retry index, in the order of a sweep.
    pub(crate) fn due_retries(&self) -> Vec<Vec<u8>> {
        let mut due: Vec<_> = self
            .retries
            .iter()
            .filter(|(_, retry)| retry.is_due)
            .map(|(member, retry)| (retry.not_before, member.clone()))
            .collect();
        due.sort();
        due.into_iter().map(|(_, member)| member).collect()
    }

    /// Takes a timer out of the index, as fired by `src`.
    pub(crate) fn fire(&mut self, name: &[u8], src: &'static str) -> Entry {
        let armed = self.index.remove(name).expect("it is armed");
        Entry { timeout: Timeout { src, ..armed.timeout }, group: None }
    }

    /// An entry that a group has finished; gone if nobody else needs it.
    pub(crate) fn finish(&mut self, group: usize, at: EntryId) {
        let alone = self.alone();
        self.groups[group].as_mut().expect("the group is there").pending.remove(&at);
        if alone || self.stream.get(&at).is_some_and(|entry| entry.group == Some(group)) {
            self.stream.remove(&at);
        }
    }

    /// The member of a retry.
    pub(crate) fn member(group: usize, timeout: &Timeout) -> Vec<u8> {
        let generation = timeout.generation.to_string();
        [GROUPS[group].as_bytes(), b"/", &timeout.name, b"/", generation.as_bytes()].concat()
    }

    /// Deletes what every group has finished.
    pub(crate) fn trim(&mut self) {
        let groups: Vec<_> = self.groups.iter().flatten().collect();
        if !groups.is_empty() {
            let finished = |at: &EntryId| {
                groups.iter().all(|group| *at <= group.read && !group.pending.contains_key(at))
            };
            self.stream.retain(|at, _| !finished(at));
        }
    }
}
