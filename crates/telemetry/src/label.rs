//! Label values that come from a closed set. Queue and group names are the only open ones, and Redis
//! bounds those.

macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $means:literal])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[doc = $means])* $value,)* }

        impl $name {
            /// Every value, in the order of the definition.
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            /// Every value as it stands in the label.
            pub const WORDS: &[&'static str] = &[$($text,)*];

            /// What each of them means, in the same order.
            pub const MEANINGS: &[&'static str] = &[$(concat!($($means),*),)*];

            /// The value as it stands in the label.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// A closed set whose words other crates define; tests hold it to theirs.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident [$($text:literal),* $(,)?]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl $name {
            /// Every value as it stands in the label.
            pub const WORDS: &[&'static str] = &[$($text,)*];

            /// They are explained where they are defined.
            pub const MEANINGS: &[&'static str] = &[];
        }
    };
}

words! {
    /// `word` of what was settled of a watched key: the answers of the settle script (PROTOCOL.md section 3).
    SettledWord [
        "OK", "GONE", "WAIT", "STALE", "FIRED", "FIRED_OLD", "DUP", "PAID", "DONE", "DROPPED", "UNPROVEN", "OLD", "MORE",
    ]
}

words! {
    /// `kind` of a loop's error: a kind of the store's errors, or what a loop says of itself.
    ErrorWord [
        "settings", "unreachable", "refused", "too_old", "not_redis", "unavailable", "out_of_memory",
        "outcome_unknown", "no_group", "wrong_type", "newer_format", "malformed", "closed", "script",
        "subscription_down", "unanswered", "deadline",
    ]
}

words! {
    /// `call`: what a round trip carries: a script of `lua/`, a read that blocks, or any other command.
    CallWord [
        "schedule", "cancel", "sweep", "sweep_retries", "fire", "touch", "settle", "due", "forget", "join",
        "complete", "apply", "retry", "release", "bury", "renew", "claim", "reclaim", "retire", "trim",
        "replay", "discard", "drop", "store/field", "store/hash", "store/page", "store/record", "store/setting",
        "store/values", "store/waiting",
        "read", "command",
    ]
}

words! {
    /// `role` of a process.
    ProgramRole ["relay", "consumer"]
}

words! {
    /// `result` of a round trip: answered, the script was not there yet and is sent whole, or a kind of the store's errors.
    CallResult [
        "ok", "no_script", "settings", "unreachable", "refused", "too_old", "not_redis", "unavailable", "out_of_memory",
        "outcome_unknown", "no_group", "wrong_type", "newer_format", "malformed", "closed", "script",
    ]
}

label! {
    /// `role` of a connection, by what it carries.
    ConnectionRole {
        /// Scripts and commands.
        Command = "command",
        /// Reads that block.
        Reader = "reader",
        /// Notifications and messages.
        Subscription = "subscription",
    }
}

label! {
    /// `reason` why an expiry that was heard put nothing into the stream.
    SuppressedReason {
        /// The timer had been fired, cancelled or armed again before.
        Gone = "gone",
        /// The timer is not due yet: it was armed again.
        Early = "early",
        /// The end of the watched key had fired before.
        Known = "known",
        /// It is too old to be told from what was forgotten.
        Old = "old",
        /// The watched key was evicted, and its rule ignores that.
        Evicted = "evicted",
    }
}

label! {
    /// `source`: what made a timer fire. The same words as the entry field `src`.
    Source {
        /// A Redis notification named it.
        Notification = "notification",
        /// A sweep found it in the index.
        Index = "index",
    }
}

label! {
    /// `result` of a sweep.
    SweepResult {
        /// It fired something.
        Fired = "fired",
        /// Nothing was due.
        Empty = "empty",
        /// Redis did not answer, or answered with an error.
        Failed = "failed",
    }
}

label! {
    /// `result` of a timeout that a plain consumer did not acknowledge in time.
    ReclaimResult {
        /// It waits for its next attempt.
        Retried = "retried",
        /// It was the last attempt: a dead letter.
        Buried = "buried",
    }
}

label! {
    /// `result` of a notification.
    NotificationResult {
        /// It fired its timer.
        Fired = "fired",
        /// The timer had been fired, cancelled or armed again before.
        Gone = "gone",
        /// The timer is not due yet.
        Early = "early",
        /// The key is none of ours.
        Ignored = "ignored",
        /// The call failed; the sweep fires it.
        Failed = "failed",
    }
}

label! {
    /// `reason` of a gap: a stretch of time in which notifications may have been missed.
    GapReason {
        /// The subscription was made anew.
        Reconnect = "reconnect",
        /// The Redis library skipped messages.
        Lag = "lag",
        /// Our bounded channel was full.
        Overflow = "overflow",
        /// What was heard could not be settled for too long.
        Failed = "failed",
    }
}

label! {
    /// `event`: what a notification of a watched key says.
    WatchEvent {
        /// It expired.
        Expired = "expired",
        /// It was evicted.
        Evicted = "evicted",
        /// Its end may have changed.
        Changed = "changed",
        /// It was removed or moved away.
        Removed = "removed",
        /// A marker of a touch.
        Marker = "marker",
        /// A key of no rule, or an event that changes no end.
        Ignored = "ignored",
    }
}

label! {
    /// `by`: what was settled of a watched key.
    SettledBy {
        /// A notification that fires.
        Event = "event",
        /// A look that a notification or a SCAN asked for.
        Look = "look",
        /// A nudge at its due.
        Nudge = "nudge",
    }
}

label! {
    /// `result` of a nudge.
    NudgeResult {
        /// It made the key expire, and that fired.
        Fired = "fired",
        /// It made the key expire, and that had fired before.
        Known = "known",
        /// The key lives: it ends later, or has no TTL any more.
        Alive = "alive",
        /// The key is gone, which proves nothing: it waits.
        Gone = "gone",
        /// It could not be settled, and is nudged again: a later look was applied, or another node serves the key.
        Again = "again",
        /// The node or the index did not answer, or answered with an error.
        Failed = "failed",
    }
}

label! {
    /// `result` of a key that was gone at its due.
    UnprovenResult {
        /// It fired without proof.
        Fired = "fired",
        /// It was dropped, as its rule says.
        Dropped = "dropped",
        /// It was dropped because its database seems to have been flushed.
        Flushed = "flushed",
        /// A notification or another relay has told what became of it.
        Known = "known",
    }
}

label! {
    /// `result` of one round of a canary.
    CanaryResult {
        /// All of it was heard.
        Heard = "heard",
        /// Its end was heard, its deadline was not.
        Partly = "partly",
        /// Its end was not heard.
        Missed = "missed",
        /// The node did not answer.
        Unanswered = "unanswered",
    }
}

label! {
    /// `reason` of a SCAN.
    ScanReason {
        /// The first of a node and database.
        Start = "start",
        /// Notifications may have been missed.
        Gap = "gap",
        /// Notifications do not come.
        Blind = "blind",
        /// Many keys have gone at once.
        Flush = "flush",
        /// It was time.
        Periodic = "periodic",
    }
}

label! {
    /// `result` of a SCAN.
    ScanResult {
        /// It came to its end.
        Done = "done",
        /// It was given up: another begins, or the node is gone.
        GivenUp = "given_up",
    }
}

label! {
    /// `role` of a connection or a subscription.
    Role {
        /// Runs the scripts.
        Command = "command",
        /// Blocked in XREADGROUP.
        Reader = "reader",
        /// Hears `expired` for the listener.
        Notification = "notification",
        /// Hears of earlier deadlines and new queues for the reconciler.
        Wake = "wake",
        /// Hears what happens to watched keys.
        Watch = "watch",
    }
}

label! {
    /// `result` of one attempt.
    HandledResult {
        /// Handled and acknowledged.
        Done = "done",
        /// To be tried again, whoever asked for it.
        Retry = "retry",
        /// Rejected by the handler: a dead letter.
        Reject = "reject",
        /// The attempts are used up: a dead letter.
        Exhausted = "exhausted",
        /// Not an entry that can be decoded: a dead letter, the handler was not called.
        Malformed = "malformed",
        /// The lease had gone to another consumer; this outcome changed nothing.
        Lost = "lost",
        /// Given back unhandled at shutdown.
        Released = "released",
        /// To be tried again later at the same attempt, as the handler asked.
        Postponed = "postponed",
        /// Given back at the same attempt: what the handler works with was down or halted.
        Unreachable = "unreachable",
        /// Three holders died while it ran alone: a dead letter.
        Deaths = "deaths",
        /// Acknowledged, but not all of its effects could be applied: a dead letter.
        Incomplete = "incomplete",
    }
}

label! {
    /// `loop`: what keeps going round in a process of ours.
    Loop {
        /// Fires what is due from the index and the retry index.
        Sweep = "sweep",
        /// Deletes what every group has finished.
        Trim = "trim",
        /// Hands out again what the consumers of a plain group did not acknowledge.
        Plain = "plain",
        /// Reads depths and ages for the metrics.
        Sample = "sample",
        /// Reads how much memory the nodes use.
        Memory = "memory",
        /// Nudges watched keys that are due.
        Nudge = "nudge",
        /// Forgets old names of watched keys.
        Forget = "forget",
        /// Looks whether a database of watched keys was flushed.
        Flush = "flush",
        /// Hears notifications and fires what they name.
        Listen = "listen",
        /// Re-reads the list of queues.
        Queues = "queues",
        /// Writes this process into the list of members.
        Member = "member",
        /// Reads timeouts for a group.
        Read = "read",
        /// Takes over entries whose lease ran out.
        Claim = "claim",
        /// Renews the leases of what is in hand.
        Renew = "renew",
        /// Acknowledges what is done.
        Ack = "ack",
        /// Hears what happens to watched keys.
        Watch = "watch",
        /// Settles what was heard of watched keys.
        Settle = "settle",
        /// Sees to it that every node's notifications have markers.
        Mark = "mark",
        /// Looks for watched keys with SCAN.
        Scan = "scan",
        /// Tries whether notifications come.
        Canary = "canary",
    }
}
