//! The consumer library against a real server: each test is named for its hazard.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod effects;
mod faults;
mod keys;
mod leases;
mod leaving;
mod outcomes;
mod reach;
mod stage;
mod suspects;
mod terms;
mod tower;
mod traces;
