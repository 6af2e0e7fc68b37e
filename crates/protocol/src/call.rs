//! The calls of the scripts: keys, arguments, answers (PROTOCOL.md section 3).
//!
//! Each call is a value. The store sends any [`Call`]; nothing else builds script arguments.

use bytes::Bytes;

use crate::answer::{self, Malformed};
use crate::reply::Reply;
use crate::script::Script;

mod apply;
mod claim;
mod due;
mod fire;
mod group;
mod keep;
mod outcome;
mod reclaim;
mod schedule;
mod watch;

pub use apply::{Applied, Apply, ApplyItem};
pub use claim::{Claim, Claimed, ClaimedEntry, Holder};
pub use due::{DueKeys, DuePage, Forget, Forgot};
pub use fire::{Fire, Fired, FiredWord, PAGE, PAGE_BYTES, Sweep, SweepRetries, Swept, SweptRetries};
pub use group::{Drop, Dropped, From, Join, Joined, Retire, Retired};
pub use keep::{Discard, DiscardItem, Discarded, Replay, Replayed, Trim, Trimmed};
pub use outcome::{
    Bury, BuryItem, Complete, CompleteItem, Completed, Release, Renew, Retry, RetryItem, Standing, Words,
};
pub use reclaim::{Reclaim, Reclaimed};
pub use schedule::{
    Armed, Ask, Cancel, CancelItem, Cancelled, Change, Mode, Schedule, ScheduleItem, Scheduled, When,
};
pub use watch::{Settle, SettleItem, SettleOp, SettlePayload, Settled, SettledWord, Sight};

/// One run of a script.
pub trait Call: Send + Sync {
    /// What the script answers, decoded.
    type Answer: Send;

    /// Whether the script writes the books, so that its answer begins with a side error.
    const BOOKS: bool = false;

    /// The script.
    fn script(&self) -> &'static Script;

    /// What this call does, for errors and logs: "arm 3 timers in orders/0".
    fn what(&self) -> String;

    /// KEYS, all in one slot, in the order of the script's header.
    fn keys(&self) -> Vec<Bytes>;

    /// ARGV, in the order of the script's header.
    fn args(&self) -> Vec<Bytes>;

    /// Decodes the answer.
    ///
    /// # Errors
    /// The reply is not what the script's header says.
    fn answer(&self, reply: Reply) -> Result<Self::Answer, Malformed>;

    /// What of the books, or which wake message, could not be written: a server's error. All else was done.
    ///
    /// Worth a warning, never an error: the store says it.
    fn side_error(&self, reply: &Reply) -> Option<String> {
        answer::side_error(reply).filter(|_| Self::BOOKS).map(str::to_owned)
    }
}

fn number(n: impl Into<u64>) -> Bytes {
    Bytes::from(n.into().to_string())
}

fn text(t: &str) -> Bytes {
    Bytes::copy_from_slice(t.as_bytes())
}
