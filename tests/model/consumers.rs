//! Steps of consumers: reading, claiming, and what becomes of delivered timeouts.

use overdue_protocol::call::{Claim, CompleteItem, Holder, Words};
use overdue_protocol::entry::EntryId;

use crate::history::History;
use crate::operation::{CONSUMERS, Class, GROUPS, Outcome};
use crate::reference::{Entry, Reference, Timeout, Waiting};

impl History<'_> {
    pub(crate) fn read(&mut self, number: usize, consumer: usize, count: u32) {
        let Some(group) = &mut self.is.groups[number] else { return };
        let expected: Vec<_> =
            self.is.stream.keys().filter(|at| **at > group.read).take(count as usize).copied().collect();
        group.pending.extend(expected.iter().map(|at| (*at, consumer)));
        group.read = expected.last().copied().unwrap_or(group.read);
        let read = self.stage.read_some(GROUPS[number], CONSUMERS[consumer], count);
        assert_eq!(read.iter().map(|entry| entry.id).collect::<Vec<_>>(), expected);
    }

    pub(crate) fn claim(&mut self, number: usize, consumer: usize) {
        let Some(group) = &mut self.is.groups[number] else { return };
        let others: Vec<_> =
            group.pending.iter().filter(|(_, who)| **who != consumer).map(|(at, _)| *at).collect();
        let (there, gone): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|at| self.is.stream.contains_key(at));
        group.pending.retain(|at, _| !gone.contains(at));
        group.pending.extend(there.iter().map(|at| (*at, consumer)));
        let by = self.stage.by(GROUPS[number], CONSUMERS[consumer]);
        let holder = Holder::Others { lease_ms: 0, alone: false };
        let claimed = self.stage.wire.run(&Claim { by, holder, after: EntryId::ZERO, limit: 256 }).unwrap();
        assert_eq!(claimed.entries.iter().map(|one| one.entry.id).collect::<Vec<_>>(), there);
        assert_eq!(claimed.gone as usize, gone.len());
    }

    /// Entries of a group by number: pending ones first, then all that are in the stream.
    pub(crate) fn pick(&self, number: usize, picks: &[u8]) -> Vec<EntryId> {
        let pending = self.is.groups[number].iter().flat_map(|group| group.pending.keys());
        let mut all: Vec<_> = pending.chain(self.is.stream.keys()).copied().collect();
        all.push(EntryId { ms: 1, seq: 1 });
        picks.iter().map(|pick| all[usize::from(*pick) % all.len()]).collect()
    }

    pub(crate) fn finish(&mut self, number: usize, consumer: usize, outcome: Outcome, picks: &[u8]) {
        if self.is.groups[number].is_none() {
            return;
        }
        let entries = self.pick(number, picks);
        match outcome {
            Outcome::Complete => self.complete(number, &entries),
            Outcome::Retry(class) => self.requeue(number, consumer, &entries, class, 1),
            Outcome::Release(class) => self.requeue(number, consumer, &entries, class, 0),
            Outcome::Bury => self.bury(number, consumer, &entries),
            Outcome::Apply(fit) => self.apply(number, consumer, &entries, fit),
        }
    }

    pub(crate) fn complete(&mut self, number: usize, entries: &[EntryId]) {
        let (mut items, mut done, mut lost) = (vec![], 0, vec![]);
        for (n, at) in entries.iter().enumerate() {
            let to = self.is.stream.get(at).and_then(|entry| entry.group);
            items.push(match to {
                // A deleted entry has no fields to see: its holder knew them.
                _ if !self.is.stream.contains_key(at) => CompleteItem::Passed(*at),
                None => CompleteItem::Done(*at),
                Some(to) if to == number => CompleteItem::DoneOurs(*at),
                Some(_) => CompleteItem::Passed(*at),
            });
            let passed = matches!(items[n], CompleteItem::Passed(_));
            let group = self.is.groups[number].as_mut().unwrap();
            if !group.pending.contains_key(at) {
                lost.push(n);
            } else if passed {
                group.pending.remove(at);
            } else {
                done += 1;
                self.is.finish(number, *at);
            }
        }
        let completed = self.stage.complete(GROUPS[number], items);
        assert_eq!((completed.done, completed.lost), (done, lost));
    }

    /// A consumer acts only on what is for its group; what is addressed to another it passes over.
    pub(crate) fn for_group(&self, number: usize, entries: &[EntryId]) -> Vec<EntryId> {
        let ours = |at: &&EntryId| {
            self.is.stream.get(at).is_none_or(|entry| entry.group.is_none_or(|to| to == number))
        };
        entries.iter().filter(ours).copied().collect()
    }

    /// The word for each entry of a fenced call, and the timeouts that move.
    pub(crate) fn fenced(
        &mut self,
        number: usize,
        consumer: usize,
        entries: &[EntryId],
    ) -> (Vec<Words>, Vec<(EntryId, Timeout)>) {
        let (mut words, mut moves) = (vec![], vec![]);
        let alone = self.is.alone();
        for at in entries {
            let holder = self.is.groups[number].as_ref().unwrap().pending.get(at);
            words.push(match (holder == Some(&consumer), self.is.stream.get(at)) {
                (false, _) => Words::Lost,
                (true, None) => Words::Gone,
                (true, Some(entry)) => {
                    moves.push((*at, entry.timeout.clone()));
                    Words::Ok
                }
            });
            if holder == Some(&consumer) {
                self.is.finish(number, *at);
            }
        }
        assert_eq!(alone, self.is.alone());
        (words, moves)
    }

    pub(crate) fn requeue(
        &mut self,
        number: usize,
        consumer: usize,
        entries: &[EntryId],
        class: Class,
        more: u32,
    ) {
        let entries = self.for_group(number, entries);
        let (words, moves) = self.fenced(number, consumer, &entries);
        let delay = match class {
            Class::Past(_) => 0,
            Class::Near => 3,
            Class::Far(n) => 3_600_000 + u64::from(n),
        };
        let by = self.stage.by(GROUPS[number], CONSUMERS[consumer]);
        let before = self.stage.wire.now_ms();
        let answer = match more {
            0 => self.stage.release_after(by, &entries, delay),
            _ => self.stage.retry(by, &entries, delay),
        };
        assert_eq!(answer, words);
        let moves = moves.into_iter().map(|(_, timeout)| timeout);
        self.waits(number, moves.collect(), before, delay, more);
    }

    /// These timeouts of a group wait since a moment behind `before`; each has so many attempts more.
    pub(crate) fn waits(&mut self, number: usize, moves: Vec<Timeout>, before: u64, delay: u64, more: u32) {
        let (after, waiting) = (self.stage.wire.now_ms(), self.stage.retries());
        for timeout in moves {
            let member = Reference::member(number, &timeout);
            let not_before = waiting.iter().find(|(name, _)| *name == member).expect("it waits").1;
            assert!((before + delay..=after + delay).contains(&not_before));
            let timeout = Timeout { attempt: timeout.attempt + more, ..timeout };
            let is_due = delay < 1000;
            self.is.retries.insert(member, Waiting { timeout, group: number, not_before, is_due });
        }
        if delay < 1000 {
            self.stage.pass(after + delay);
        }
    }

    pub(crate) fn bury(&mut self, number: usize, consumer: usize, entries: &[EntryId]) {
        let entries = self.for_group(number, entries);
        let (words, moves) = self.fenced(number, consumer, &entries);
        let by = self.stage.by(GROUPS[number], CONSUMERS[consumer]);
        assert_eq!(self.stage.bury(by, &entries), words);
        self.died(moves.into_iter().map(|(_, timeout)| Entry { timeout, group: Some(number) }).collect());
    }
}
