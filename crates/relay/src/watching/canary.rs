//! Tries, again and again, whether the notifications of a node come: a key of our own is touched at its end, and its
//! `expired` must be heard.
//!
//! What is heard of a node comes in order. So a miss is known for sure when a later marker has come and the end has
//! not; only without any marker does time decide. And that time is counted in naps, not by the clock: a process that
//! was stopped wakes up late in one of them, and has the others left to read what has come meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_protocol::watch::Seen;
use overdue_store::{Capture, Error, ErrorKind, Node};
use overdue_telemetry::label::ScanReason;
use overdue_telemetry::{Metric, Progress};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::context::{Context, about};
use super::feeds::FeedState;
use super::verdict::{Round, State, Verdict};

/// Between two rounds while all is well.
const EVERY: Duration = Duration::from_secs(3);
/// Between two rounds else, and before the first.
const SOON: Duration = Duration::from_secs(1);
/// How long a canary lives, in milliseconds.
const LIFE_MS: u64 = 100;
/// How long one that should be dead by our clock is waited for.
const SLACK: (u32, Duration) = (10, Duration::from_millis(10));
/// How long its end may take to be heard: so many naps.
const NAPS: (u32, Duration) = (40, Duration::from_millis(25));

/// The canary of one node, in the lowest database of the rules.
pub(super) struct Canary {
    pub(super) context: Context,
    pub(super) state: Arc<FeedState>,
    pub(super) progress: Progress,
}

impl Canary {
    /// Runs until `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        let node = self.state.feed.node.clone();
        let mut verdict = Verdict::default();
        self.show(verdict.state(), None);
        let mut wait = SOON;
        while stop.run_until_cancelled(sleep(about(wait))).await.is_some() {
            let Some(round) = stop.run_until_cancelled(self.round()).await else { break };
            match &round {
                Round::Unanswered(_) => self.progress.fail("unanswered"),
                _ => self.progress.succeed(),
            }
            if let Some(label) = round.label() {
                Metric::CanaryRounds.count(1, &[label.as_str()]);
            }
            if let Some(before) = verdict.take(&round) {
                self.turn(&node, before, verdict.state(), &round);
            }
            wait = if verdict.state() == State::Healthy { EVERY } else { SOON };
        }
        self.show(State::Unknown, None);
        self.progress.retire();
    }

    async fn round(&self) -> Round {
        if !self.state.is_open() {
            return Round::Missed("its subscription is down");
        }
        let (looker, state) = (&self.context.looker, &self.state);
        let (nodes, feed) = (looker.nodes(), &state.feed);
        let key = looker.store().keyspace().canary(&nodes.tag(&feed.node), &self.context.settings.process);
        let (deadlines, ends) = (state.deadlines_heard.load(Relaxed), state.ends_heard.load(Relaxed));
        if let Err(error) = nodes.plant(feed, &key, LIFE_MS).await {
            return failed(&error);
        }
        sleep(Duration::from_millis(LIFE_MS)).await;
        let (position, proven) = match self.kill(&key).await {
            Ok(Some(killed)) => killed,
            Ok(None) => return Round::Void,
            Err(error) => return failed(&error),
        };
        for _ in 0..NAPS.0 {
            // In this order: what was heard before the marker is counted when the marker is.
            let later = state.marker() > position;
            if state.ends_heard.load(Relaxed) != ends {
                let all = state.deadlines_heard.load(Relaxed) != deadlines;
                return if all { Round::Heard } else { Round::Partly };
            }
            if later {
                break;
            }
            sleep(NAPS.1).await;
        }
        Round::Missed(match (state.is_open(), proven) {
            (false, _) => "its subscription is down",
            (true, true) => "a touch made a key expire, and no notification followed",
            (true, false) => "a key has expired, and no notification came",
        })
    }

    /// Touches the canary at its end: the position, and whether the touch made it expire. `None` = it does not die, or
    /// the node no longer serves it.
    async fn kill(&self, key: &Bytes) -> Result<Option<(u64, bool)>, Error> {
        for _ in 0..SLACK.0 {
            let keys = std::slice::from_ref(key);
            let touched = self.context.looker.nodes().touch(&self.state.feed, keys, Capture::NONE).await?;
            match touched.seen.first() {
                Some(Seen::Proven) => return Ok(Some((touched.position, true))),
                Some(Seen::Gone) => return Ok(Some((touched.position, false))),
                Some(Seen::Due(_)) => sleep(SLACK.1).await,
                Some(Seen::Forever | Seen::Elsewhere) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn turn(&self, node: &Node, before: State, now: State, round: &Round) {
        let why = self.why(now, round);
        self.show(now, why.as_deref());
        for state in self.context.feeds.of_node(node) {
            state.set_blind(now == State::Blind);
            if now == State::Healthy && before != State::Unknown {
                // What was not told of meanwhile.
                state.ask_scan(ScanReason::Gap);
            }
        }
        let place = self.context.looker.nodes().place(node);
        let kind = match now {
            State::Blind => "canary blind",
            State::Degraded => "canary degraded",
            State::Healthy | State::Unknown => "canary healthy",
        };
        match (why, self.context.throttle.pass(kind, Instant::now())) {
            (Some(why), Some(pass)) => tracing::warn!(node = place, "{why}{pass}"),
            (None, Some(pass)) => tracing::info!(node = place, "notifications come{pass}"),
            (_, None) => {}
        }
    }

    fn why(&self, now: State, round: &Round) -> Option<String> {
        let why = match round {
            Round::Missed(why) => why,
            Round::Unanswered(why) | Round::Refused(why) => why.as_str(),
            Round::Heard | Round::Partly | Round::Void => "",
        };
        let flags = self.context.settings.mode.flags();
        match (now, round) {
            (State::Blind, Round::Unanswered(_)) => Some(format!("no notifications come: {why}")),
            (State::Blind, _) => Some(format!(
                "no notifications come ({why}): nudges and SCAN carry on alone, SCAN every second; CONFIG SET \
                 notify-keyspace-events there to include {flags}"
            )),
            (State::Degraded, Round::Partly) => Some(format!(
                "expiries are told of, changed deadlines are not: SCAN finds those, late; CONFIG SET \
                 notify-keyspace-events there to include {flags}"
            )),
            (State::Degraded, Round::Refused(_)) => {
                Some(format!("whether notifications come cannot be tried: {why}"))
            }
            (State::Degraded, _) => Some(format!("a notification has not come ({why}); trying again")),
            (State::Healthy | State::Unknown, _) => None,
        }
    }

    fn show(&self, state: State, why: Option<&str>) {
        let node = self.state.feed.node.as_str();
        let what = format!("canary {node}");
        let breaks = state == State::Blind && !self.context.settings.ready_when_blind;
        let why = why.map(str::to_owned);
        self.context.health.set_broken(&what, why.clone().filter(|_| breaks));
        self.context.health.set_degraded(&what, why.filter(|_| !breaks));
        Metric::CanaryState.set(state.number(), &[node]);
    }
}

/// What a failed command says. A server that is full, or refuses us this key, may send notifications all the same.
fn failed(error: &Error) -> Round {
    match error.kind() {
        ErrorKind::Refused => Round::Refused(error.to_string()),
        ErrorKind::OutOfMemory => Round::Void,
        _ => Round::Unanswered(error.to_string()),
    }
}
