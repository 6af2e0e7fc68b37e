//! Watched keys, from the key's end to the stream.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod canary;
mod cluster;
mod listener;
mod load;
mod nudger;
mod scan;
mod stage;
mod together;
