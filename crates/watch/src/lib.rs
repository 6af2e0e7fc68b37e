//! Watched keys: what the listener and the reconciler do alike (PROTOCOL.md section 5).
//!
//! A *look* touches keys at their node, and settles at their index what the touch saw. A *fire* settles what a
//! notification or a touch proved. Both may be repeated: every position names one thing, and the script knows what it
//! has applied. This crate has no loops of its own, and no metrics.

mod fire;
mod look;
mod looker;
mod proofs;
mod untrack;

use std::collections::BTreeMap;

use overdue_store::Feed;

pub use fire::{Cause, Fire, Outcome};
pub use look::{Ask, Looked};
pub use looker::Looker;

/// How far every notification of a feed is answered: the last marker whose batch, and all before it, is settled.
///
/// A feed that is not in it has no marker yet, or had a gap since.
pub type Mets = tokio::sync::watch::Receiver<BTreeMap<Feed, u64>>;

/// A value is captured when its key ends within so many milliseconds.
pub const CAPTURE_WITHIN_MS: u64 = 100;
