//! Sees to it that markers come: names stay near the time, and `met` moves on, though nobody touches a key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use overdue_store::{Backoff, Capture};
use overdue_telemetry::Progress;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::context::{Context, about};
use super::feeds::FeedState;

/// After so long without a marker, whoever sent it, an empty touch makes one.
const QUIET: Duration = Duration::from_millis(400);

/// The markers of one feed.
pub(super) struct Marker {
    pub(super) context: Context,
    pub(super) state: Arc<FeedState>,
    pub(super) progress: Progress,
}

impl Marker {
    /// Runs until `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::default();
        let mut touched: Option<Instant> = None;
        while !stop.is_cancelled() {
            let quiet = about(QUIET);
            let last = self.state.marked().max(touched);
            let wait = last.map_or(Duration::ZERO, |last| quiet.saturating_sub(last.elapsed()));
            let asked = tokio::select! {
                () = stop.cancelled() => break,
                asked = timeout(wait, self.state.touch.notified()) => asked.is_ok(),
            };
            if !asked && self.state.marked().is_some_and(|marked| marked.elapsed() < quiet) {
                self.progress.succeed();
                continue;
            }
            match self.context.looker.nodes().touch(&self.state.feed, &[], Capture::NONE).await {
                Ok(_) => {
                    self.progress.succeed();
                    backoff.reset();
                    touched = Some(Instant::now());
                }
                Err(error) => {
                    self.progress.fail(error.kind().as_str());
                    if let Some(pass) = self.context.throttle.pass("touch failed", Instant::now()) {
                        tracing::warn!(feed = %self.state.feed, %error, "no marker could be set{pass}");
                    }
                    stop.run_until_cancelled(sleep(backoff.next_wait())).await;
                }
            }
        }
        self.progress.retire();
    }
}
