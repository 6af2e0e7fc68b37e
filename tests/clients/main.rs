//! The clients of other languages, beside the client in Rust and the command line: the same keys, the same answers.
#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod agree;
mod cluster;
mod examples;
mod files;
mod language;
mod lost_answer;
mod modes;
mod number;
mod readme;
mod speaker;
mod vectors;
