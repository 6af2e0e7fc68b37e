//! One run of a consumer, from the first connect to the last acknowledgement.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use overdue_protocol::call::From;
use overdue_protocol::{GroupName, QueueName};
use overdue_store::{Error, Settings, Store};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::crew::Crew;
use crate::keeping::Keeping;
use crate::lane::Lane;
use crate::lease::Renewal;
use crate::options::Options;
use crate::pulse::Pulse;
use crate::reach::Reaches;
use crate::reading::Reading;
use crate::report::Report;
use crate::station::{Station, Verdict};
use crate::suspects::Suspects;
use crate::work::Work;

/// Works until `shutdown`, then ends in order.
pub(crate) async fn run(
    settings: &Settings,
    queue: QueueName,
    group: GroupName,
    options: Options,
    work: Arc<dyn Work>,
    reaches: Reaches,
    shutdown: impl Future<Output = ()>,
) -> Result<Report, Error> {
    let store = Store::connect(settings, "consumer").await?;
    let crew = Crew::new(store, queue, group, options, reaches);
    let mut floor = Floor::new(Arc::new(crew), work);
    let started = floor.start().await;
    let ended = match started {
        Ok(keeping) => tokio::select! {
            () = shutdown => Ok(()),
            error = keeping.run(&mut floor) => Err(error),
        },
        Err(error) if floor.stations.is_empty() => {
            // Nothing was begun: the error is all there is to say.
            floor.crew.store.close().await;
            return Err(error);
        }
        Err(error) => Err(error),
    };
    let report = floor.leave().await;
    ended.map(|()| report)
}

/// Everything that is at work. Dropping it stops all at once.
pub(crate) struct Floor {
    pub(crate) crew: Arc<Crew>,
    work: Arc<dyn Work>,
    pub(crate) stations: Vec<Arc<Station>>,
    /// The same, for the task that looks after suspects.
    manned: watch::Sender<Vec<Arc<Station>>>,
    pub(crate) readings: JoinSet<()>,
    pub(crate) lanes: JoinSet<()>,
    /// Renewals and the task that looks after suspects: they go on until nothing is in hand.
    pub(crate) renewals: JoinSet<()>,
    /// Nothing comes to the lanes any more.
    pub(crate) closing: CancellationToken,
    /// Nothing is in hand any more.
    pub(crate) end: CancellationToken,
    _pulse: Pulse,
}

impl Floor {
    fn new(crew: Arc<Crew>, work: Arc<dyn Work>) -> Self {
        Self {
            crew,
            work,
            stations: vec![],
            manned: watch::channel(vec![]).0,
            readings: JoinSet::new(),
            lanes: JoinSet::new(),
            renewals: JoinSet::new(),
            closing: CancellationToken::new(),
            end: CancellationToken::new(),
            _pulse: Pulse::start(),
        }
    }

    /// Proves what can be proved, and begins.
    async fn start(&mut self) -> Result<Keeping, Error> {
        let (crew, store) = (self.crew.clone(), self.crew.store.clone());
        store.prove_scripts().await?;
        let info = match store.queue(&crew.queue).await? {
            Some(info) => info,
            None => {
                let (info, created) = store.create_queue(&crew.queue, store.default_partitions()).await?;
                if created {
                    tracing::info!(queue = %crew.queue, partitions = info.partitions, "created queue {}", crew.queue);
                }
                info
            }
        };
        crew.clock.set(&store).await?;
        crew.paused.store(info.paused, Ordering::Relaxed);
        crew.history.store(info.history, Ordering::Relaxed);
        self.grow(info.partitions, crew.options.from).await?;
        let suspects = Suspects::new(crew.clone(), self.manned.subscribe());
        self.renewals.spawn(suspects.run(self.end.clone()));
        tracing::info!(
            queue = %crew.queue, group = %crew.group, consumer = crew.name, partitions = info.partitions,
            concurrency = crew.options.concurrency, lease = ?crew.options.lease, "consuming"
        );
        Ok(Keeping::new(&crew))
    }

    /// Begins with the partitions that are not at work yet, up to so many.
    ///
    /// # Errors
    /// Redis refuses us. What passes by itself is left to the read loop.
    pub(crate) async fn grow(&mut self, partitions: u32, from: From) -> Result<(), Error> {
        let known = u32::try_from(self.stations.len()).unwrap_or(u32::MAX);
        for number in known..partitions {
            let (station, outbox) = Station::new(self.crew.clone(), self.work.clone(), number);
            let join = match station.join(from).await {
                Ok(_) => None,
                Err(error) if error.kind() == overdue_store::ErrorKind::Refused => return Err(error),
                Err(error) => {
                    self.crew.warn("join", format_args!("{error}; it is tried again"));
                    Some(from)
                }
            };
            self.crew.partitions.fetch_add(1, Ordering::Relaxed);
            self.man(station, outbox, join);
        }
        Ok(())
    }

    fn man(&mut self, station: Arc<Station>, outbox: UnboundedReceiver<Verdict>, join: Option<From>) {
        self.lanes.spawn(Lane::new(station.clone(), outbox).run(self.closing.clone()));
        self.renewals.spawn(Renewal::new(station.clone()).run(self.end.clone()));
        self.readings.spawn(Reading::new(station.clone(), join).run());
        self.stations.push(station);
        self.manned.send_replace(self.stations.clone());
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // The loops end with their sets.
        self.crew.stop.cancel();
        for station in &self.stations {
            station.hands.stop_all();
        }
    }
}
