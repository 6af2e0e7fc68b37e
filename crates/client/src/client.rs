//! The client of a process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overdue_protocol::QueueName;
use overdue_store::{Settings, Store};

use crate::builder::Builder;
use crate::error::{Error, ErrorKind, Result};
use crate::queue::{Queue, error};
use crate::route::Route;

/// A connection to Redis for producers. Clones share it: one for the process is enough.
///
/// It reconnects for ever; calls meanwhile wait for at most their deadline. A runtime with at least two worker
/// threads is needed.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    limits: Limits,
    routes: Mutex<HashMap<QueueName, Arc<Route>>>,
}

/// What a client holds its callers to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_payload: usize,
    pub(crate) deadline: Duration,
}

impl Client {
    /// Connects with the defaults: `redis://`, `rediss://`, `unix://`, `redis-sentinel://`, `redis-cluster://`.
    ///
    /// # Errors
    /// As [`Builder::connect`].
    pub async fn connect(url: impl Into<String>) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// Settings for `url`.
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder::new(Settings::new(url))
    }

    /// The same for settings that are there already, in the words of `overdue-store`.
    pub fn with(redis: Settings) -> Builder {
        Builder::new(redis)
    }

    pub(crate) fn on(store: Store, builder: &Builder) -> Self {
        let limits = Limits { max_payload: builder.max_payload, deadline: builder.deadline };
        Self { shared: Arc::new(Shared { store, limits, routes: Mutex::default() }) }
    }

    /// A queue to arm timers in; it is created if it is not there ([`Queue::created`] tells).
    ///
    /// `T` is what payloads are: anything that serde can serialize, or [`crate::Raw`]. Handles of one queue share
    /// what they know; opening it again is cheap.
    ///
    /// # Errors
    /// `Invalid` for the name; `NewerFormat`; `PartitionsDisagree`; `Refused` without the rights; what Redis says.
    pub async fn queue<T>(&self, name: &str) -> Result<Queue<T>> {
        match self.open(name, true).await? {
            Some(queue) => Ok(queue),
            None => {
                Err(Error::new(ErrorKind::Server, format!("open queue {name}"), "it was removed at once"))
            }
        }
    }

    /// A queue that is there already, or `None`: for looking without creating.
    ///
    /// # Errors
    /// As [`Client::queue`].
    pub async fn find_queue<T>(&self, name: &str) -> Result<Option<Queue<T>>> {
        self.open(name, false).await
    }

    async fn open<T>(&self, name: &str, create: bool) -> Result<Option<Queue<T>>> {
        let name = QueueName::new(name)
            .map_err(|error| Error::new(ErrorKind::Invalid, "open a queue", error.to_string()))?;
        let known = self.routes().get(&name).cloned();
        // Whether a queue that is only looked for is still there has to be asked each time.
        if let Some(route) = known.filter(|_| create) {
            return Ok(Some(Queue::new(route, self.shared.limits, false)));
        }
        let opened = Route::open(&self.shared.store, &name, self.shared.limits.deadline, create).await?;
        let Some((route, created)) = opened else { return Ok(None) };
        if create {
            route.prove().await.map_err(|failure| error(failure, &format!("open queue {name}")))?;
        }
        let route = self.routes().entry(name).or_insert_with(|| Arc::new(route)).clone();
        Ok(Some(Queue::new(route, self.shared.limits, created)))
    }

    /// The connection below, for what this crate does not offer.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Closes the connection of all clones, politely for at most a second. Later calls answer `Closed`.
    pub async fn close(&self) {
        self.shared.store.close().await;
    }

    fn routes(&self) -> std::sync::MutexGuard<'_, HashMap<QueueName, Arc<Route>>> {
        self.shared.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
