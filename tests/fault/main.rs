//! One file for each hazard: something breaks, and no timeout is lost or fired twice.

// Under the compiler's 128: an application's futures, with ours inside, must not meet its limit.
#![recursion_limit = "96"]
#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod backlog;
mod certificates;
mod consumers;
mod damage;
mod exec;
mod flags;
mod nodes;
mod notifications;
mod payloads;
mod pipe;
mod plain;
mod probes;
mod races;
mod refusals;
mod relays;
mod rights;
mod rolling;
mod scene;
mod secrets;
mod server_faults;
mod setups;
mod stage;
mod store_traps;
mod subscriptions;
mod webhook;
