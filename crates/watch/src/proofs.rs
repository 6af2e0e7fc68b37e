//! Expiries that touches of this process have proven. Each is told by a notification too, a moment later: that one need
//! not be settled again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overdue_protocol::watch::WatchedKey;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The name of an expiry.
pub(crate) type Name = (WatchedKey, u64);

/// How long a proof is remembered at least: its notification is on its way already.
const KEPT: Duration = Duration::from_secs(2);
/// The most that are remembered, twice over. What is forgotten is settled twice, which costs a few microseconds.
const MOST: usize = 16_384;

/// What is known of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// It is settled.
    Settled,
    /// It is being settled.
    Pending,
    /// Nothing.
    Unknown,
}

/// The proofs of one process.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    known: Mutex<Known>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Known {
    pending: HashSet<Name>,
    settled: HashSet<Name>,
    older: HashSet<Name>,
    turned: Option<Instant>,
}

impl Proofs {
    /// These are being settled, until the claim is dropped.
    pub(crate) fn claim(self: &Arc<Self>, names: Vec<Name>) -> Claim {
        self.lock().pending.extend(names.iter().cloned());
        Claim { proofs: Arc::clone(self), names, settled: false }
    }

    /// What is known of an expiry. One that is settled is forgotten: it is told of once.
    pub(crate) fn take(&self, name: &Name) -> Proof {
        self.lock().take(name)
    }

    /// The same of several; `None` stands for one of which nothing is known.
    pub(crate) fn take_all(&self, names: impl Iterator<Item = Option<Name>>) -> Vec<Proof> {
        let mut known = self.lock();
        names.map(|name| name.map_or(Proof::Unknown, |name| known.take(&name))).collect()
    }

    /// The same, once nobody is at it any more: never [`Proof::Pending`].
    pub(crate) async fn wait_for(&self, name: &Name) -> Proof {
        loop {
            let changed = self.changed.notified();
            match self.take(name) {
                Proof::Pending => changed.await,
                known => return known,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn take(&mut self, name: &Name) -> Proof {
        if self.settled.remove(name) || self.older.remove(name) {
            Proof::Settled
        } else if self.pending.contains(name) {
            Proof::Pending
        } else {
            Proof::Unknown
        }
    }
}

/// Expiries that are being settled. Dropped before they are, they are as unknown as before.
#[must_use = "dropped at once, nobody waits for it"]
pub(crate) struct Claim {
    proofs: Arc<Proofs>,
    names: Vec<Name>,
    settled: bool,
}

impl Claim {
    /// They are settled.
    pub(crate) fn settled(mut self) {
        self.settled = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.names.is_empty() {
            return;
        }
        let (now, mut known) = (Instant::now(), self.proofs.lock());
        let old = known.turned.is_none_or(|turned| now.duration_since(turned) >= KEPT);
        if self.settled && (old || known.settled.len() >= MOST) {
            known.turned = Some(now);
            known.older = std::mem::take(&mut known.settled);
        }
        for name in self.names.drain(..) {
            known.pending.remove(&name);
            if self.settled {
                known.settled.insert(name);
            }
        }
        drop(known);
        self.proofs.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: u64) -> Name {
        (WatchedKey { db: 0, key: n.to_string().into() }, n)
    }

    #[tokio::test]
    async fn a_proof_is_waited_for_while_it_is_settled_and_told_of_once() {
        let proofs = Arc::new(Proofs::default());
        let claim = proofs.claim(vec![name(1)]);
        assert_eq!((proofs.take(&name(1)), proofs.take(&name(2))), (Proof::Pending, Proof::Unknown));
        let waiting = tokio::spawn({
            let proofs = Arc::clone(&proofs);
            async move { proofs.wait_for(&name(1)).await }
        });
        tokio::task::yield_now().await;
        claim.settled();
        assert_eq!(waiting.await.unwrap(), Proof::Settled);
        assert_eq!(proofs.take(&name(1)), Proof::Unknown);
    }

    #[tokio::test]
    async fn what_could_not_be_settled_is_left_to_its_notification() {
        let proofs = Arc::new(Proofs::default());
        let claim = proofs.claim(vec![name(1)]);
        drop(claim);
        assert_eq!(proofs.wait_for(&name(1)).await, Proof::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn proofs_of_which_nothing_is_heard_are_not_kept_for_ever() {
        let proofs = Arc::new(Proofs::default());
        for round in 0..4 {
            proofs.claim((0..100).map(|n| name(round * 100 + n)).collect()).settled();
            tokio::time::advance(KEPT).await;
        }
        let known = proofs.lock();
        assert_eq!((known.pending.len(), known.settled.len() + known.older.len()), (0, 200));
    }
}
