//! Steps of groups and of what waits for them: retries, dead letters, what is taken out by hand.

use overdue_protocol::call::{
    Discard, DiscardItem, Discarded, Drop, From, Joined, Replay, Replayed, SweepRetries,
};
use overdue_protocol::entry::EntryId;
use overdue_tests::stage::group;

use crate::history::History;
use crate::operation::GROUPS;
use crate::reference::{Entry, Group, Timeout};

impl History<'_> {
    pub(crate) fn sweep_retries(&mut self, limit: u32) {
        let due = self.is.due_retries();
        let page = &due[..due.len().min(limit as usize)];
        let (mut back, mut gone) = (vec![], vec![]);
        for member in page {
            let retry = self.is.retries.remove(member).unwrap();
            let entry = Entry { timeout: retry.timeout, group: Some(retry.group) };
            if self.is.booked[retry.group] { back.push(entry) } else { gone.push(entry) }
        }
        let swept =
            self.stage.wire.run(&SweepRetries { partition: self.stage.partition.clone(), limit }).unwrap();
        let expected = (back.len() as u32, gone.len() as u32, due.len() > page.len(), 0);
        assert_eq!((swept.fired, swept.group_gone, swept.more, swept.flawed), expected);
        self.arrived(back);
        self.died(gone);
    }

    pub(crate) fn join(&mut self, number: usize, new: bool) {
        let from = if new { From::New } else { From::Oldest };
        let joined = self.stage.join_from(GROUPS[number], from);
        if self.is.groups[number].is_some() {
            return assert_eq!(joined, Joined::Exists);
        }
        let again = self.is.booked[number];
        assert_eq!(joined, if again { Joined::Recreated } else { Joined::Created });
        let read = if new && !again { self.is.last } else { EntryId::ZERO };
        self.is.groups[number] = Some(Group { read, ..Group::default() });
        self.is.booked[number] = true;
    }

    pub(crate) fn destroy(&mut self, number: usize) {
        if self.is.groups[number].take().is_some() {
            let stream = self.stage.partition.stream();
            let args: [&[u8]; 4] = [b"XGROUP", b"DESTROY", &stream, GROUPS[number].as_bytes()];
            self.stage.wire.call(&args).unwrap();
        }
    }

    pub(crate) fn drop_group(&mut self, number: usize) {
        let call =
            Drop { partition: self.stage.partition.clone(), group: group(GROUPS[number]), cursor: None };
        let dropped = self.stage.wire.run(&call).unwrap();
        let before = self.is.retries.len();
        self.is.retries.retain(|_, retry| retry.group != number);
        assert_eq!(dropped.existed, self.is.groups[number].take().is_some());
        assert_eq!((dropped.retries as usize, dropped.cursor), (before - self.is.retries.len(), None));
        self.is.booked[number] = false;
        self.is.plain[number] = false;
    }

    pub(crate) fn replay(&mut self, picks: &[u8]) {
        let mut all: Vec<_> = self.is.dead.keys().copied().collect();
        all.push(EntryId { ms: 1, seq: 1 });
        let letters: Vec<_> = picks.iter().map(|pick| all[usize::from(*pick) % all.len()]).collect();
        let (mut expected, mut back) = (vec![], vec![]);
        for at in &letters {
            let group = self.is.dead.get(at).and_then(|letter| letter.group);
            expected.push(match group {
                None => Replayed::Absent,
                Some(group) if self.is.groups[group].is_none() => Replayed::NoGroup,
                Some(_) => {
                    let letter = self.is.dead.remove(at).unwrap();
                    back.push(Entry {
                        timeout: Timeout { attempt: 1, src: "replay", ..letter.timeout },
                        ..letter
                    });
                    Replayed::Ok
                }
            });
        }
        let call = Replay { partition: self.stage.partition.clone(), letters };
        assert_eq!(self.stage.wire.run(&call).unwrap(), expected);
        self.arrived(back);
    }

    pub(crate) fn discard_retries(&mut self, picks: &[u8]) {
        let mut all: Vec<_> = self.is.retries.keys().cloned().collect();
        all.push(b"billing/never/7".to_vec());
        let members: Vec<_> = picks.iter().map(|pick| all[usize::from(*pick) % all.len()].clone()).collect();
        let word = |there: bool| if there { Discarded::Ok } else { Discarded::Absent };
        let expected: Vec<_> =
            members.iter().map(|member| word(self.is.retries.remove(member).is_some())).collect();
        let items = members.into_iter().map(|member| DiscardItem::Retry(member.into())).collect();
        let call = Discard { partition: self.stage.partition.clone(), items };
        assert_eq!(self.stage.wire.run(&call).unwrap(), expected);
    }

    pub(crate) fn discard_entries(&mut self, number: usize, picks: &[u8]) {
        let entries = self.pick(number, picks);
        let mut expected = vec![];
        for (n, at) in entries.iter().enumerate() {
            let alone = self.is.alone();
            let to = self.is.stream.get(at).map(|entry| entry.group);
            let state = self.is.groups[number]
                .as_ref()
                .map(|group| (group.pending.contains_key(at), *at > group.read));
            // Each call reads first: of the same entry twice, the second is absent.
            let seen = entries[..n].contains(at)
                && expected[entries.iter().position(|one| one == at).unwrap()] == Discarded::Ok;
            expected.push(match (state, to) {
                _ if seen => Discarded::Absent,
                (None, _) | (_, None) => Discarded::Absent,
                (_, Some(Some(to))) if to != number => Discarded::Absent,
                (Some((true, _)), _) => Discarded::Ok,
                (Some((false, true)), Some(to)) if alone || to == Some(number) => Discarded::Ok,
                (Some((false, true)), _) => Discarded::Unread,
                _ => Discarded::Absent,
            });
        }
        for (at, word) in entries.iter().zip(&expected) {
            if *word == Discarded::Ok {
                self.is.finish(number, *at);
            }
        }
        let items = entries.iter().map(|at| DiscardItem::Entry(*at, group(GROUPS[number]))).collect();
        let call = Discard { partition: self.stage.partition.clone(), items };
        assert_eq!(self.stage.wire.run(&call).unwrap(), expected);
    }
}
