//! Watched keys (PROTOCOL.md section 5).

use bytes::{Bytes, BytesMut};

use super::{Call, number};
use crate::answer::{Answer, Malformed};
use crate::key::Partition;
use crate::name::QueueName;
use crate::reply::Reply;
use crate::script::{self, Script};
use crate::watch::{Captured, WatchedKey};

/// Applies what touches and events say, in the order of their positions.
#[derive(Clone, Debug)]
pub struct Settle {
    /// Where.
    pub partition: Partition,
    /// At most 256, and 1 MiB of names and captured values. The same key may stand in it twice: they are applied in
    /// their order.
    pub items: Vec<SettleItem>,
}

/// What is said of one key.
#[derive(Clone, Debug)]
pub struct SettleItem {
    /// Which.
    pub key: WatchedKey,
    /// Its rule: stands in the entry.
    pub rule: QueueName,
    /// Where it stands among the notifications of its node, microseconds. A proof stands one behind its touch.
    pub position: u64,
    /// What.
    pub op: SettleOp,
}

impl SettleItem {
    /// Whether only the key, and what was seen or captured of it, tells it from another.
    fn is_like(&self, other: &Self) -> bool {
        self.position == other.position && self.op.head() == other.op.head() && self.rule == other.rule
    }

    /// About how many bytes it takes in a call: a page of items is at most [`super::PAGE_BYTES`].
    #[must_use]
    pub fn weight(&self) -> usize {
        let captured = match &self.op {
            SettleOp::Look { captured, .. } => captured.as_ref(),
            SettleOp::Event(SettlePayload::Given(captured))
            | SettleOp::Evicted(SettlePayload::Given(captured))
            | SettleOp::Proof(SettlePayload::Given(captured))
            | SettleOp::Unproven(SettlePayload::Given(captured)) => Some(captured),
            _ => None,
        };
        self.key.key.len() + captured.map_or(0, |captured| captured.payload.len())
    }
}

/// What is said of a key.
#[derive(Clone, Debug)]
pub enum SettleOp {
    /// A touch found it so.
    Look {
        /// What it saw.
        found: Sight,
        /// A removal event asked for the look.
        removal: bool,
        /// Its value, when the rule wants it and the end is near.
        captured: Option<Captured>,
    },
    /// A notification says that it expired.
    Event(SettlePayload),
    /// A notification says that it was evicted, and the rule fires for that.
    Evicted(SettlePayload),
    /// A touch made it expire.
    Proof(SettlePayload),
    /// It was gone at its due, and every event before that was applied: fire.
    Unproven(SettlePayload),
    /// The same, and the rule says drop.
    Drop,
}

/// What a look saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It ends then, unix milliseconds.
    Due(u64),
    /// It has no TTL.
    Forever,
    /// There is no such key.
    Gone,
}

/// What the entry carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettlePayload {
    /// Nothing.
    None,
    /// What the last look captured.
    Last,
    /// This.
    Given(Captured),
}

/// What became of each item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// How many entered the stream.
    pub fired: u32,
    /// The server's now, unix milliseconds.
    pub now_ms: u64,
    /// A word and a deadline (unix milliseconds, 0 = not known) for each item, in their order.
    pub words: Vec<(SettledWord, u64)>,
}

/// One word for one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettledWord {
    /// The look was applied.
    Ok,
    /// Gone, and not in the index: nothing to do.
    Gone,
    /// Gone, but in the index: its event, or its due, will tell.
    Wait,
    /// A later look was applied before.
    Stale,
    /// It entered the stream.
    Fired,
    /// The same, though its name is too old to be remembered: the index knew better.
    FiredOld,
    /// It had entered the stream before.
    Dup,
    /// It had been fired without proof: this is the proof.
    Paid,
    /// Nothing is left to do.
    Done,
    /// Removed without proof.
    Dropped,
    /// Fired without proof.
    Unproven,
    /// Its position is too old to be told from what was forgotten; a look is done again.
    Old,
    /// The page of captured values was full: nothing was done, send it again.
    More,
}

