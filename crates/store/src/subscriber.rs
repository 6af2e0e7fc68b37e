//! A verified subscription: one node ([`link`]), or every primary of a cluster.

use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Result, Settings, Signal};

mod board;
mod cluster;
mod link;
mod pump;

use link::{Link, Outlet};

/// A subscription that is kept up until it is closed or dropped.
///
/// Each node is asked once a second whether it still answers, and left when it does not within half a second.
pub struct Subscriber {
    stop: CancellationToken,
    task: Mutex<JoinHandle<()>>,
}

impl Subscriber {
    /// Subscribes to `patterns` and answers once the server confirmed them; the first signal is `Up`.
    ///
    /// `capacity` bounds the channel: what does not fit is counted and dropped ([`Signal::Lost`]); `Up`, `Down` and
    /// `Lost` never are. On a cluster, patterns that begin with `__key` are subscribed on every primary, others on
    /// one; the subscription is up while every primary has it.
    ///
    /// # Errors
    /// As [`crate::Store::connect`]; `Refused` when a pattern is.
    pub async fn open(
        settings: &Settings,
        role: &str,
        patterns: Vec<String>,
        capacity: usize,
    ) -> Result<(Self, mpsc::Receiver<Signal>)> {
        let (at, tls) = settings.endpoint()?;
        let (tx, rx) = mpsc::channel(capacity.max(1));
        let outlet = Outlet { words: board::start(tx.clone()), signals: tx };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = if at.is_cluster() {
            let nodes = cluster::Nodes::open(settings, at, tls, role, patterns, outlet).await?;
            tokio::spawn(nodes.keep(stopped))
        } else {
            let link = Link::open(settings, &at, tls, role, patterns, outlet).await?;
            tokio::spawn(async move {
                stopped.cancelled().await;
                link.close().await;
            })
        };
        Ok((Self { stop, task: Mutex::new(task) }, rx))
    }

    /// Ends the subscription, politely for at most two seconds; the channel closes.
    pub async fn close(&self) {
        self.stop.cancel();
        let mut task = self.task.lock().await;
        if !task.is_finished() && timeout(Duration::from_secs(2), &mut *task).await.is_err() {
            task.abort();
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // Dropped with the task, the connections end at once.
        self.task.get_mut().abort();
    }
}
