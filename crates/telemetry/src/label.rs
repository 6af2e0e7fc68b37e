//! Label values that come from a closed set. Queue and group names are the only open ones, and Redis
//! bounds those.

macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$value_doc])* $value,)* }

        impl $name {
            /// Every value, in the order of the definition.
            pub const ALL: &[Self] = &[$(Self::$value,)*];

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
    }
}

label! {
    /// `loop`: what keeps going round in a process of ours.
    Loop {
        /// Fires what is due from the index and the retry index.
        Sweep = "sweep",
        /// Deletes what every group has finished.
        Trim = "trim",
        /// Reads depths and ages for the metrics.
        Sample = "sample",
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
    }
}
