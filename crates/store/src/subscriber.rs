//! A verified subscription: one node ([`link`]), or every primary of a cluster ([`cluster`]).

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Node, Result, Settings, Signal};

mod cluster;
mod ear;
mod held;
pub(crate) mod line;
mod link;
pub(crate) mod login;
mod outlet;
pub(crate) mod sentinel;
mod transport;
mod waiting;

use cluster::Primaries;
use link::Link;
use login::Login;
use outlet::{Outlet, Part};

/// A subscription that is kept up until it is closed or dropped.
///
/// A node that says nothing is asked once a second whether it is there, and left when it does not answer within half a
/// second. Reconnecting goes on for ever: after 50 ms to 2 s, with jitter.
pub struct Subscriber {
    stop: CancellationToken,
    task: Mutex<JoinHandle<()>>,
}

impl Subscriber {
    /// Subscribes to `patterns` and answers once every node confirmed them: `Up` is among the first signals.
    ///
    /// `capacity` bounds the channel, and 64 MiB of names, keys and messages: what does not fit is counted and dropped
    /// ([`Signal::Lost`]). The other signals about the subscription wait for room; those of a holder that does not
    /// listen for several reconnects are left out in pairs, an end and the beginning after it.
    ///
    /// On a cluster, patterns that begin with `__key` are subscribed on every primary, all others on one of them. What several of
    /// the patterns match is told once.
    ///
    /// # Errors
    /// As [`crate::Store::connect`]; `Refused` when a pattern is, with the channel rule that is missing.
    pub async fn open(
        settings: &Settings,
        role: &str,
        patterns: impl IntoIterator<Item = impl Into<Bytes>>,
        capacity: usize,
    ) -> Result<(Self, mpsc::Receiver<Signal>)> {
        let patterns: BTreeSet<Bytes> = patterns.into_iter().map(Into::into).collect();
        let patterns: Vec<Bytes> = patterns.into_iter().collect();
        let (at, tls) = settings.endpoint()?;
        let (tx, rx) = mpsc::channel(capacity.max(1));
        let outlet = Outlet::new(tx);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = if at.is_cluster() {
            let primaries = Primaries::open(settings, tls, role, patterns, outlet.clone()).await?;
            tokio::spawn(until_closed(outlet, primaries.keep(stopped)))
        } else {
            let node = Node::server();
            let part = Part::Node(node.clone());
            outlet.expect([&part]);
            let (login, voice) = (Login::new(at, tls, role), outlet.voice(&part, &node));
            let mut link = Link::start(login, voice, patterns, settings.connect_deadline);
            link.first_attempt().await?;
            tokio::spawn(until_closed(outlet, async move {
                stopped.cancelled().await;
                drop(link);
            }))
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

/// Carries signals until the subscription ends.
async fn until_closed(outlet: Outlet, kept: impl Future<Output = ()>) {
    let mut kept = std::pin::pin!(kept);
    tokio::select! {
        () = &mut kept => {}
        // The holder has gone: nobody is told anything any more, but the end is the subscriber's to say.
        () = outlet.carry() => kept.await,
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // Dropped with the task, the connections end at once.
        self.task.get_mut().abort();
    }
}
