//! The calls of a round, as relays, consumers and clients make them.

use bytes::Bytes;
use overdue_protocol::call::{
    Complete, CompleteItem, Mode, Schedule, ScheduleItem, Settle, SettleItem, SettleOp, Standing, Sweep,
    SweepRetries, When,
};
use overdue_protocol::entry::EntryId;
use overdue_protocol::record::pack_extras;
use overdue_protocol::watch::{Capture, WatchedKey, mark_channel, touch_args};
use overdue_protocol::{GroupName, Keyspace, Partition, QueueName, TimerId, script};

use super::lab::Order;

/// Makes orders for one partition and one group.
pub(super) struct Orders {
    pub(super) partition: Partition,
    pub(super) group: GroupName,
    payload: Bytes,
}

impl Orders {
    pub(super) fn new(payload_bytes: usize) -> Self {
        let queue = QueueName::new("scripts").expect("a constant of ours");
        Self {
            partition: Keyspace::default().partition(&queue, 0),
            group: GroupName::new("handlers").expect("a constant of ours"),
            payload: vec![b'x'; payload_bytes].into(),
        }
    }

    pub(super) fn arm(&self, ids: &[TimerId], when: When) -> Order {
        let item = |id: &TimerId| ScheduleItem {
            id: id.clone(),
            when,
            mode: Mode::Upsert,
            payload: self.payload.clone(),
            call: Bytes::from_static(b"12345678"),
            extras: pack_extras(&[("enc", b"raw")]),
            keyed: false,
        };
        let items = ids.iter().map(item).collect();
        Schedule { partition: self.partition.clone(), partitions: 1, items }.into()
    }

    pub(super) fn sweep(&self, limit: usize) -> Order {
        let sweeper = Bytes::from_static(b"bench");
        Sweep { partition: self.partition.clone(), limit: limit as u32, grace_ms: 0, sweeper }.into()
    }

    pub(super) fn sweep_retries(&self, limit: usize) -> Order {
        SweepRetries { partition: self.partition.clone(), limit: limit as u32 }.into()
    }

    pub(super) fn complete(&self, entries: &[EntryId]) -> Order {
        let items = entries.iter().copied().map(CompleteItem::Done).collect();
        Complete { by: self.by("a"), items, history: 0 }.into()
    }

    pub(super) fn settle(&self, keys: &[Bytes], position: u64, op: impl Fn() -> SettleOp) -> Order {
        let rule = self.partition.queue();
        let item = |key: &Bytes| SettleItem {
            key: WatchedKey { db: 0, key: key.clone() },
            rule: rule.clone(),
            position,
            op: op(),
        };
        Settle { partition: self.partition.clone(), items: keys.iter().map(item).collect() }.into()
    }

    pub(super) fn by(&self, consumer: &'static str) -> Standing {
        Standing {
            partition: self.partition.clone(),
            group: self.group.clone(),
            consumer: Bytes::from_static(consumer.as_bytes()),
        }
    }

    pub(super) fn touch(&self, keys: &[Bytes]) -> Order {
        let guard = Keyspace::default().guard("0");
        let args = touch_args(mark_channel(0), "127.0.0.1:6379", guard, Capture::NONE, keys);
        Order::new(&script::TOUCH, vec![], args)
    }
}
