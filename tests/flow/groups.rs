//! Several groups on one queue: those that come later, those that are plain, those that are behind, and who left.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod later;
mod left;
mod metrics;
mod plain;
mod retries;
mod stage;
