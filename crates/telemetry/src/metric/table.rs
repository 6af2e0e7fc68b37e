//! The table.

use super::Kind::{Counter as COUNTER, Gauge as GAUGE, Histogram as HISTOGRAM};
use super::Spec;
use crate::label::*;

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

/// The closed set of a label's values; nothing for names that users chose.
macro_rules! words {
    ($of:ident) => {
        &[]
    };
    ($of:ident $set:ident) => {
        $set::$of
    };
}

macro_rules! metrics {
    ($(
        $(#[doc = $about:literal])* $part:ident {
            $($variant:ident = $name:literal $kind:expr, $unit:literal, [$($label:literal $(= $set:ident)?),*], $help:literal;)*
        }
    )*) => {
        /// The name of one metric. Values are recorded for one set of label values, given in the order of
        /// [`Metric::labels`]. Before [`crate::Registry::install`] all recording is a no-op, and handles
        /// taken then stay no-ops.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric { $($(#[doc = $help] $variant,)*)* }

        /// What a metric tells of, and who feeds it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Part { $($(#[doc = $about])* $part,)* }

        impl Part {
            /// Every part, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$part,)*];

            /// One or two sentences on it.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$part => concat!($($about)*),)* }
            }
        }

        impl Metric {
            /// Every metric, in the order of the table.
            pub const ALL: &[Self] = &[$($(Self::$variant,)*)*];

            pub(super) const fn spec(self) -> Spec {
                match self {
                    $($(Self::$variant => Spec {
                        part: Part::$part, name: $name, kind: $kind, unit: $unit, labels: &[$($label),*],
                        words: &[$(words!(WORDS $($set)?)),*],
                        meanings: &[$(words!(MEANINGS $($set)?)),*], help: $help,
                    },)*)*
                }
            }
        }
    };
}

