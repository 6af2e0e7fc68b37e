//! Take over what nobody works on (PROTOCOL.md section 3).

use bytes::Bytes;

use super::outcome::Standing;
use super::{Call, number, text};
use crate::answer::{Answer, Malformed};
use crate::entry::{EntryId, RawEntry};
use crate::reply::Reply;
use crate::script::{self, Script};

/// Whose entries to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Those of other consumers whose lease ran out: idle for at least so many milliseconds.
    Others {
        /// The lease, in milliseconds.
        lease_ms: u64,
        /// The claimed entries will run alone, and are counted so: [`ClaimedEntry::deliveries`] grows by 1.
        alone: bool,
    },
    /// Our own, except those in hand.
    Own {
        /// The entries in hand.
        in_hand: Vec<EntryId>,
    },
    /// Our own that were begun alone and go on among others: the counter of each is taken back by 1; nothing is claimed.
    Among {
        /// The entries.
        entries: Vec<EntryId>,
    },
}

/// Claims one page of entries.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Who claims.
    pub by: Standing,
    /// Whose.
    pub holder: Holder,
    /// Only entries after this one.
    pub after: EntryId,
    /// The most entries; at most 256. Payload is bounded by [`super::fire::PAGE_BYTES`] too. 0 is a look, for
    /// [`Holder::Others`]: nothing is claimed, and [`Claimed::next`] is the first entry that could be.
    pub limit: u32,
}

/// A claimed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedEntry {
    /// The entry.
    pub entry: RawEntry,
    /// Who held it.
    pub holder: Bytes,
    /// Redis' delivery counter after this claim: less 1, how often the entry was begun alone. Not the attempt.
    pub deliveries: u64,
}

/// The answer of [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The entries, now ours.
    pub entries: Vec<ClaimedEntry>,
    /// Entries that were pending but deleted by somebody: acknowledged.
    pub gone: u64,
    /// Where to go on; `None` when there is nothing behind. Of a look: the first entry that could be claimed.
    pub next: Option<EntryId>,
}

impl Call for Claim {
    type Answer = Claimed;

    fn script(&self) -> &'static Script {
        &script::CLAIM
    }

    fn what(&self) -> String {
        let p = &self.by.partition;
        format!("claim entries for group {} in {}/{}", self.by.group, p.queue(), p.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![self.by.partition.stream()]
    }

    fn args(&self) -> Vec<Bytes> {
        let mut args = vec![text(self.by.group.as_str()), self.by.consumer.clone()];
        let (whose, idle, in_hand) = match &self.holder {
            Holder::Others { lease_ms, alone: false } => ("others", *lease_ms, &[][..]),
            Holder::Others { lease_ms, alone: true } => ("alone", *lease_ms, &[][..]),
            Holder::Own { in_hand } => ("own", 0, in_hand.as_slice()),
            Holder::Among { entries } => ("among", 0, entries.as_slice()),
        };
        args.extend([
            text(whose),
            number(idle),
            self.after.to_bytes(),
            number(self.limit),
            number(super::fire::PAGE_BYTES),
        ]);
        args.extend(in_hand.iter().map(|id| id.to_bytes()));
        args
    }

    fn answer(&self, reply: Reply) -> Result<Claimed, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.count()?;
        let next = answer.text()?;
        let gone = answer.u64()?;
        let mut entries = Vec::new();
        while !answer.is_empty() {
            let shape = Malformed("a claimed entry is not [id, fields, holder, deliveries]");
            let mut parts = answer.array()?;
            let deliveries = parts.pop().as_ref().and_then(Reply::as_u64).ok_or(shape)?;
            let holder = parts.pop().and_then(Reply::into_bytes).ok_or(shape)?;
            let entry = RawEntry::from_reply(Reply::Array(parts))?;
            entries.push(ClaimedEntry { entry, holder, deliveries });
        }
        let next = if next.is_empty() { None } else { Some(next.parse()?) };
        Ok(Claimed { entries, gone, next })
    }
}
