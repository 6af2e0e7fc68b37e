//! What README and docs/ tell people to write works.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod blocks;
mod coming_from;
mod idempotency;
mod names;
mod readme;
mod settings;
mod terminal;
