//! The lanes of a queue, and which items go together.

use std::collections::HashMap;
use std::sync::OnceLock;

use overdue_protocol::{Partition, QueueName, TimerId, partition};
use overdue_store::Store;
use tokio::sync::mpsc;

use crate::carrier::Carrier;
use crate::departure::fits;
use crate::lane::{self, CAPACITY, Item, Job};

/// Lanes of a partition, each with at most one call of a kind in flight.
const LANES: usize = 2;

/// The lanes of every partition; each starts when it is first used, and ends when nobody can use it any more.
pub(crate) struct Lanes {
    store: Store,
    name: QueueName,
    partitions: u32,
    senders: Vec<OnceLock<mpsc::Sender<Job>>>,
}

impl Lanes {
    pub(crate) fn new(store: &Store, name: &QueueName, partitions: u32) -> Self {
        let senders = (0..partitions as usize * LANES).map(|_| OnceLock::new()).collect();
        Self { store: store.clone(), name: name.clone(), partitions, senders }
    }

    /// How many partitions we think the queue has.
    pub(crate) fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The partition of an id.
    pub(crate) fn partition(&self, id: &TimerId) -> Partition {
        self.numbered(partition::of(id.as_bytes(), self.partitions))
    }

    /// Every partition.
    pub(crate) fn all(&self) -> impl Iterator<Item = Partition> + '_ {
        (0..self.partitions).map(|number| self.numbered(number))
    }

    pub(crate) fn carrier(&self, partition: Partition) -> Carrier {
        Carrier { store: self.store.clone(), partition, partitions: self.partitions }
    }

    /// Waits for room in a lane and leaves a job there. A lane that has ended drops it.
    pub(crate) async fn send(&self, lane: usize, job: Job) {
        let sender = self.senders[lane].get_or_init(|| {
            let (sender, jobs) = mpsc::channel(CAPACITY);
            tokio::spawn(lane::run(self.carrier(self.numbered((lane / LANES) as u32)), jobs));
            sender
        });
        // Whoever waits for the answer learns of it.
        let _ = sender.send(job).await;
    }

    /// Pages of the places of the open items, each for one lane; the pages of a lane are in order.
    pub(crate) fn split<I: Item>(&self, items: &[I], open: &[usize]) -> Vec<(usize, Vec<usize>)> {
        let mut pages: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut last: HashMap<usize, (usize, usize)> = HashMap::new();
        for &at in open {
            let (lane, bytes) = (lane_of(items[at].id(), self.partitions), items[at].bytes());
            match last.get_mut(&lane) {
                Some((page, filled)) if fits(pages[*page].1.len(), *filled, 1, bytes) => {
                    pages[*page].1.push(at);
                    *filled += bytes;
                }
                _ => {
                    last.insert(lane, (pages.len(), bytes));
                    pages.push((lane, vec![at]));
                }
            }
        }
        pages
    }

    fn numbered(&self, number: u32) -> Partition {
        self.store.keyspace().partition(&self.name, number)
    }
}

/// The lane of an id: always the same. Within a partition, the highest bits of the hash choose it.
fn lane_of(id: &TimerId, partitions: u32) -> usize {
    let hash = partition::of(id.as_bytes(), 1 << 16);
    (hash % partitions) as usize * LANES + ((hash as usize * LANES) >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_of_every_partition_gets_its_share() {
        let mut counts = vec![0; 4 * LANES];
        for i in 0..4_000 * LANES {
            let id = TimerId::try_from(&*format!("order-{i}")).unwrap();
            let lane = lane_of(&id, 4);
            assert_eq!(lane / LANES, partition::of(id.as_bytes(), 4) as usize);
            counts[lane] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
