//! The listener of Overdue: turns Redis notifications into calls of the fire script. It is thin: it
//! decides nothing.
//!
//! Notifications are hints. Redis sends them when it deletes a key, not when its time ends, and only to
//! whoever listens at that instant. So nothing here is relied on: what a full channel drops, what a
//! failed call leaves, what a reconnect misses is a *gap*, counted and told to whoever sweeps. The script
//! decides by the server's clock whether a named timer is due; a forged or late notification changes
//! nothing.
//!
//! The listener fails fast at start, and later reconnects for ever. It never calls Redis from the task
//! that reads the subscription.

mod flags;
mod gaps;
mod lane;
mod listener;
mod settings;

pub use crate::listener::Listener;
pub use crate::settings::{KeyspaceEvents, Settings};
