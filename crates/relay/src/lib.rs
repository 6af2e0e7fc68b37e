//! The listener of Overdue: turns Redis notifications into calls of the fire script. It is thin: it
//! decides nothing.
//!
//! Notifications are hints. Redis sends them when it deletes a key, not when its time ends, and only to
//! whoever listens at that instant. So nothing here is relied on: what a full channel drops, what a
//! failed call leaves, what a reconnect misses is a *gap*, counted and told to whoever sweeps. The script
//! decides by the server's clock whether a named timer is due; a forged or late notification changes
//! nothing.
//!
//! The [`Listener`] hears of keyed timers; [`Flags`] sees to it that servers send what the two need; [`Memory`] reads how full they are, for the metrics. The [`Watcher`] hears of watched keys, of which a notification may be all
//! that is ever known: there every expiry has a name, and what is not settled yet is known too.
//!
//! Both fail fast at start, and later reconnect for ever. They never call Redis from the task that reads the
//! subscription.

mod flags;
mod gaps;
mod lane;
mod listener;
mod memory;
mod settings;
mod watching;

pub use crate::flags::{Flags, missing as missing_flags};
pub use crate::listener::Listener;
pub use crate::memory::Memory;
pub use crate::settings::{KeyspaceEvents, Settings};
pub use crate::watching::{Notifications, ScanNow, WatchSettings, Watcher, ends_of_canaries, watch_patterns};