metrics! {
    /// Sweeps of the index, nudges, trims, plain groups, depths and ages. A relay runs it.
    Reconciler {
        // Fed by whoever calls the sweep or fire script: the reconciler (index), the relay (notification).
        Lateness = "overdue_lateness_seconds" HISTOGRAM(LATENESS), "s", ["queue", "source" = Source],
            "From due to fired.";
        Fired = "overdue_fired_total" COUNTER, "", ["queue", "source" = Source],
            "Timers fired by this process.";
        FiredFlawed = "overdue_fired_flawed_total" COUNTER, "", ["queue"],
            "Timers fired without a usable record; their payload may be missing.";

        // Fed by the sweep loop.
        Sweeps = "overdue_sweeps_total" COUNTER, "", ["queue", "result" = SweepResult],
            "Sweeps, by result.";
        FullSweeps = "overdue_full_sweeps_total" COUNTER, "", ["queue"],
            "Sweeps that filled their page: more was due at once.";
        SweepSeconds = "overdue_sweep_seconds" HISTOGRAM(CALL), "s", ["queue"],
            "How long one sweep call took.";

        // Fed by the nudge loop.
        Nudges = "overdue_nudges_total" COUNTER, "", ["queue", "result" = NudgeResult],
            "Watched keys touched at their due, by result.";
        NudgeSeconds = "overdue_nudge_seconds" HISTOGRAM(CALL), "s", ["queue"],
            "How long one page of nudges took, settled.";
        NudgesWaiting = "overdue_nudges_waiting" GAUGE, "", ["queue"],
            "Watched keys that were gone at their due and wait for what notifications say of them.";
        Unproven = "overdue_unproven_total" COUNTER, "", ["queue", "result" = UnprovenResult],
            "Watched keys that were gone at their due, by what became of them.";
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

        // Fed by the trim loop.
        Trimmed = "overdue_trimmed_total" COUNTER, "", ["queue"],
            "Finished entries deleted from the stream.";

        // Fed by the loop over each plain group.
        Reclaimed = "overdue_reclaimed_total" COUNTER, "", ["queue", "group", "result" = ReclaimResult],
            "Timeouts that plain consumers did not acknowledge in time, by what became of them.";

        // Fed by the sample loop; every relay reports the same numbers.
        Armed = "overdue_armed" GAUGE, "", ["queue"],
            "Timers armed and not fired.";
        Overdue = "overdue_overdue" GAUGE, "", ["queue"],
            "Timers that are due and not fired.";
        OldestOverdue = "overdue_oldest_overdue_seconds" GAUGE, "s", ["queue"],
            "Age of the oldest timer that is due and not fired; 0 = none.";
        NextDue = "overdue_next_due_timestamp_seconds" GAUGE, "s", ["queue"],
            "Unix time of the first due of all armed timers, past or to come; absent = none is armed.";
        RetriesWaiting = "overdue_retries_waiting" GAUGE, "", ["queue"],
            "Timeouts that wait for their next attempt.";
        StreamEntries = "overdue_stream_entries" GAUGE, "", ["queue"],
            "Entries in the stream: waiting, in hand, or not trimmed yet.";
        DeadLetters = "overdue_dead_letters" GAUGE, "", ["queue"],
            "Dead letters that wait for a person.";
        Pending = "overdue_pending" GAUGE, "", ["queue", "group"],
            "Timeouts delivered to the group and not acknowledged.";
        GroupLag = "overdue_group_lag" GAUGE, "", ["queue", "group"],
            "Entries that the group has not read yet, as Redis counts them; absent = Redis does not know.";
        GroupBacklog = "overdue_group_backlog" GAUGE, "", ["queue", "group"],
            "Timeouts before the group: not read, in hand, or waiting for their next attempt.";
        GroupOldest = "overdue_group_oldest_pending_seconds" GAUGE, "s", ["queue", "group"],
            "Age of the oldest timeout in the stream that the group has not finished; 0 = none.";
        GroupGone = "overdue_group_gone" GAUGE, "", ["queue", "group"],
            "1 = the group has a part in the books, but Redis has no such group: nothing is handed out to it.";
        Groups = "overdue_groups" GAUGE, "", ["queue"],
            "Groups that Redis has of the queue; 0 = what fires waits for the first one.";
        Partitions = "overdue_partitions" GAUGE, "", ["queue"],
            "Partitions of the queue.";
        Watched = "overdue_watched" GAUGE, "", ["queue"],
            "Watched keys whose end is known.";
        WatchedOverdue = "overdue_watched_overdue" GAUGE, "", ["queue"],
            "Watched keys that are due and not settled.";
        QueuePaused = "overdue_queue_paused" GAUGE, "", ["queue"],
            "1 = the queue is paused: fired, but not handed out.";
    }

    /// The listener, the flags of the server, and its memory.
    Relay {
        // Fed by the listener and, of watched keys, by the watcher.
        Notifications = "overdue_notifications_total" COUNTER, "", ["result" = NotificationResult],
            "Notifications heard, by result.";
        Suppressed = "overdue_suppressed_total" COUNTER, "", ["queue", "reason" = SuppressedReason],
            "Expiries heard that put nothing into the stream, by reason; nudges count in overdue_unproven_total.";
        NotificationsDropped = "overdue_notifications_dropped_total" COUNTER, "", [],
            "Notifications lost or dropped on our side; sweeps make up for them.";
        Gaps = "overdue_gaps_total" COUNTER, "", ["reason" = GapReason],
            "Stretches of time in which notifications may have been missed, by reason.";

        // Fed by the loop over the flags.
        KeyspaceEventsOk = "overdue_keyspace_events_flags_ok" GAUGE, "", [],
            "The worst node: 1 = notify-keyspace-events has the flags we need; 0 = some are missing; -1 = it does not tell.";

        // Fed by the memory loop.
        RedisMemoryUsed = "overdue_redis_used_memory_bytes" GAUGE, "B", ["node"],
            "Memory that the node uses; absent = it does not tell.";
        RedisMemoryMax = "overdue_redis_max_memory_bytes" GAUGE, "B", ["node"],
            "Memory that the node may use; 0 = no limit; absent = it does not tell.";
    }

    /// What a relay hears of watched keys. A feed is a node and a database of it.
    Watcher {
        WatchEvents = "overdue_watch_events_total" COUNTER, "", ["event" = WatchEvent],
            "What was heard of watched keys, by event.";
        WatchCoalesced = "overdue_watch_coalesced_total" COUNTER, "", [],
            "Events that found their key waiting for a look already.";
        WatchWaiting = "overdue_watch_waiting" GAUGE, "", [],
            "Events that wait to be settled.";
        WatchBatch = "overdue_watch_batch_size" HISTOGRAM(BATCH), "", ["by" = SettledBy],
            "Watched keys settled in one batch, by what was settled.";
        WatchSettled = "overdue_watch_settled_total" COUNTER, "", ["by" = SettledBy, "word" = SettledWord],
            "What became of watched keys, by what was settled and the word of the settle script.";
        MetAge = "overdue_met_age_seconds" GAUGE, "s", ["feed"],
            "Time since everything heard before a marker was last settled.";
        CanaryState = "overdue_canary_state" GAUGE, "", ["node"],
            "2 = notifications come; 1 = some do not; 0 = none do: nudges and SCAN carry on alone; -1 = not known yet.";
        CanaryRounds = "overdue_canary_rounds_total" COUNTER, "", ["result" = CanaryResult],
            "Tries whether notifications come, by result.";
        Scans = "overdue_scans_total" COUNTER, "", ["reason" = ScanReason, "result" = ScanResult],
            "SCANs for watched keys, by reason and result.";
        ScanKeys = "overdue_scan_keys_total" COUNTER, "", ["feed"],
            "Keys that SCAN walked over, about.";
        ScanLooks = "overdue_scan_looks_total" COUNTER, "", ["feed"],
            "Keys that SCAN found for the rules.";
        ScanProgress = "overdue_scan_progress" GAUGE, "", ["feed"],
            "How far the SCAN under way is, 0 to 1; 1 = none is.";
        ScanLastSuccess = "overdue_scan_last_success_timestamp_seconds" GAUGE, "s", ["feed"],
            "Unix time of the last SCAN that came to its end.";
    }

    /// The consumer library, and so `overdue consume`.
    Consumer {
        DeliveryLateness = "overdue_delivery_lateness_seconds" HISTOGRAM(LATENESS), "s", ["queue", "group"],
            "From due to the start of the handler, first attempts only.";
        Handled = "overdue_handled_total" COUNTER, "", ["queue", "group", "result" = HandledResult],
            "Attempts, by result.";
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
    }

    /// Connections to Redis, of any process.
    Store {
        // Fed by the store itself.
        RedisCalls = "overdue_redis_calls_total" COUNTER, "", ["call" = CallWord, "result" = CallResult],
            "Round trips to Redis, by what was called and what came of it.";
        RedisCallSeconds = "overdue_redis_call_seconds" HISTOGRAM(CALL), "s", ["call" = CallWord],
            "How long round trips that were answered took, with the wait for a connection; reads that block are left out.";
        RedisConnections = "overdue_redis_connections" GAUGE, "", ["role" = ConnectionRole],
            "Connections that are up in this process.";

        // Fed by the owner of each connection: listener, reconciler, consumer.
        SubscriptionUp = "overdue_subscription_up" GAUGE, "", ["role" = Role],
            "1 = the subscription is verified; 0 = sweeps carry on alone.";
        Reconnects = "overdue_reconnects_total" COUNTER, "", ["role" = Role],
            "Connections made anew after the first.";
    }

    /// Any long-running process.
    Process {
        // Fed by `Health`, for every loop that registers there.
        LoopLastSuccess = "overdue_loop_last_success_timestamp_seconds" GAUGE, "s", ["loop" = Loop],
            "Unix time of the last success of the loop that has waited longest; 0 = one has not succeeded yet.";
        LoopErrors = "overdue_loop_errors_total" COUNTER, "", ["loop" = Loop, "kind" = ErrorWord],
            "Failed turns of our loops, by kind of error.";

        // Fed by `Registry`.
        BuildInfo = "overdue_build_info" GAUGE, "", ["version", "role" = ProgramRole],
            "Always 1; version and role are in the labels.";
        ProcessCpu = "process_cpu_seconds_total" COUNTER, "s", [],
            "CPU that the process used, user and system.";
        ProcessStart = "process_start_time_seconds" GAUGE, "s", [],
            "Unix time at which the process started.";
        ProcessMemory = "process_resident_memory_bytes" GAUGE, "B", [],
            "Memory of the process that is in RAM.";
        ProcessVirtual = "process_virtual_memory_bytes" GAUGE, "B", [],
            "Addresses that the process has taken.";
        ProcessFds = "process_open_fds" GAUGE, "", [],
            "Open files and sockets.";
        ProcessMaxFds = "process_max_fds" GAUGE, "", [],
            "The most files and sockets that may be open.";
        ProcessThreads = "process_threads" GAUGE, "", [],
            "Threads of the process.";
    }
}
