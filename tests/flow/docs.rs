//! What README and docs/ tell people to write works.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod coming_from;
mod idempotency;
mod names;
mod readme;
mod reference;
mod settings;

use overdue_tests::{blocks, terminal};
