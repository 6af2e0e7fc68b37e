//! The scripts of `lua/`: name, version, text and the contract in each header.
//!
//! A script's identity is its name and version: a rolling deploy runs old and new side by side.

/// One script of `lua/`, with the parts of `lua/lib/` it needs put before it.
#[derive(Debug)]
pub struct Script {
    /// The file's name without `.lua`.
    pub name: &'static str,
    /// The parts of `lua/lib/` that stand before it, in order.
    pub parts: &'static [&'static str],
    /// The whole text that is sent to Redis.
    pub text: &'static str,
}

macro_rules! script {
    ($name:literal, $head:expr $(, $lib:literal)*) => {
        Script {
            name: $name,
            parts: &[$($lib),*],
            text: concat!(
                $head,
                $(include_str!(concat!("../../../lua/lib/", $lib, ".lua")),)*
                include_str!(concat!("../../../lua/", $name, ".lua")),
            ),
        }
    };
}

/// The first line of a script that runs at a node of a cluster, for keys of any slots that the node serves. Redis 6.2 knows no
/// such line, takes it for an error, and needs none.
macro_rules! cross_slot {
    () => {
        "#!lua flags=allow-cross-slot-keys,allow-oom\n"
    };
}

/// What precedes the text of the scripts that end in `_ANYWHERE`.
pub const CROSS_SLOT: &str = cross_slot!();

/// [`TOUCH`] for the keys of a cluster's node.
pub static TOUCH_ANYWHERE: Script = script!("touch", cross_slot!(), "clock", "value");
/// Reads what keys hold, as far as it can be a payload.
pub static VALUES: Script = script!("store/values", "", "value");
/// [`VALUES`] for the keys of a cluster's node.
pub static VALUES_ANYWHERE: Script = script!("store/values", cross_slot!(), "value");

/// What clients in other languages use beside [`SCHEDULE`] and [`CANCEL`], so that they need to read no MessagePack.
pub static CLIENT: [Script; 2] = [script!("client/queue", ""), script!("client/get", "", "record", "put")];

macro_rules! scripts {
    ($($(#[$doc:meta])* $ident:ident = $name:literal $(+ $lib:literal)*;)*) => {
        $(
            $(#[$doc])*
            pub static $ident: Script = script!($name, "" $(, $lib)*);
        )*

        /// Every script, in the order of PROTOCOL.md section 3.
        pub static ALL: &[&Script] = &[$(&$ident),*];
    };
}

scripts! {
    /// Arms or re-arms timers.
    SCHEDULE = "schedule" + "clock" + "book" + "many" + "scores" + "generation" + "record" + "put" + "pack" + "arm";
    /// Disarms timers.
    CANCEL = "cancel" + "clock" + "book" + "many" + "scores" + "record" + "put";
    /// Fires what is due from the index.
    SWEEP = "sweep" + "clock" + "book" + "generation" + "record" + "put" + "fire";
    /// Fires what is due from the retry index.
    SWEEP_RETRIES = "sweep_retries" + "clock" + "book" + "generation" + "record" + "put" + "group";
    /// Fires the given ids, if due.
    FIRE = "fire" + "clock" + "book" + "scores" + "generation" + "record" + "put" + "fire";
    /// Marks a position, and reads when watched keys end, with proof of those it made expire.
    TOUCH = "touch" + "clock" + "value";
    /// Applies what touches and events say of watched keys.
    SETTLE = "settle" + "clock" + "book" + "many" + "scores" + "record" + "put" + "watched" + "debts" + "expiry" + "settled";
    /// Reads watched keys that are due.
    DUE = "due" + "clock" + "put";
    /// Forgets old names and looks of watched keys.
    FORGET = "forget" + "clock";
    /// Creates a group, and its base for the books.
    JOIN = "join" + "clock" + "group" + "live";
    /// Acknowledges, and deletes what nobody else needs.
    COMPLETE = "complete" + "clock" + "book" + "many" + "group" + "history";
    /// Acknowledges with effects.
    APPLY = "apply" + "clock" + "book" + "group" + "history" + "letter" + "foresee" + "effect";
    /// Moves a delivered timeout to the retry index, with its next attempt.
    RETRY = "retry" + "clock" + "book" + "many" + "group" + "pack" + "leave" + "requeue";
    /// Moves a delivered timeout to the retry index, with the same attempt.
    RELEASE = "release" + "clock" + "book" + "many" + "group" + "pack" + "leave" + "requeue";
    /// Moves a delivered timeout to the dead letters.
    BURY = "bury" + "clock" + "book" + "many" + "group" + "leave" + "letter";
    /// Renews leases.
    RENEW = "renew" + "group";
    /// Takes over entries whose lease ran out, or finds one's own.
    CLAIM = "claim" + "many" + "group";
    /// Moves entries of a plain group whose lease ran out to the retry index, or to the dead letters.
    RECLAIM = "reclaim" + "clock" + "book" + "many" + "group" + "pack" + "live" + "leave" + "requeue" + "letter";
    /// Removes an idle consumer that has nothing pending.
    RETIRE = "retire" + "group";
    /// Deletes what every group has finished.
    TRIM = "trim" + "clock" + "book" + "group" + "finished";
    /// Puts a dead letter back into the stream.
    REPLAY = "replay" + "clock" + "book" + "many" + "group";
    /// Takes waiting retries or fired timeouts out by hand.
    DISCARD = "discard" + "book" + "many" + "group" + "finished";
    /// Removes a group with its retries and its part of the books.
    DROP = "drop" + "many" + "group";
}
