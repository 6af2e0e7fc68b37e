//! Measures how late each server tells of keys that have ended: what plain listeners live with.
//!
//! Asking for a key that has ended would end it. So a few canaries are written, and their `expired` is waited for where
//! relays hear it. What has not come then is touched: a notification that follows tells a late server from a silent one.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use overdue_relay::ends_of_canaries;
use overdue_store::{Capture, Feed, Node, Nodes, Signal, Subscriber};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::Watching;
use crate::command::doctor::finding::Finding;
use crate::command::doctor::flags;
use crate::command::place;
use crate::output::text;
use crate::settings::Settings;

const CHECK: &str = "expiry";
/// So many keys on each node.
const KEYS: usize = 20;
const LIFE_MS: u64 = 50;
/// How long their notifications are waited for, and those that a touch makes.
const WAIT: Duration = Duration::from_secs(2);
const AFTER_TOUCH: Duration = Duration::from_millis(500);
/// Notifications of any keys that may wait here: as many as a busy server sends in a while.
const CAPACITY: usize = 65_536;

/// Whether notifications come from a node; nothing is said of those that could not be tried.
pub(in crate::command::doctor) type Heard = BTreeMap<Node, bool>;

/// The keys of one node that have not been heard of, each with its end by our clock; and how late the others were.
#[derive(Default)]
struct Trial {
    open: BTreeMap<Bytes, Instant>,
    late: Vec<Duration>,
    touched: bool,
    heard: bool,
    failed: Option<String>,
}

/// A finding for each node.
pub(in crate::command::doctor) async fn look(
    settings: &Settings,
    nodes: &Nodes,
    watching: &Watching,
) -> (Heard, Vec<Finding>) {
    let db = watching.tried();
    let channel = ends_of_canaries(db, watching.mode, &settings.redis.keyspace);
    let (subscriber, mut signals) =
        match Subscriber::open(&settings.redis, place::ROLE, [channel], CAPACITY).await {
            Ok(open) => open,
            Err(error) => return (Heard::new(), vec![unmeasured("", &error.to_string())]),
        };
    let mut trials = plant(settings, nodes, db).await;
    listen(&mut signals, &mut trials, Instant::now() + Duration::from_millis(LIFE_MS) + WAIT).await;
    remove(nodes, db, &mut trials).await;
    listen(&mut signals, &mut trials, Instant::now() + AFTER_TOUCH).await;
    subscriber.close().await;
    let tried = trials.iter().filter(|(_, trial)| trial.failed.is_none());
    let heard = tried.map(|(node, trial)| (node.clone(), trial.heard)).collect();
    let one = trials.len() == 1;
    let at = |node: &Node| if one { String::new() } else { format!("{}: ", nodes.place(node)) };
    (heard, trials.iter().map(|(node, trial)| finding(&at(node), trial)).collect())
}

async fn plant(settings: &Settings, nodes: &Nodes, db: u8) -> BTreeMap<Node, Trial> {
    let mut planting = JoinSet::new();
    for node in flags::all(nodes) {
        let (nodes, keyspace) = (nodes.clone(), settings.redis.keyspace.clone());
        let tag = nodes.tag(&node);
        let run = rand::random::<u32>();
        planting.spawn(async move {
            let feed = Feed { node: node.clone(), db };
            let mut trial = Trial::default();
            for n in 0..KEYS {
                let key = keyspace.canary(&tag, &format!("doctor:{run:08x}:{n}"));
                match nodes.plant(&feed, &key, LIFE_MS).await {
                    Ok(()) => drop(trial.open.insert(key, Instant::now() + Duration::from_millis(LIFE_MS))),
                    Err(error) => {
                        trial.failed = Some(error.to_string());
                        break;
                    }
                }
            }
            (node, trial)
        });
    }
    planting.join_all().await.into_iter().collect()
}

/// Listens until all have come, or until then.
async fn listen(signals: &mut mpsc::Receiver<Signal>, trials: &mut BTreeMap<Node, Trial>, until: Instant) {
    while trials.values().any(|trial| !trial.open.is_empty()) {
        let Ok(Some(signal)) = timeout_at(until, signals.recv()).await else { return };
        match signal {
            // Of a canary it may also be told that it was written.
            Signal::Event { node, name, key, .. } if name == "expired" => {
                if let Some(trial) = trials.get_mut(&node) {
                    trial.take(&key, Instant::now());
                }
            }
            Signal::Lost { node, .. } => {
                let more = "more keys expire than this call can listen to";
                trials.entry(node).or_default().failed = Some(more.to_owned());
            }
            Signal::Closed(node) => {
                trials.entry(node).or_default().failed = Some("the subscription broke".to_owned());
            }
            Signal::Event { .. } | Signal::Up | Signal::Down | Signal::Opened(_) | Signal::Message { .. } => {
            }
        }
    }
}

/// Ends what has not ended, so that nothing of ours is left.
async fn remove(nodes: &Nodes, db: u8, trials: &mut BTreeMap<Node, Trial>) {
    for (node, trial) in trials {
        let keys: Vec<_> = trial.open.keys().cloned().collect();
        let feed = Feed { node: node.clone(), db };
        if keys.is_empty() {
            continue;
        }
        trial.touched = true;
        if let Err(error) = nodes.touch(&feed, &keys, Capture::NONE).await {
            trial.failed.get_or_insert(error.to_string());
        }
    }
}

impl Trial {
    fn take(&mut self, key: &Bytes, now: Instant) {
        let Some(end) = self.open.remove(key) else { return };
        self.heard = true;
        if !self.touched {
            self.late.push(now.saturating_duration_since(end));
        }
    }
}

fn finding(at: &str, trial: &Trial) -> Finding {
    if let Some(failed) = &trial.failed {
        return unmeasured(at, failed);
    }
    if !trial.heard {
        return unmeasured(at, "no notification comes, see its flags");
    }
    let mut late = trial.late.clone();
    late.sort_unstable();
    let within = text::span(WAIT.as_millis() as u64);
    let median = match late.get((KEYS - 1) / 2) {
        Some(&median) => text::span(median.as_millis() as u64),
        None => format!("over {within}"),
    };
    let slow =
        if late.len() < KEYS { ". Relays do not wait for it: they touch keys when they are due" } else { "" };
    let told = late.len();
    Finding::ok(
        CHECK,
        format!(
            "{at}the server's own `expired` now: {told} of {KEYS} keys within {within} of their end, p50 {median}{slow}"
        ),
    )
}

fn unmeasured(at: &str, why: &str) -> Finding {
    Finding::ok(CHECK, format!("{at}how late the server's own `expired` is can't be measured: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_touch_ended_counts_as_heard_and_not_as_told_in_time() {
        let (mut trial, now) = (Trial::default(), Instant::now());
        let key = |n: usize| Bytes::from(n.to_string());
        trial.open.extend((0..KEYS).map(|n| (key(n), now)));
        for n in 0..9 {
            trial.take(&key(n), now + Duration::from_millis(n as u64));
        }
        trial.touched = true;
        (9..KEYS).for_each(|n| trial.take(&key(n), now + WAIT));
        trial.take(&key(0), now);
        let text = format!("{:?}", finding("", &trial));
        assert!(text.contains("9 of 20 keys within 2s of their end, p50 over 2s. Relays"), "{text}");
        trial.late = vec![Duration::from_millis(7); KEYS];
        assert!(
            format!("{:?}", finding("", &trial)).contains("20 of 20 keys within 2s of their end, p50 7ms\"")
        );
    }
}
