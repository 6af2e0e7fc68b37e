//! Every metric of Overdue: one enum.
//!
//! To add one, add a line to the table below and feed it from one place. A name is never reused with
//! another meaning: dashboards outlive releases.

pub use metrics::{Counter, Gauge, Histogram};
use metrics::{Key, Label, Level, Metadata, with_recorder};

use crate::metric::Kind::{Counter as COUNTER, Gauge as GAUGE, Histogram as HISTOGRAM};

/// What a number means over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows, until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution, with the upper bounds of its buckets, in the metric's unit.
    Histogram(&'static [f64]),
}

/// From due to fired or handled, in seconds: 1 ms to 5 minutes.
const LATENESS: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// One script call, in seconds. The clients' command deadline is 3 s.
const CALL: &[f64] = &[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0];
/// One run of a handler, in seconds: 1 ms to an hour.
const HANDLER: &[f64] =
    &[0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];
/// Entries in one batch; 256 is the most.
const BATCH: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

struct Spec {
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
}

macro_rules! metrics {
    ($($variant:ident = $name:literal $kind:expr, $unit:literal, [$($label:literal),*], $help:literal;)*) => {
        /// The name of one metric. Values are recorded for one set of label values, given in the order of
        /// [`Metric::labels`]. Before [`crate::Registry::install`] all recording is a no-op, and handles
        /// taken then stay no-ops.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric { $(#[doc = $help] $variant,)* }

        impl Metric {
            /// Every metric, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            const fn spec(self) -> Spec {
                match self {
                    $(Self::$variant => Spec {
                        name: $name, kind: $kind, unit: $unit, labels: &[$($label),*], help: $help,
                    },)*
                }
            }
        }
    };
}

