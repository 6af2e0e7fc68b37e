//! Every key and channel of Overdue is built here (PROTOCOL.md section 1).

use bytes::{BufMut, Bytes, BytesMut};

use crate::name::{Namespace, QueueName, TimerId};
use crate::partition;

/// The keys of one namespace.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Keyspace {
    namespace: Namespace,
}

impl Keyspace {
    /// The keys that begin with `namespace`.
    #[must_use]
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace }
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// HASH: queue -> [`crate::QueueInfo`].
    #[must_use]
    pub fn queues(&self) -> Bytes {
        self.root("queues")
    }

    /// HASH: process name -> [`crate::member::Member`].
    #[must_use]
    pub fn members(&self) -> Bytes {
        self.root("members")
    }

    /// CHANNEL: the name of a new queue.
    #[must_use]
    pub fn queues_wake(&self) -> Bytes {
        self.root("queues:wake")
    }

    /// A pattern for PSUBSCRIBE that matches every wake channel of this namespace, that of new queues too.
    #[must_use]
    pub fn wake_pattern(&self) -> Bytes {
        self.root("*:wake")
    }

    /// STRING: the canary of a process, a relay or `overdue doctor`, on the node that serves `tag`.
    #[must_use]
    pub fn canary(&self, tag: &str, process: &str) -> Bytes {
        self.root(&format!("{{{tag}}}:canary:{process}"))
    }

    /// Never exists: a write to it that changes nothing proves that the node which serves `tag` is a primary.
    #[must_use]
    pub fn guard(&self, tag: &str) -> Bytes {
        self.root(&format!("{{{tag}}}:guard"))
    }

    /// The keys of one partition of a queue.
    #[must_use]
    pub fn partition(&self, queue: &QueueName, number: u32) -> Partition {
        let prefix = format!("{}:{{{queue}:{number}}}:", self.namespace);
        Partition { queue: queue.clone(), number, prefix: Bytes::from(prefix) }
    }

    /// The partition and id that a keyed timer's key names, or `None` for every other key.
    #[must_use]
    pub fn parse_timer_key(&self, key: &Bytes) -> Option<(QueueName, u32, TimerId)> {
        let rest = key.strip_prefix(self.namespace.as_str().as_bytes())?.strip_prefix(b":{")?;
        let close = rest.iter().position(|&b| b == b'}')?;
        let (queue, number) = std::str::from_utf8(&rest[..close]).ok()?.rsplit_once(':')?;
        let id = rest[close + 1..].strip_prefix(b":key:")?;
        let canonical = number == "0" || !number.starts_with('0');
        let number = number.parse().ok().filter(|_| canonical)?;
        Some((QueueName::new(queue).ok()?, number, TimerId::new(key.slice_ref(id)).ok()?))
    }

    /// The partition whose wake channel this is, or `None`.
    #[must_use]
    pub fn parse_wake(&self, channel: &[u8]) -> Option<(QueueName, u32)> {
        let rest = channel.strip_prefix(self.namespace.as_str().as_bytes())?.strip_prefix(b":{")?;
        let inner = rest.strip_suffix(b"}:wake")?;
        let (queue, number) = std::str::from_utf8(inner).ok()?.rsplit_once(':')?;
        Some((QueueName::new(queue).ok()?, number.parse().ok()?))
    }

    fn root(&self, name: &str) -> Bytes {
        Bytes::from(format!("{}:{name}", self.namespace))
    }
}

/// The keys of one partition: everything in it lives in one hash slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    queue: QueueName,
    number: u32,
    prefix: Bytes,
}

macro_rules! keys {
    ($($(#[$doc:meta])* $ident:ident = $suffix:literal;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $ident(&self) -> Bytes {
                self.with($suffix)
            }
        )*
    };
}

