//! Watched keys: ordinary keys with a TTL, whose expiries become timeouts (PROTOCOL.md section 5).
//!
//! The [`reader`] names what it hears by its place among the notifications of its feed, and hands it to the [`lane`]s
//! without ever calling Redis. Lanes settle in batches: what expired is fired, all else is looked at. [`met`] says how
//! far every notification is settled. Beside that, for each feed a [`marker`] keeps markers coming and a [`scanner`]
//! looks for what nobody told of, and for each node a [`canary`] tries whether notifications come at all.

mod canary;
mod context;
mod detour;
mod event;
mod feeds;
mod follower;
mod lane;
mod lines;
mod marker;
mod met;
mod outcomes;
mod patterns;
mod positions;
mod queue;
mod reader;
mod scanner;
mod settings;
mod verdict;
mod walk;
mod watcher;

pub use feeds::ScanNow;
pub use patterns::{ends_of_canaries, of as watch_patterns};
pub use settings::{Notifications, WatchSettings};
pub use watcher::Watcher;
