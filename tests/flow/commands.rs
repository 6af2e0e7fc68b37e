//! The commands of `overdue`, each against a private server: what they print, their exit codes, wrong input.

#![allow(clippy::unwrap_used, reason = "only tests stand on the stage")]

mod audit;
mod cluster;
mod dead;
mod discard;
mod doctor;
mod pace;
mod probe;
mod queues;
mod show;
mod stage;
mod tail;
mod timers;
mod top;
