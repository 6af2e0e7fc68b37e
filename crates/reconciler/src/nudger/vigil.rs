//! Looks after the databases of the watched keys: one that was flushed must not become thousands of false timeouts.
//!
//! Every second, and before a key fires without proof, the node is asked how many keys it has and how many it has expired
//! ([`super::flush`] judges). While a database counts as flushed, what is gone without proof is dropped whatever its rule
//! says; expiries that are proven or heard fire as always. A walk drops what is gone before its due, and SCAN is asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overdue_store::{Capture, Error, ErrorKind, Feed, Result};
use overdue_telemetry::{Health, Metric, Progress, Throttle};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::flush::{Reading, Sign, Track};
use super::{Watching, walk};
use crate::Shared;

/// Between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// What is known of each database; shared by the loops of all partitions.
pub(super) struct Vigil {
    watching: Watching,
    health: Health,
    throttle: Arc<Throttle>,
    tracks: Mutex<BTreeMap<Feed, Track>>,
    /// Flushed, and to be walked over.
    to_walk: Mutex<Vec<Feed>>,
    declared: Notify,
}

impl Vigil {
    pub(super) fn new(shared: &Shared, watching: &Watching) -> Self {
        Self {
            watching: watching.clone(),
            health: shared.health.clone(),
            throttle: Arc::clone(&shared.throttle),
            tracks: Mutex::default(),
            to_walk: Mutex::default(),
            declared: Notify::new(),
        }
    }

    /// So much became known of keys of a feed that were due and were nudged, and so many of them the nudge made to expire.
    pub(super) fn nudged(&self, feed: &Feed, nudged: u64, proven: u64) {
        self.tracks().entry(feed.clone()).or_default().nudged(Instant::now(), nudged, proven);
    }

    /// Keys with these deadlines, unix milliseconds, are gone without proof, as a touch at `position` or an earlier one saw.
    /// Answers whether their database counts as flushed; a node that does not answer leaves that as it was.
    pub(super) async fn is_flushed(&self, feed: &Feed, dues_ms: &[u64], position: u64) -> bool {
        let stale = self.tracks().get(feed).is_none_or(|track| track.position() < position);
        if stale && let Err(error) = self.read(feed).await {
            self.say(feed, &error);
        }
        let now = Instant::now();
        let sign = self.tracks().entry(feed.clone()).or_default().missing(now, dues_ms);
        self.judge(feed, sign, now);
        self.tracks().get(feed).is_some_and(Track::is_flushed)
    }

    /// Runs until `stop`.
    pub(super) async fn run(self: Arc<Self>, progress: Progress, stop: CancellationToken) {
        let mut walks: JoinSet<Feed> = JoinSet::new();
        let mut next = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep_until(next) => {
                    next = Instant::now() + EVERY;
                    self.read_all(&progress).await;
                    self.end();
                }
                () = self.declared.notified() => {
                    for feed in std::mem::take(&mut *lock(&self.to_walk)) {
                        let (looker, stop) = (self.watching.looker.clone(), stop.clone());
                        walks.spawn(async move {
                            walk::over(&looker, &feed, &stop).await;
                            feed
                        });
                    }
                }
                Some(walked) = walks.join_next() => {
                    // A walk does not panic; should it, the state stays until the process ends.
                    if let Ok(feed) = walked {
                        self.tracks().entry(feed).or_default().walked();
                    }
                }
            }
        }
        walks.join_all().await;
        progress.retire();
    }

    async fn read_all(self: &Arc<Self>, progress: &Progress) {
        let looker = &self.watching.looker;
        let mut feeds = looker.nodes().feeds().borrow().clone();
        feeds.retain(|feed| looker.watches(feed));
        self.tracks().retain(|feed, track| feeds.contains(feed) || track.is_flushed());
        let mut reading = JoinSet::new();
        for feed in feeds {
            let vigil = Arc::clone(self);
            reading.spawn(async move { vigil.read(&feed).await.map_err(|error| (feed, error)) });
        }
        let mut failed: Option<ErrorKind> = None;
        let mut read = false;
        while let Some(Ok(done)) = reading.join_next().await {
            match done {
                Ok(()) => read = true,
                Err((feed, error)) => {
                    self.say(&feed, &error);
                    failed = Some(error.kind());
                }
            }
        }
        match failed {
            Some(kind) if !read => progress.fail(kind.as_str()),
            _ => progress.succeed(),
        }
    }

    /// Asks the node of a feed.
    async fn read(&self, feed: &Feed) -> Result<()> {
        let nodes = self.watching.looker.nodes();
        let touched = nodes.touch(feed, &[], Capture::NONE).await?;
        let info = match nodes.info(&feed.node, "default").await {
            Ok(info) => info,
            // The one right that is not needed for the work itself.
            Err(error) if error.kind() == ErrorKind::Refused => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        let number = |name: &str| info.get(name).and_then(|text| text.parse::<u64>().ok());
        let ended = number("expired_keys").map(|expired| expired + number("evicted_keys").unwrap_or(0));
        // Of one instant with the other: in a storm, keys expire between two answers.
        let keys = match (ended, info.get(&format!("db{}", feed.db))) {
            (None, _) => Some(touched.dbsize),
            (Some(_), None) => Some(0), // An empty database is not told of.
            (_, Some(line)) => line.split(',').find_map(|part| part.strip_prefix("keys=")?.parse().ok()),
        };
        let at = Instant::now();
        let mut tracks = self.tracks();
        let track = tracks.entry(feed.clone()).or_default();
        let sign = track.read(Reading {
            at,
            position: touched.position,
            keys: keys.unwrap_or(touched.dbsize),
            ended: ended.unwrap_or_else(|| track.proven()),
            run: info.get("run_id").cloned().unwrap_or_default(),
        });
        drop(tracks);
        self.judge(feed, sign, at);
        Ok(())
    }

    fn judge(&self, feed: &Feed, sign: Option<Sign>, now: Instant) {
        let Some(sign) = sign else { return };
        if !self.tracks().entry(feed.clone()).or_default().declare(now) {
            return;
        }
        tracing::error!(
            %feed,
            %sign,
            "the database seems to have been flushed or swapped: keys that are gone without proof are dropped and not \
             fired for now, whatever their rules say; if it was not flushed, look for whoever deletes so many keys"
        );
        let name = feed.to_string();
        Metric::Flushed.set(1.0, &[&name]);
        Metric::Flushes.count(1, &[&name]);
        let why = format!("{sign}: keys that are gone without proof are dropped for now");
        self.health.set_degraded(&format!("flushed {name}"), Some(why));
        (self.watching.ask_scan)(feed);
        lock(&self.to_walk).push(feed.clone());
        self.declared.notify_one();
    }

    /// Ends what is over.
    fn end(&self) {
        let now = Instant::now();
        for (feed, track) in &mut *self.tracks() {
            if track.end(now) {
                let name = feed.to_string();
                tracing::info!(%feed, "no sign of a flushed database any more: the rules hold again");
                Metric::Flushed.set(0.0, &[&name]);
                self.health.set_degraded(&format!("flushed {name}"), None);
            }
        }
    }

    fn say(&self, feed: &Feed, error: &Error) {
        if let Some(pass) = self.throttle.pass("reading a node failed", std::time::Instant::now()) {
            tracing::warn!(%feed, %error, "cannot tell whether the database was flushed{pass}");
        }
    }

    fn tracks(&self) -> MutexGuard<'_, BTreeMap<Feed, Track>> {
        lock(&self.tracks)
    }
}

/// A panic elsewhere does not make these wrong: each holds whole values at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
