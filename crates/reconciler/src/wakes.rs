//! Hears of earlier deadlines and of new queues. Without it the reconciler looks every 10 ms.

use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_store::{Signal, Subscriber};
use overdue_telemetry::Metric;
use overdue_telemetry::label::Role;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use crate::Shared;

/// Wake messages are hints: what does not fit is made up for by sweeping everything once.
const CAPACITY: usize = 4_096;
/// After a refused subscription: rights may be given while we run.
const AGAIN: Duration = Duration::from_secs(30);

/// Runs until `stop`.
pub(crate) async fn listen(shared: &Shared, stop: &CancellationToken) {
    let role = Role::Wake.as_str();
    let pattern = String::from_utf8_lossy(&shared.store.keyspace().wake_pattern()).into_owned();
    while !stop.is_cancelled() {
        Metric::SubscriptionUp.set(0.0, &[role]);
        let settings = shared.store.settings();
        match Subscriber::open(settings, role, vec![pattern.clone()], CAPACITY).await {
            Ok((subscriber, signals)) => {
                hear(shared, signals, stop).await;
                subscriber.close().await;
            }
            Err(error) => {
                if let Some(pass) = shared.throttle.pass("wake subscription failed", Instant::now()) {
                    tracing::warn!(%error, "no wake messages: looking every 10 ms instead{pass}");
                }
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(AGAIN) => {}
                }
            }
        }
        shared.alarms.set_verified(false);
    }
}

async fn hear(shared: &Shared, mut signals: Receiver<Signal>, stop: &CancellationToken) {
    let role = Role::Wake.as_str();
    let mut first = true;
    loop {
        let signal = tokio::select! {
            () = stop.cancelled() => return,
            signal = signals.recv() => signal,
        };
        match signal {
            None => return,
            Some(Signal::Up) => {
                shared.alarms.set_verified(true);
                Metric::SubscriptionUp.set(1.0, &[role]);
                if !std::mem::take(&mut first) {
                    Metric::Reconnects.count(1, &[role]);
                }
                // Whatever was said before nobody heard.
                shared.alarms.sweep_all();
                shared.alarms.queues_changed();
            }
            Some(Signal::Down) => {
                shared.alarms.set_verified(false);
                Metric::SubscriptionUp.set(0.0, &[role]);
                if let Some(pass) = shared.throttle.pass("wake subscription broke", Instant::now()) {
                    tracing::warn!("no wake messages for now: looking every 10 ms instead{pass}");
                }
            }
            Some(Signal::Lost { .. }) => {
                shared.alarms.sweep_all();
                shared.alarms.queues_changed();
            }
            Some(Signal::Message { channel, payload }) => pass_on(shared, &channel, &payload),
            Some(Signal::Opened(_) | Signal::Closed(_) | Signal::Event { .. }) => {}
        }
    }
}

fn pass_on(shared: &Shared, channel: &Bytes, payload: &Bytes) {
    let keyspace = shared.store.keyspace();
    if *channel == keyspace.queues_wake() {
        shared.alarms.queues_changed();
        return;
    }
    let due = std::str::from_utf8(payload).ok().and_then(|text| text.parse().ok());
    if let (Some(partition), Some(due)) = (keyspace.parse_wake(channel), due) {
        shared.alarms.due(&partition, due);
    }
}
