//! The way from a timer to its partition: the number of partitions, read again and again (PROTOCOL.md section 1).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overdue_protocol::call::{self, Cancel};
use overdue_protocol::{QueueName, partition, tally};
use overdue_store::{ErrorKind as StoreKind, Store};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::lanes::Lanes;
use crate::page::{Failure, repeated};
use crate::{Error, ErrorKind, Result};

/// How old our number of partitions may be.
const FRESH: Duration = Duration::from_secs(10);

/// A queue as this process knows it.
pub(crate) struct Route {
    pub(crate) store: Store,
    pub(crate) name: QueueName,
    pub(crate) deadline: Duration,
    known: Mutex<Known>,
    /// Held by the one that reads the number.
    looking: tokio::sync::Mutex<()>,
}

struct Known {
    lanes: Arc<Lanes>,
    /// The queue is in a format that we do not know: nothing of it is touched.
    refused: Option<Failure>,
    looked: Instant,
    connection: u64,
}

impl Route {
    /// Reads the queue's number of partitions; `None` when there is no such queue and it is not to be created.
    /// Answers whether it was created.
    pub(crate) async fn open(
        store: &Store,
        name: &QueueName,
        deadline: Duration,
        create: bool,
    ) -> Result<Option<(Self, bool)>> {
        let connection = *store.reconnects().borrow();
        let look = || async {
            match store.queue(name).await? {
                Some(info) => Ok(Some((info.partitions, false))),
                None if create => {
                    let (info, created) = store.create_queue(name, first_number(store, name).await?).await?;
                    Ok(Some((info.partitions, created)))
                }
                None => Ok(None),
            }
        };
        let opened = repeated(Instant::now() + deadline, look).await;
        let opened = opened.map_err(|error| Error::of_look(&error, &format!("open queue {name}")))?;
        Ok(opened.map(|(partitions, created)| {
            let lanes = Arc::new(Lanes::new(store, name, partitions));
            let known = Mutex::new(Known { lanes, refused: None, looked: Instant::now(), connection });
            let looking = tokio::sync::Mutex::new(());
            (Self { store: store.clone(), name: name.clone(), deadline, known, looking }, created)
        }))
    }

    /// Runs the scripts of a producer for no timer at all: they are known, may be run, and find what they expect.
    pub(crate) async fn prove(&self) -> Result<(), Failure> {
        let (what, until) = (format!("open queue {}", self.name), Instant::now() + self.deadline);
        let lanes = self.known().lanes.clone();
        let Some(partition) = lanes.all().next() else { return Ok(()) };
        let arm =
            call::Schedule { partition: partition.clone(), partitions: lanes.partitions(), items: vec![] };
        let cancel = Cancel { partition, items: vec![] };
        let armed =
            repeated(until, || self.store.run(&arm)).await.map_err(|error| Failure::of(&error, &what))?;
        if let call::Scheduled::Partitions(theirs) = armed {
            self.agree(theirs).await?;
        }
        repeated(until, || self.store.run(&cancel))
            .await
            .map(drop)
            .map_err(|error| Failure::of(&error, &what))
    }

    /// The lanes. When it is time for another look at the number, that goes on beside: the scripts compare numbers,
    /// so an old one does no harm, and nobody is overtaken while it is read.
    pub(crate) fn lanes(self: &Arc<Self>) -> Result<Arc<Lanes>, Failure> {
        let connection = *self.store.reconnects().borrow();
        let mut known = self.known();
        if known.connection != connection || known.looked.elapsed() >= FRESH {
            (known.looked, known.connection) = (Instant::now(), connection);
            let route = self.clone();
            tokio::spawn(async move { route.look_again().await });
        }
        known.refused.clone().map_or_else(|| Ok(known.lanes.clone()), Err)
    }

    async fn look_again(&self) {
        let _only_one = self.looking.lock().await;
        if let Err(error) = self.look().await {
            warn!(queue = %self.name, %error, "going on with what is known of the queue so far");
            if error.kind() == StoreKind::NewerFormat {
                self.known().refused = Some(Failure::of(&error, &format!("use queue {}", self.name)));
            }
        }
    }

    /// Reads the number, writes ours back when there is none, and answers the one that stands there.
    async fn look(&self) -> overdue_store::Result<u32> {
        let ours = self.known().lanes.partitions();
        let stored = match self.store.queue(&self.name).await? {
            Some(info) => info.partitions,
            None => {
                let (info, created) = self.store.create_queue(&self.name, ours).await?;
                if created {
                    info!(queue = %self.name, partitions = ours, "the queue was not there any more: written back");
                }
                info.partitions
            }
        };
        let mut known = self.known();
        if known.lanes.partitions() != stored {
            known.lanes = Arc::new(Lanes::new(&self.store, &self.name, stored));
        }
        (known.refused, known.looked) = (None, Instant::now());
        Ok(stored)
    }

    /// A partition says that the queue has `theirs`: right, if the list of queues says the same now.
    pub(crate) async fn agree(&self, theirs: u32) -> Result<(), Failure> {
        let _only_one = self.looking.lock().await;
        if self.known().lanes.partitions() == theirs {
            return Ok(());
        }
        let stored = repeated(Instant::now() + self.deadline, || self.look()).await;
        let stored = stored.map_err(|error| Failure::of(&error, &format!("look up queue {}", self.name)))?;
        if stored == theirs { Ok(()) } else { Err(self.disagreement(theirs, stored)) }
    }

    fn disagreement(&self, theirs: u32, stored: u32) -> Failure {
        let name = &self.name;
        let hash = self.store.keyspace().queues();
        let hash = String::from_utf8_lossy(&hash);
        let detail = format!(
            "its data is of {theirs} partition(s), but {hash} says {stored}: nothing was written; if {theirs} is right, \
             remove the field {name} from {hash} and run `overdue queues create {name} --partitions {theirs}`"
        );
        Failure::new(ErrorKind::PartitionsDisagree, detail)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number for a queue that is not in the list: what its data says, else the default.
async fn first_number(store: &Store, name: &QueueName) -> overdue_store::Result<u32> {
    let tally = store.tally(&store.keyspace().partition(name, 0)).await?;
    let number = tally.get(tally::PARTITIONS).and_then(|number| number.parse().ok());
    Ok(number
        .filter(|n| (1..=partition::MAX_PARTITIONS).contains(n))
        .unwrap_or_else(|| store.default_partitions()))
}
