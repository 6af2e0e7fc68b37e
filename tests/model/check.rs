//! The server's keys against the reference.

use std::collections::BTreeMap;

use bytes::Bytes;
use overdue_protocol::entry::EntryId;
use overdue_protocol::{RawEntry, Record, Reply};
use overdue_tests::stage::id;

use crate::history::History;
use crate::operation::{CONSUMERS, GROUPS, NAMES};
use crate::reference::{Entry, Timeout};

impl History<'_> {
    /// These entries are new in the stream, in this order.
    pub(crate) fn arrived(&mut self, expected: Vec<Entry>) {
        let new: Vec<_> = self.stage.entries().into_iter().filter(|entry| entry.id > self.is.last).collect();
        assert_eq!(new.iter().map(decode).collect::<Vec<_>>(), expected);
        self.is.last = new.last().map_or(self.is.last, |entry| entry.id);
        self.is.stream.extend(new.iter().map(|entry| entry.id).zip(expected));
    }

    /// These dead letters are new, in this order.
    pub(crate) fn died(&mut self, expected: Vec<Entry>) {
        let new: Vec<_> =
            self.stage.dead().into_iter().filter(|letter| !self.is.dead.contains_key(&letter.id)).collect();
        assert_eq!(new.iter().map(decode).collect::<Vec<_>>(), expected);
        self.is.dead.extend(new.iter().map(|letter| letter.id).zip(expected));
    }

    /// Everything is as the reference says.
    pub(crate) fn check(&mut self) {
        let entries: Vec<_> = self.stage.entries().iter().map(|entry| (entry.id, decode(entry))).collect();
        assert_eq!(entries, self.is.stream.clone().into_iter().collect::<Vec<_>>());
        let letters: Vec<_> = self.stage.dead().iter().map(|entry| (entry.id, decode(entry))).collect();
        assert_eq!(letters, self.is.dead.clone().into_iter().collect::<Vec<_>>());
        self.check_timers();
        self.check_retries();
        self.check_pending();
        self.check_effects();
        self.stage.assert_balanced();
    }

    fn check_timers(&mut self) {
        let index: BTreeMap<_, _> = self.stage.index().into_iter().collect();
        let records = self.stage.wire.hgetall(self.stage.partition.timers()).unwrap();
        assert_eq!((index.len(), records.len()), (self.is.index.len(), self.is.index.len()));
        for (name, armed) in &self.is.index {
            let record = Record::decode(&records[name.as_slice()]).unwrap();
            assert_eq!(index[name.as_slice()], armed.timeout.due);
            assert_eq!(
                (record.generation, &record.payload),
                (armed.timeout.generation, &armed.timeout.payload.clone().into())
            );
        }
        for name in NAMES {
            let key = self.stage.partition.timer_key(&id(name));
            let value = self.stage.wire.call(&[b"GET".as_slice(), &key]).unwrap().into_bytes();
            let armed = self.is.index.get(name).filter(|armed| armed.keyed && !armed.is_due);
            assert_eq!(
                value,
                armed.map(|armed| Bytes::from(armed.timeout.generation.to_string())),
                "{name:?}"
            );
        }
    }

    fn check_retries(&mut self) {
        let retries: BTreeMap<_, _> = self.stage.retries().into_iter().collect();
        let records = self.stage.wire.hgetall(self.stage.partition.retry_timers()).unwrap();
        assert_eq!((retries.len(), records.len()), (self.is.retries.len(), self.is.retries.len()));
        for (member, retry) in &self.is.retries {
            assert_eq!(retries[member.as_slice()], retry.not_before);
            let record = Record::decode(&records[member.as_slice()]).unwrap();
            assert_eq!(record.generation, retry.timeout.generation);
            assert_eq!(record.payload, retry.timeout.payload);
        }
    }

    fn check_pending(&mut self) {
        for (number, group) in self.is.groups.iter().enumerate() {
            let Some(group) = group else { continue };
            let stream = self.stage.partition.stream();
            let args: [&[u8]; 6] = [b"XPENDING", &stream, GROUPS[number].as_bytes(), b"-", b"+", b"9999"];
            let rows = self.stage.wire.call(&args).unwrap().into_array().unwrap();
            let read = |row: Reply| -> (EntryId, usize) {
                let row = row.into_array().unwrap();
                let who = CONSUMERS.iter().position(|name| Some(*name) == row[1].as_str());
                (row[0].as_str().unwrap().parse().unwrap(), who.unwrap())
            };
            let pending: BTreeMap<_, _> = rows.into_iter().map(read).collect();
            assert_eq!(pending, group.pending, "{}", GROUPS[number]);
        }
    }
}

fn decode(raw: &RawEntry) -> Entry {
    let entry = overdue_protocol::Entry::decode(raw).unwrap();
    assert_eq!(entry.flaw, None);
    let src = entry.source.as_str();
    Entry {
        timeout: Timeout {
            name: entry.id.as_bytes().to_vec(),
            generation: entry.generation,
            due: entry.due_ms,
            payload: String::from_utf8(entry.payload.to_vec()).unwrap(),
            attempt: entry.attempt,
            src,
        },
        group: entry.group.map(|group| GROUPS.iter().position(|name| *name == group.as_str()).unwrap()),
    }
}
