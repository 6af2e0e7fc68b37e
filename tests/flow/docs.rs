//! What README and docs/ tell people to write works.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod coming_from;
mod errors;
mod idempotency;
mod names;
mod readme;
mod reference;
mod settings;
mod sources;

use overdue_tests::{blocks, terminal};
