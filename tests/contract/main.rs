//! Every script against a real server: its contract, cell by cell (PROTOCOL.md sections 3 and 4).
#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod ask_after_unknown_outcome;
mod cancel;
mod complete_counts_once;
mod dead_letters_replayed;
mod discard_and_drop;
mod fenced_outcomes;
mod fire_by_name;
mod foreign_members;
mod generation_never_repeats;
mod join_opens_the_books;
mod keyed_timer_key;
mod leases;
mod out_of_memory;
mod retire_keeps_pending;
mod retries_come_back;
mod rights_missing;
mod schedule_refusals;
mod schedule_table;
mod sweep_pages;
mod trim_keeps_unfinished;
mod wake_messages;
mod watched;
mod watched_barrier;
mod watched_cluster;
mod watched_fires;
mod watched_forgetting;
mod watched_globs;
mod watched_keys_travel;
mod watched_looks;
mod watched_pages;
mod watched_touch;
mod watched_values;
mod wrong_type_writes_nothing;
