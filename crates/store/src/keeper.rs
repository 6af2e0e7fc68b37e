//! The library's task: begun, begun again should it end, named and counted at each connect.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::config::{Options, Server};
use fred::types::{ClusterHash, ConnectHandle, CustomCommand, Value};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{interval, sleep, timeout};
use tracing::{debug, warn};

use crate::ErrorKind;
use crate::connection::{HOUSEKEEPING, by_chance};
use crate::fault::Fault;
use crate::meter::Presence;

/// How often it is looked whether the connection is up, for the metrics.
const LOOK: Duration = Duration::from_secs(1);

/// The library's task that drives a connection now.
#[derive(Clone, Default)]
pub(crate) struct Driver(Arc<Mutex<Option<AbortHandle>>>);

impl Driver {
    pub(crate) fn set(&self, task: &ConnectHandle) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
    }

    pub(crate) fn abort(&self) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

/// Begins the task and waits for the first connect.
pub(crate) async fn first_connect(
    client: &Client,
    deadline: Duration,
) -> std::result::Result<ConnectHandle, Fault> {
    let mut task = None;
    let connected = async {
        // Biased: the wait must have subscribed before the connect begins, or it may miss the answer.
        tokio::select! {
            biased;
            connected = client.wait_for_connect() => connected,
            () = async { task = Some(client.connect()); std::future::pending().await } => Ok(()),
        }
    };
    let fault = match timeout(deadline, connected).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Fault::of_connect(&error)),
        Err(_) => Some(Fault::new(ErrorKind::Unreachable, "no answer within the connect deadline")),
    };
    match (task, fault) {
        (Some(task), None) => Ok(task),
        (task, fault) => {
            if let Some(task) = task {
                task.abort();
            }
            Err(fault.unwrap_or_else(|| Fault::new(ErrorKind::Unreachable, "no connection was begun")))
        }
    }
}

/// Names each new connection, counts it, and starts the library's task again should it ever end.
pub(crate) struct Keeper {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) made: watch::Sender<u64>,
    pub(crate) driver: Driver,
    pub(crate) closed: Arc<AtomicBool>,
    pub(crate) presence: Presence,
}

impl Keeper {
    pub(crate) async fn run(mut self, mut reconnects: Receiver<Server>, mut task: ConnectHandle) {
        let mut look = interval(LOOK);
        loop {
            tokio::select! {
                _ = look.tick() => self.presence.set(self.client.is_connected()),
                made = reconnects.recv() => match made {
                    Ok(server) => {
                        self.made.send_modify(|n| *n += 1);
                        self.set_name(server).await;
                    }
                    Err(RecvError::Lagged(n)) => self.made.send_modify(|made| *made += n),
                    Err(RecvError::Closed) => return,
                },
                ended = &mut task => {
                    if self.closed.load(Relaxed) {
                        return;
                    }
                    warn!(?ended, "the connection to Redis ended by itself; connecting again");
                    sleep(by_chance(HOUSEKEEPING)).await;
                    task = self.client.connect();
                    self.driver.set(&task);
                }
            }
        }
    }

    /// Names the connection to a server.
    pub(crate) async fn set_name(&self, server: Server) {
        let options = Options {
            timeout: Some(HOUSEKEEPING),
            max_attempts: Some(1),
            cluster_node: Some(server),
            ..Options::default()
        };
        let command = CustomCommand::new_static("CLIENT", ClusterHash::Random, false);
        let args: Vec<Value> = vec!["SETNAME".into(), self.name.clone().into()];
        if let Err(error) = self.client.with_options(&options).custom_raw(command, args).await {
            debug!(%error, "the connection has no name");
        }
    }
}