impl Partition {
    /// The queue this is a share of.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Its number, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    keys! {
        /// ZSET: timer id -> due ms.
        index = b"index";
        /// HASH: timer id -> record.
        timers = b"timers";
        /// STREAM: timeouts.
        stream = b"stream";
        /// STREAM: dead letters.
        dead = b"dead";
        /// ZSET: retry member -> not before, ms.
        retry_index = b"retry-index";
        /// HASH: retry member -> record.
        retry_timers = b"retry-timers";
        /// STREAM: the timeouts that were finished last, when the queue keeps them.
        history = b"history";
        /// HASH: the books, the last generation, the number of partitions, the last sweeper.
        tally = b"tally";
        /// ZSET: watched key -> due ms.
        watched = b"watched";
        /// HASH: watched key -> captured value.
        last = b"last";
        /// ZSET: watched key -> position of the last look.
        looked = b"looked";
        /// ZSET: `<position>/<watched key>` -> position; and debts, `?<watched key>`.
        fired = b"fired";
        /// CHANNEL: the new earliest due.
        wake = b"wake";
    }

    /// STRING: ends at the deadline of a keyed timer.
    #[must_use]
    pub fn timer_key(&self, id: &TimerId) -> Bytes {
        let mut key = BytesMut::with_capacity(self.prefix.len() + 4 + id.as_bytes().len());
        key.put_slice(&self.prefix);
        key.put_slice(b"key:");
        key.put_slice(id.as_bytes());
        key.freeze()
    }

    /// A key of the user's own beside this partition, in its hash slot: `{orders:3}seats`. What effects write.
    #[must_use]
    pub fn neighbour(&self, name: &[u8]) -> Bytes {
        let tag = format!("{{{}:{}}}", self.queue, self.number);
        [tag.as_bytes(), name].concat().into()
    }

    /// Whether effects of this partition's timeouts may write `key`: it is in the same hash slot, and none of ours.
    #[must_use]
    pub fn is_neighbour(&self, key: &[u8]) -> bool {
        !key.starts_with(&self.prefix) && partition::slot(key) == partition::slot(&self.prefix)
    }

    fn with(&self, suffix: &[u8]) -> Bytes {
        let mut key = BytesMut::with_capacity(self.prefix.len() + suffix.len());
        key.put_slice(&self.prefix);
        key.put_slice(suffix);
        key.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> (Keyspace, Partition) {
        let keys = Keyspace::default();
        let partition = keys.partition(&QueueName::new("orders").unwrap(), 3);
        (keys, partition)
    }

    #[test]
    fn keys_are_as_the_specification_writes_them() {
        let (keys, partition) = orders();
        assert_eq!(keys.queues(), "overdue:queues");
        assert_eq!(keys.members(), "overdue:members");
        assert_eq!(keys.queues_wake(), "overdue:queues:wake");
        assert_eq!(partition.index(), "overdue:{orders:3}:index");
        assert_eq!(partition.retry_index(), "overdue:{orders:3}:retry-index");
        assert_eq!(partition.wake(), "overdue:{orders:3}:wake");
        assert_eq!(partition.watched(), "overdue:{orders:3}:watched");
        assert_eq!(partition.last(), "overdue:{orders:3}:last");
        assert_eq!(partition.looked(), "overdue:{orders:3}:looked");
        assert_eq!(partition.fired(), "overdue:{orders:3}:fired");
        assert_eq!(keys.canary("0", "relay:1"), "overdue:{0}:canary:relay:1");
        assert_eq!(keys.guard("0"), "overdue:{0}:guard");
    }

    #[test]
    fn a_neighbour_is_in_the_slot_and_none_of_ours() {
        let (keys, partition) = orders();
        assert_eq!(partition.neighbour(b"seats"), "{orders:3}seats");
        for good in [&b"seats"[..], b"", b"}", b"\xff{x}"] {
            assert!(partition.is_neighbour(&partition.neighbour(good)), "{good:?}");
        }
        assert!(partition.is_neighbour(b"shop:{orders:3}:seats"));
        let other = keys.partition(&QueueName::new("orders").unwrap(), 4);
        for bad in [
            partition.stream(),
            other.stream(),
            other.neighbour(b"seats"),
            "seats".into(),
            "{}{orders:3}".into(),
        ] {
            assert!(!partition.is_neighbour(&bad), "{bad:?}");
        }
    }

    #[test]
    fn a_timer_key_gives_its_id_back_whatever_the_id_holds() {
        let (keys, partition) = orders();
        for id in [&b"a"[..], b"\xff\x00", b"}:key:{", b"a\r\nb", b"{}", b"a/b:c"] {
            let id = TimerId::new(Bytes::copy_from_slice(id)).unwrap();
            let parsed = keys.parse_timer_key(&partition.timer_key(&id)).unwrap();
            assert_eq!(parsed, (QueueName::new("orders").unwrap(), 3, id));
        }
        for other in [
            "overdue:{orders:3}:index",
            "overdue:{orders:03}:key:a",
            "x:{orders:3}:key:a",
            "overdue:{orders:3}:key:",
        ] {
            assert_eq!(keys.parse_timer_key(&Bytes::from_static(other.as_bytes())), None, "{other}");
        }
        assert_eq!(keys.parse_wake(&partition.wake()), Some((QueueName::new("orders").unwrap(), 3)));
        assert_eq!(keys.parse_wake(b"overdue:queues:wake"), None);
    }
}
