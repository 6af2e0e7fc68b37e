//! Where a command works: Redis, and most often one queue of it.

use overdue_protocol::{Partition, QueueInfo, QueueName, TimerId, partition};
use overdue_store::Store;

use crate::exit::{Exit, Failure};
use crate::settings::Settings;
use crate::settings::nearest::nearest;

/// How the connections of commands are named: `overdue-cli:<host>:<pid>`.
pub(crate) const ROLE: &str = "cli";

/// The most entries, timers or retries that one call of a command reads: Redis serves others between two pages.
pub(crate) const PAGE: usize = 500;

/// Connects.
///
/// # Errors
/// Redis can't be reached or refuses.
pub(crate) async fn connect(settings: &Settings) -> Result<Store, Failure> {
    Ok(Store::connect(&settings.redis, ROLE).await?)
}

/// A queue that is there.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) store: Store,
    pub(crate) queue: QueueName,
    pub(crate) info: QueueInfo,
}

impl Place {
    /// Connects, and looks the queue up.
    ///
    /// # Errors
    /// Exit code 1 when there is no such queue; 3 when Redis can't be reached or refuses.
    pub(crate) async fn open(settings: &Settings, queue: &QueueName) -> Result<Self, Failure> {
        let store = connect(settings).await?;
        match store.queue(queue).await? {
            Some(info) => Ok(Self { store, queue: queue.clone(), info }),
            None => Err(no_queue(&store, queue).await),
        }
    }

    /// Every partition of the queue.
    pub(crate) fn partitions(&self) -> Vec<Partition> {
        partitions(&self.store, &self.queue, &self.info)
    }

    /// The partition that a timer's id belongs to.
    pub(crate) fn partition_of(&self, id: &TimerId) -> Partition {
        let number = partition::of(id.as_bytes(), self.info.partitions);
        self.store.keyspace().partition(&self.queue, number)
    }
}

/// Every partition of a queue.
pub(crate) fn partitions(store: &Store, queue: &QueueName, info: &QueueInfo) -> Vec<Partition> {
    (0..info.partitions).map(|number| store.keyspace().partition(queue, number)).collect()
}

/// Says that there is no such queue, and which one may be meant.
pub(crate) async fn no_queue(store: &Store, queue: &QueueName) -> Failure {
    let known = match store.queues().await {
        Ok(known) => known,
        Err(error) => return error.into(),
    };
    let hint = match nearest(queue.as_str(), known.keys().map(QueueName::as_str)) {
        "" => "there are no queues at all; is this the right Redis, db and namespace?".to_owned(),
        near => format!("the nearest name is {near}; all names: overdue queues list"),
    };
    Failure::new(Exit::NotThere, format!("there is no queue {queue}: {hint}"))
}