metrics! {
    // Fed by whoever calls the sweep or fire script: the reconciler (index), the relay (notification).
    Lateness = "overdue_lateness_seconds" HISTOGRAM(LATENESS), "s", ["queue", "source"],
        "From due to fired.";
    Fired = "overdue_fired_total" COUNTER, "", ["queue", "source"],
        "Timers fired by this process.";
    FiredFlawed = "overdue_fired_flawed_total" COUNTER, "", ["queue"],
        "Timers fired without a usable record; their payload may be missing.";

    // Fed by the reconciler's sweep loop.
    Sweeps = "overdue_sweeps_total" COUNTER, "", ["queue", "result"],
        "Sweeps, by result: fired, empty, failed.";
    SweepSeconds = "overdue_sweep_seconds" HISTOGRAM(CALL), "s", ["queue"],
        "How long one sweep call took.";

    // Fed by the reconciler's nudge loop.
    Nudges = "overdue_nudges_total" COUNTER, "", ["queue", "result"],
        "Watched keys touched at their due, by result: fired, known, alive, gone, again, failed.";
    NudgeSeconds = "overdue_nudge_seconds" HISTOGRAM(CALL), "s", ["queue"],
        "How long one page of nudges took, settled.";
    NudgesWaiting = "overdue_nudges_waiting" GAUGE, "", ["queue"],
        "Watched keys that were gone at their due and wait for what notifications say of them.";
    Unproven = "overdue_unproven_total" COUNTER, "", ["queue", "result"],
        "Watched keys that were gone at their due, by what became of them: fired, dropped, flushed, known.";
    Strays = "overdue_strays" GAUGE, "", ["queue"],
        "Overdue members of the watched index that no rule of this process matches.";
    StraysRemoved = "overdue_strays_removed_total" COUNTER, "", ["queue"],
        "Members of the watched index removed because their key is gone and no relay has worked on them for a minute.";
    Flushed = "overdue_flushed" GAUGE, "", ["feed"],
        "1 = the database seems flushed or swapped: keys gone without proof are dropped, not fired.";
    Flushes = "overdue_flushes_total" COUNTER, "", ["feed"],
        "Times a database seemed flushed or swapped.";
    FlushDropped = "overdue_flush_dropped_total" COUNTER, "", ["feed"],
        "Watched keys of a flushed database dropped before their due.";
    Forgotten = "overdue_forgotten_total" COUNTER, "", ["queue"],
        "Old names and looks of watched keys forgotten.";

    // Fed by the reconciler's trim loop.
    Trimmed = "overdue_trimmed_total" COUNTER, "", ["queue"],
        "Finished entries deleted from the stream.";

    // Fed by the reconciler's loop over each plain group.
    Reclaimed = "overdue_reclaimed_total" COUNTER, "", ["queue", "group", "result"],
        "Timeouts that plain consumers did not acknowledge in time, by what became of them: retried, buried.";

    // Fed by the reconciler's sample loop; every relay reports the same numbers, so take the maximum.
    Armed = "overdue_armed" GAUGE, "", ["queue"],
        "Timers armed and not fired.";
    Overdue = "overdue_overdue" GAUGE, "", ["queue"],
        "Timers that are due and not fired.";
    OldestOverdue = "overdue_oldest_overdue_seconds" GAUGE, "s", ["queue"],
        "Age of the oldest timer that is due and not fired; 0 = none.";
    RetriesWaiting = "overdue_retries_waiting" GAUGE, "", ["queue"],
        "Timeouts that wait for their next attempt.";
    StreamEntries = "overdue_stream_entries" GAUGE, "", ["queue"],
        "Entries in the stream: waiting, in hand, or not trimmed yet.";
    DeadLetters = "overdue_dead_letters" GAUGE, "", ["queue"],
        "Dead letters that wait for a person.";
    Pending = "overdue_pending" GAUGE, "", ["queue", "group"],
        "Timeouts delivered to the group and not acknowledged.";
    Undelivered = "overdue_undelivered" GAUGE, "", ["queue", "group"],
        "Timeouts that the group has not read yet.";
    GroupBacklog = "overdue_group_backlog" GAUGE, "", ["queue", "group"],
        "Timeouts before the group: not read, in hand, or waiting for their next attempt.";
    GroupOldest = "overdue_group_oldest_pending_seconds" GAUGE, "s", ["queue", "group"],
        "Age of the oldest timeout in the stream that the group has not finished; 0 = none.";
    GroupGone = "overdue_group_gone" GAUGE, "", ["queue", "group"],
        "1 = the group has a part in the books, but Redis has no such group: nothing is handed out to it.";
    Partitions = "overdue_partitions" GAUGE, "", ["queue"],
        "Partitions of the queue.";
    Watched = "overdue_watched" GAUGE, "", ["queue"],
        "Watched keys whose end is known.";
    WatchedOverdue = "overdue_watched_overdue" GAUGE, "", ["queue"],
        "Watched keys that are due and not settled.";
    QueuePaused = "overdue_queue_paused" GAUGE, "", ["queue"],
        "1 = the queue is paused: fired, but not handed out.";

    // Fed by the relay's listener.
    Notifications = "overdue_notifications_total" COUNTER, "", ["result"],
        "Notifications heard, by result: fired, gone, early, ignored, failed.";
    NotificationsDropped = "overdue_notifications_dropped_total" COUNTER, "", [],
        "Notifications lost or dropped on our side; sweeps make up for them.";
    Gaps = "overdue_gaps_total" COUNTER, "", ["reason"],
        "Stretches of time in which notifications may have been missed, by reason: reconnect, lag, overflow, failed.";
    KeyspaceEventsOk = "overdue_keyspace_events_flags_ok" GAUGE, "", [],
        "The worst node: 1 = notify-keyspace-events has the flags we need; 0 = some are missing; -1 = it does not tell.";

    // Fed by the relay's watcher. A feed is a node and a database of it.
    WatchEvents = "overdue_watch_events_total" COUNTER, "", ["event"],
        "What was heard of watched keys, by event: expired, evicted, changed, removed, marker, ignored.";
    WatchCoalesced = "overdue_watch_coalesced_total" COUNTER, "", [],
        "Events that found their key waiting for a look already.";
    WatchWaiting = "overdue_watch_waiting" GAUGE, "", [],
        "Events that wait to be settled.";
    WatchBatch = "overdue_watch_batch_size" HISTOGRAM(BATCH), "", ["by"],
        "Watched keys settled in one batch, by what was settled: event, look, nudge.";
    WatchSettled = "overdue_watch_settled_total" COUNTER, "", ["by", "word"],
        "What became of watched keys, by what was settled (event, look, nudge) and the word of the settle script.";
    MetAge = "overdue_met_age_seconds" GAUGE, "s", ["feed"],
        "Time since everything heard before a marker was last settled.";
    CanaryState = "overdue_canary_state" GAUGE, "", ["node"],
        "2 = notifications come; 1 = some do not; 0 = none do: nudges and SCAN carry on alone; -1 = not known yet.";
    CanaryRounds = "overdue_canary_rounds_total" COUNTER, "", ["result"],
        "Tries whether notifications come, by result: heard, partly, missed, unanswered.";
    Scans = "overdue_scans_total" COUNTER, "", ["reason", "result"],
        "SCANs for watched keys, by reason (start, gap, blind, flush, periodic) and result (done, given_up).";
    ScanKeys = "overdue_scan_keys_total" COUNTER, "", ["feed"],
        "Keys that SCAN walked over, about.";
    ScanLooks = "overdue_scan_looks_total" COUNTER, "", ["feed"],
        "Keys that SCAN found for the rules.";
    ScanProgress = "overdue_scan_progress" GAUGE, "", ["feed"],
        "How far the SCAN under way is, 0 to 1; 1 = none is.";
    ScanLastSuccess = "overdue_scan_last_success_timestamp_seconds" GAUGE, "s", ["feed"],
        "Unix time of the last SCAN that came to its end.";

    // Fed by the owner of each connection: listener, reconciler, consumer.
    SubscriptionUp = "overdue_subscription_up" GAUGE, "", ["role"],
        "1 = the subscription is verified; 0 = sweeps carry on alone.";
    Reconnects = "overdue_reconnects_total" COUNTER, "", ["role"],
        "Connections made anew after the first.";

    // Fed by the consumer.
    DeliveryLateness = "overdue_delivery_lateness_seconds" HISTOGRAM(LATENESS), "s", ["queue", "group"],
        "From due to the start of the handler, first attempts only.";
    Handled = "overdue_handled_total" COUNTER, "", ["queue", "group", "result"],
        "Attempts, by result: done retry reject exhausted malformed lost released postponed unreachable deaths incomplete.";
    HandlerSeconds = "overdue_handler_seconds" HISTOGRAM(HANDLER), "s", ["queue", "group"],
        "How long one run of the handler took.";
    InFlight = "overdue_in_flight" GAUGE, "", ["queue", "group"],
        "Timeouts in the hands of this process.";
    Claims = "overdue_claims_total" COUNTER, "", ["queue", "group"],
        "Timeouts taken over after their holder's lease ran out.";
    Suspects = "overdue_suspects_total" COUNTER, "", ["queue", "group"],
        "Timeouts taken over that ran alone in this process.";
    EndpointUp = "overdue_endpoint_up" GAUGE, "", ["queue", "group"],
        "What the handlers work with: 1 = reached; 0 = down, tried again and again; -1 = halted until a restart.";
    LeasesRenewed = "overdue_leases_renewed_total" COUNTER, "", ["queue", "group"],
        "Leases renewed while a handler ran.";
    LeasesLost = "overdue_leases_lost_total" COUNTER, "", ["queue", "group"],
        "Leases that went to another consumer while the handler ran here; it was cancelled.";
    AckBatch = "overdue_ack_batch_size" HISTOGRAM(BATCH), "", ["queue", "group"],
        "Acknowledgements in one call.";
    Buried = "overdue_buried_total" COUNTER, "", ["queue", "group"],
        "Timeouts made dead letters by this process.";
    GroupRecreated = "overdue_group_recreated_total" COUNTER, "", ["queue", "group"],
        "Times the group was gone (stream deleted, group destroyed, flush) and was created again.";

    // Fed by `Health`, for every loop that registers there.
    LoopLastSuccess = "overdue_loop_last_success_timestamp_seconds" GAUGE, "s", ["loop"],
        "Unix time of the last success of the loop that has waited longest; 0 = one has not succeeded yet.";
    LoopErrors = "overdue_loop_errors_total" COUNTER, "", ["loop", "kind"],
        "Failed turns of our loops, by kind of error.";

    // Fed by `Registry::install`.
    BuildInfo = "overdue_build_info" GAUGE, "", ["version"],
        "Always 1; the version is in the label.";
}

