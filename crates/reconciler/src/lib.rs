//! The reconciler of Overdue: sweeps what is due, nudges watched keys, looks after plain groups, trims streams, takes
//! samples.
//!
//! A sorted set of deadlines knows what is due to the millisecond, whatever else Redis holds. So for each
//! partition there is a loop that sweeps until nothing is due, then sleeps until the next deadline, a wake
//! message about an earlier one, a gap, or one second, whichever comes first ([`Settings`] says what can be
//! set). Any number of reconcilers may run: one script is the only gate, and a sweep that comes second
//! costs half a microsecond.
//!
//! The reconciler never decides by its own clock whether something is due: the script does, by the
//! server's. It touches no group but those that are declared to it as plain ([`GroupRule`]), and it does not know the relay: whoever wires both hands gaps over
//! with [`SweepNow`].

mod alarm;
mod directory;
mod nudger;
mod pass;
mod plain;
mod sample;
mod settings;
mod sweeper;
mod trimmer;
mod wakes;

use std::sync::Arc;

use overdue_store::{Result, Store};
use overdue_telemetry::Health;
use tokio_util::sync::CancellationToken;

use crate::alarm::Alarms;
use crate::directory::Directory;
use crate::nudger::Nudgers;

pub use crate::nudger::Watching;
pub use crate::settings::{GroupRule, Settings};

/// What every loop of a reconciler shares.
#[derive(Clone)]
struct Shared {
    store: Store,
    settings: Arc<Settings>,
    health: Health,
    alarms: Arc<Alarms>,
    throttle: Arc<overdue_telemetry::Throttle>,
}

/// A reconciler that has seen its queues and is ready to run.
pub struct Reconciler {
    shared: Shared,
    directory: Directory,
    nudgers: Option<Nudgers>,
}

/// Tells a reconciler that something may have been missed: it sweeps and nudges everything at once.
#[derive(Clone)]
pub struct SweepNow(Arc<Alarms>);

impl SweepNow {
    /// Looks at every partition now.
    pub fn sweep_now(&self) {
        self.0.sweep_all();
    }
}

impl Reconciler {
    /// Reads the queues, and creates those of plain groups that are not there yet.
    ///
    /// # Errors
    /// Redis does not answer or refuses; a queue is in a newer format.
    pub async fn start(store: Store, settings: Settings, health: Health) -> Result<Self> {
        let shared = Shared {
            store,
            settings: Arc::new(settings),
            health,
            alarms: Arc::default(),
            throttle: Arc::default(),
        };
        let mut directory = Directory::new(shared.clone());
        directory.create_missing().await?;
        directory.read().await?;
        Ok(Self { shared, directory, nudgers: None })
    }

    /// A handle for whoever learns of gaps.
    #[must_use]
    pub fn sweep_now(&self) -> SweepNow {
        SweepNow(Arc::clone(&self.shared.alarms))
    }

    /// Nudges watched keys too when they are due. For once, before it runs.
    pub fn watch(&mut self, watching: Watching) {
        self.nudgers = Some(Nudgers::new(&self.shared, watching));
    }

    /// Runs until `stop`; calls under way are waited for, under the store's own deadline.
    pub async fn run(self, stop: CancellationToken) {
        let nudging = async {
            if let Some(nudgers) = self.nudgers {
                nudgers.run(stop.clone()).await;
            }
        };
        tokio::join!(wakes::listen(&self.shared, &stop), self.directory.run(stop.clone()), nudging);
    }
}
