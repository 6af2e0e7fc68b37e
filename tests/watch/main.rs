//! Watched keys, with whole relays: what the promises say, under load and under faults.
#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]
#![allow(clippy::print_stdout, reason = "a soak says what it came to")]

mod again;
mod away;
mod chaos;
mod churn;
#[cfg(target_os = "linux")]
mod clock;
mod cluster;
mod failover;
mod flush;
mod gaps;
mod load;
mod names;
mod pair;
mod rights;
mod stage;
mod stress;
mod table;
mod truth;
