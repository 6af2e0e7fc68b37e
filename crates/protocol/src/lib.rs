//! The words of Overdue: names, keys, records, entries, script texts and their answers.
//!
//! This crate is pure: it does no I/O, reads no clock and knows no async. The specification is
//! `docs/PROTOCOL.md`; each module names the section it implements.

pub mod answer;
pub mod call;
pub mod due;
pub mod effect;
pub mod entry;
pub mod key;
pub mod member;
pub mod name;
pub mod partition;
pub mod queue;
pub mod record;
pub mod reply;
pub mod retry;
pub mod script;
pub mod tally;
pub mod trace;
pub mod watch;

pub use answer::Malformed;
pub use call::Call;
pub use due::Due;
pub use effect::Effect;
pub use entry::{Entry, RawEntry};
pub use key::{Keyspace, Partition};
pub use name::{GroupName, InvalidName, Namespace, QueueName, TimerId};
pub use queue::QueueInfo;
pub use record::Record;
pub use reply::Reply;
pub use script::Script;
pub use trace::TraceParent;

/// A number given to a timer each time it is armed; never used twice (PROTOCOL.md section 2).
pub type Generation = u64;

/// The newest format of records, entries and keys that this code knows.
///
/// A queue that says a higher one is refused: see [`QueueInfo::format`].
pub const FORMAT: u32 = 1;