static METADATA: Metadata<'static> = Metadata::new("overdue", Level::INFO, None);

impl Metric {
    /// The name, as Prometheus shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Counter, gauge or histogram.
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.spec().kind
    }

    /// The unit: `s` or nothing.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        self.spec().unit
    }

    /// The label names, in the order in which values are given.
    #[must_use]
    pub const fn labels(self) -> &'static [&'static str] {
        self.spec().labels
    }

    /// One sentence on what it says.
    #[must_use]
    pub const fn help(self) -> &'static str {
        self.spec().help
    }

    /// Adds `n` to a counter. On a hot path keep a [`Metric::counter`].
    pub fn count(self, n: u64, values: &[&str]) {
        self.counter(values).increment(n);
    }

    /// Sets a gauge.
    pub fn set(self, value: f64, values: &[&str]) {
        self.gauge(values).set(value);
    }

    /// Adds one observation to a histogram. On a hot path keep a [`Metric::histogram`].
    pub fn observe(self, value: f64, values: &[&str]) {
        self.histogram(values).record(value);
    }

    /// A handle to one counter: 5 ns for each use, cheap to clone.
    pub fn counter(self, values: &[&str]) -> Counter {
        debug_assert_eq!(self.kind(), Kind::Counter, "{self:?} is no counter");
        with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA))
    }

    /// A handle to one gauge.
    pub fn gauge(self, values: &[&str]) -> Gauge {
        debug_assert_eq!(self.kind(), Kind::Gauge, "{self:?} is no gauge");
        with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA))
    }

    /// A handle to one histogram.
    pub fn histogram(self, values: &[&str]) -> Histogram {
        debug_assert!(matches!(self.kind(), Kind::Histogram(_)), "{self:?} is no histogram");
        with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA))
    }

    fn key(self, values: &[&str]) -> Key {
        debug_assert_eq!(values.len(), self.labels().len(), "{self:?} has the labels {:?}", self.labels());
        let labels: Vec<Label> = self
            .labels()
            .iter()
            .zip(values)
            .map(|(&name, &value)| Label::new(name, value.to_owned()))
            .collect();
        Key::from_parts(self.name(), labels)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_keep_to_the_rules_of_prometheus() {
        let names: BTreeSet<_> = Metric::ALL.iter().map(|m| m.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len(), "two metrics share a name");
        for metric in Metric::ALL {
            let name = metric.name();
            assert!(name.starts_with("overdue_"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert_eq!(metric.kind() == Kind::Counter, name.ends_with("_total"), "{name}");
            assert_eq!(metric.unit() == "s", name.ends_with("_seconds"), "{name}");
            assert!(metric.help().ends_with('.') && metric.help().len() < 120, "{name}: {}", metric.help());
        }
    }

    #[test]
    fn buckets_rise() {
        for metric in Metric::ALL {
            if let Kind::Histogram(buckets) = metric.kind() {
                assert!(buckets.is_sorted_by(|a, b| a < b), "{}", metric.name());
            }
        }
    }

    #[test]
    fn recording_without_a_registry_is_a_no_op() {
        Metric::Fired.count(1, &["nobody", "index"]);
        Metric::Armed.set(1.0, &["nobody"]);
        Metric::SweepSeconds.observe(0.1, &["nobody"]);
    }
}
