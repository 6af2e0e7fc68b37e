//! The scripts of `lua/`: name, version, text and the contract in each header.
//!
//! A script's identity is its name and version: a rolling deploy runs old and new side by side.

/// One script of `lua/`, with the parts of `lua/lib/` it needs put before it.
#[derive(Debug)]
pub struct Script {
    /// The file's name without `.lua`.
    pub name: &'static str,
    /// The whole text that is sent to Redis.
    pub text: &'static str,
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $ident:ident = $name:literal $(+ $lib:literal)*;)*) => {
        $(
            $(#[$doc])*
            pub static $ident: Script = Script {
                name: $name,
                text: concat!(
                    $(include_str!(concat!("../../../lua/lib/", $lib, ".lua")),)*
                    include_str!(concat!("../../../lua/", $name, ".lua")),
                ),
            };
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
    /// Creates a group, and its base for the books.
    JOIN = "join" + "clock" + "group" + "live";
    /// Acknowledges, and deletes what nobody else needs.
    COMPLETE = "complete" + "book" + "many" + "group";
    /// Moves a delivered timeout to the retry index, with its next attempt.
    RETRY = "retry" + "clock" + "book" + "many" + "group" + "pack" + "requeue";
    /// Moves a delivered timeout to the retry index, due now, with the same attempt.
    RELEASE = "release" + "clock" + "book" + "many" + "group" + "pack" + "requeue";
    /// Moves a delivered timeout to the dead letters.
    BURY = "bury" + "clock" + "book" + "many" + "group";
    /// Renews leases.
    RENEW = "renew" + "group";
    /// Takes over entries whose lease ran out, or finds one's own.
    CLAIM = "claim" + "many" + "group";
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
