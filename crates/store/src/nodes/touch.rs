//! Scripts that run at a node, on keys of any of its slots (PROTOCOL.md section 5).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::watch::{
    Capture, Found, Seen, Touched, found_values, mark_channel, touch_args, values_args,
};
use overdue_protocol::{Reply, Script, script};
use tokio::time::Instant;

use super::peer::Peer;
use super::{Inner, Nodes};
use crate::fault::Fault;
use crate::way::Way;
use crate::{Error, ErrorKind, Feed, Result};

/// The most keys in one call.
pub(super) const PAGE: usize = 256;

/// What a node says that has lost its place.
const LOST: &[&str] = &["READONLY", "MOVED", "CLUSTERDOWN", "cluster is down", "non local key"];

/// A script in two forms.
struct Two {
    /// For a single server, and for clusters older than 7.0.
    plain: &'static Script,
    /// With the flags that let it touch keys of several slots.
    anywhere: &'static Script,
}

static TOUCH: Two = Two { plain: &script::TOUCH, anywhere: &script::TOUCH_ANYWHERE };
static VALUES: Two = Two { plain: &script::VALUES, anywhere: &script::VALUES_ANYWHERE };

impl Nodes {
    /// Marks a position at a node, and reads when keys end: with proof of those that this made expire. At most 256
    /// keys, which share the position; none = a marker only. Values that do not fit into the page are read after it,
    /// as long as `capture.within_ms` allows; what is left then stands in `more`.
    ///
    /// # Errors
    /// As [`Nodes::scan`]. A replica answers `Unavailable`, never that keys are gone. With an unknown outcome only
    /// the proof is lost: its notification has the same name.
    pub async fn touch(&self, feed: &Feed, keys: &[Bytes], capture: Capture) -> Result<Touched> {
        debug_assert!(keys.len() <= PAGE, "a touch has one position: its keys cannot be spread over several");
        let inner = self.inner();
        let guard = inner.settings.keyspace.guard(&self.tag(&feed.node));
        let args = touch_args(mark_channel(feed.db), feed.node.as_str(), guard, capture, keys);
        let doing = format!("touch {} keys of {feed}", keys.len());
        let reply = inner.eval(&doing, feed, &TOUCH, args).await?;
        let answered = Instant::now();
        let mut touched =
            Touched::decode(reply, keys.len()).map_err(|what| Error::malformed(&doing, what))?;
        if touched.seen.contains(&Seen::Elsewhere) {
            inner.refresh.notify_one();
        }
        let until = answered + Duration::from_millis(capture.within_ms);
        while !touched.more.is_empty() && Instant::now() < until {
            if !self.read_more(feed, keys, capture, &mut touched).await {
                break;
            }
        }
        Ok(touched)
    }

    /// Reads values that found no room in the page; false when there is nothing to be had.
    async fn read_more(&self, feed: &Feed, keys: &[Bytes], capture: Capture, touched: &mut Touched) -> bool {
        let asked: Vec<Bytes> = touched.more.iter().filter_map(|&at| keys.get(at).cloned()).collect();
        // The touch stands, with its proofs, whatever becomes of the values.
        let Ok(found) = self.values_page(feed, &asked, capture.limit).await else { return false };
        let asked = std::mem::take(&mut touched.more);
        let before = asked.len();
        for (at, found) in asked.into_iter().zip(found) {
            match found {
                // It has ended since: the look before this one may know its value.
                Some(Found::Missing) => {}
                Some(found) => drop(touched.captured.insert(at, found)),
                None => touched.more.push(at),
            }
        }
        touched.more.len() < before
    }

    /// What keys of one node hold, at most 256; `None` for those that have to be asked for again.
    pub(super) async fn values_page(
        &self,
        feed: &Feed,
        keys: &[Bytes],
        limit: u32,
    ) -> Result<Vec<Option<Found>>> {
        let doing = format!("read the values of {} keys of {feed}", keys.len());
        let reply = self.inner().eval(&doing, feed, &VALUES, values_args(limit, keys)).await?;
        found_values(reply, keys.len()).map_err(|what| Error::malformed(&doing, what))
    }
}

impl Inner {
    /// Runs a script at a node.
    async fn eval(&self, doing: &str, feed: &Feed, script: &Two, args: Vec<Bytes>) -> Result<Reply> {
        let until = Instant::now() + self.deadline();
        let peer = self.peer(doing, &feed.node)?;
        let line = peer.line(&self.dial, feed.db, self.deadline()).await?;
        let cluster = self.at.is_cluster();
        let run = async |text| {
            let left = until.saturating_duration_since(Instant::now());
            let answer = line.eval(text, vec![], args.clone(), left);
            // One node must not hold up others.
            if cluster { line.while_up(answer).await } else { answer.await }
        };
        let first = if cluster && !self.flagless.load(Relaxed) { script.anywhere } else { script.plain };
        let answer = match run(first).await {
            // Not executed: a server before 7.0 does not get beyond the first line.
            Err(fault) if cluster && fault.text.contains("unexpected symbol near '#'") => {
                self.flagless.store(true, Relaxed);
                run(script.plain).await
            }
            other => other,
        };
        answer.map_err(|fault| self.blame(doing, &peer, fault))
    }

    /// Names what was being done; what says that the node has lost its place makes the follower look.
    pub(super) fn blame(&self, doing: &str, peer: &Peer, mut fault: Fault) -> Error {
        if LOST.iter().any(|said| fault.text.contains(said)) {
            self.refresh.notify_one();
        }
        if fault.kind == ErrorKind::Closed && !self.closed.load(Relaxed) {
            fault = Fault::new(ErrorKind::Unavailable, "the node is no primary any more");
        }
        fault.during(doing, peer.place())
    }
}