impl SettledWord {
    /// Every word.
    pub const ALL: [Self; 13] = [
        Self::Ok,
        Self::Gone,
        Self::Wait,
        Self::Stale,
        Self::Fired,
        Self::FiredOld,
        Self::Dup,
        Self::Paid,
        Self::Done,
        Self::Dropped,
        Self::Unproven,
        Self::Old,
        Self::More,
    ];

    /// As the script writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Gone => "GONE",
            Self::Wait => "WAIT",
            Self::Stale => "STALE",
            Self::Fired => "FIRED",
            Self::FiredOld => "FIRED_OLD",
            Self::Dup => "DUP",
            Self::Paid => "PAID",
            Self::Done => "DONE",
            Self::Dropped => "DROPPED",
            Self::Unproven => "UNPROVEN",
            Self::Old => "OLD",
            Self::More => "MORE",
        }
    }

    /// Whether it entered the stream.
    #[must_use]
    pub const fn is_fired(self) -> bool {
        matches!(self, Self::Fired | Self::FiredOld | Self::Unproven)
    }
}

impl Call for Settle {
    type Answer = Settled;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::SETTLE
    }

    fn what(&self) -> String {
        let p = &self.partition;
        format!("settle {} watched keys in {}/{}", self.items.len(), p.queue(), p.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        vec![p.watched(), p.looked(), p.fired(), p.stream(), p.tally(), p.last()]
    }

    fn args(&self) -> Vec<Bytes> {
        // The names stand in one piece of memory: a piece for each costs more than the rest of it.
        let mut members = BytesMut::with_capacity(self.items.iter().map(|item| item.key.key.len() + 4).sum());
        let mut lengths = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let begin = members.len();
            item.key.put_member(&mut members);
            lengths.push(members.len() - begin);
        }
        let mut members = members.freeze();
        let mut lengths = lengths.into_iter();
        let mut args = Vec::with_capacity(self.items.len() + 5);
        // Most items of a page are of one touch and one rule: what is alike is said once.
        for run in self.items.chunk_by(SettleItem::is_like) {
            let first = &run[0];
            let (op, value) = first.op.head();
            let rule = Bytes::copy_from_slice(first.rule.as_str().as_bytes());
            args.extend([op.into(), number(first.position), value.into(), rule, number(run.len() as u64)]);
            for (item, length) in run.iter().zip(&mut lengths) {
                args.push(members.split_to(length));
                item.op.put_rest(&mut args);
            }
        }
        args
    }

    fn answer(&self, reply: Reply) -> Result<Settled, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.side_error()?;
        let fired = answer.count()? as u32;
        let now_ms = answer.u64()?;
        let mut words = Vec::with_capacity(self.items.len());
        for _ in &self.items {
            let text = answer.bytes()?;
            let word = SettledWord::ALL.into_iter().find(|word| text == word.as_str());
            words.push((word.ok_or(Malformed("settle answered a word that is not known"))?, answer.u64()?));
        }
        Ok(Settled { fired, now_ms, words })
    }
}

impl SettleOp {
    /// Its letter, and what an expiry carries.
    fn head(&self) -> (&'static str, &'static str) {
        match self {
            Self::Look { removal: true, .. } => ("R", ""),
            Self::Look { .. } => ("L", ""),
            Self::Event(payload) => ("E", payload.word()),
            Self::Evicted(payload) => ("V", payload.word()),
            Self::Proof(payload) => ("P", payload.word()),
            Self::Unproven(payload) => ("U", payload.word()),
            Self::Drop => ("D", "none"),
        }
    }

    /// What stands behind the key's name.
    fn put_rest(&self, args: &mut Vec<Bytes>) {
        match self {
            Self::Look { found, captured, .. } => {
                let found = match found {
                    Sight::Due(due) => number(*due),
                    Sight::Forever => Bytes::from_static(b"-1"),
                    Sight::Gone => Bytes::from_static(b"-2"),
                };
                args.extend([found, captured.as_ref().map(Captured::pack).unwrap_or_default()]);
            }
            Self::Event(SettlePayload::Given(captured))
            | Self::Evicted(SettlePayload::Given(captured))
            | Self::Proof(SettlePayload::Given(captured))
            | Self::Unproven(SettlePayload::Given(captured)) => args.push(captured.pack()),
            _ => {}
        }
    }
}

impl SettlePayload {
    fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::Given(_) => "given",
        }
    }
}
