//! Arm, ask, disarm (PROTOCOL.md section 4).

use bytes::Bytes;

use super::{Call, number, text};
use crate::Generation;
use crate::answer::{Answer, Malformed};
use crate::due::Due;
use crate::key::Partition;
use crate::name::TimerId;
use crate::reply::Reply;
use crate::script::{self, Script};

/// What to do when the timer is armed already: the table of PROTOCOL.md section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Arm it, in place of an armed one.
    #[default]
    Upsert,
    /// Arm it only if it is not armed.
    IfAbsent,
    /// Re-arm it only if it is armed.
    IfPresent,
    /// Re-arm it only to a later deadline.
    OnlyLater,
    /// Re-arm it only to an earlier deadline.
    OnlyEarlier,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Upsert => "upsert",
            Mode::IfAbsent => "absent",
            Mode::IfPresent => "present",
            Mode::OnlyLater => "later",
            Mode::OnlyEarlier => "earlier",
        }
    }
}

/// A deadline as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At a time.
    At(Due),
    /// So many milliseconds after the server's now: the caller's clock plays no part.
    In(u64),
}

/// One timer to arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleItem {
    /// Its id.
    pub id: TimerId,
    /// Its deadline.
    pub when: When,
    /// What to do when it is armed already.
    pub mode: Mode,
    /// The payload, opaque.
    pub payload: Bytes,
    /// 8 random bytes that name this call.
    pub call: Bytes,
    /// From [`crate::record::pack_extras`].
    pub extras: Bytes,
    /// Whether a plain key shall end at the deadline too.
    pub keyed: bool,
}

/// Arms or re-arms timers of one partition, in order.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Where.
    pub partition: Partition,
    /// How many partitions the caller thinks the queue has.
    pub partitions: u32,
    /// The timers; at most 1,000.
    pub items: Vec<ScheduleItem>,
}

/// What became of one timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not armed and is now.
    Armed,
    /// The one before was due and not swept yet: it fired; the new one is armed.
    FiredOld(Generation),
    /// It is armed in place of the one before, which will not fire.
    Replaced,
    /// It was armed already; nothing changed.
    Present,
    /// The armed deadline is the later (or earlier) one; nothing changed.
    Kept,
    /// It is not armed; nothing changed.
    Absent,
    /// It is due and will fire; nothing changed.
    Due,
    /// Too many armed payloads had to be read: not looked at, nor any after it. Send it again.
    More,
}

/// What became of one timer, and what is armed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// What became of it.
    pub change: Change,
    /// The armed generation; 0 when nothing is armed.
    pub generation: Generation,
    /// The armed deadline, unix milliseconds; 0 when nothing is armed.
    pub due_ms: u64,
}

/// The answer of [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// One for each timer, in the order given.
    Items(Vec<Armed>),
    /// The partition belongs to a queue of so many partitions: nothing was written.
    Partitions(u32),
    /// The timer at this position, from 0, would be due after [`Due::MAX_MS`]: nothing was written.
    OutOfRange(usize),
}

impl Schedule {
    fn common_args(&self, flag: &'static str) -> Vec<Bytes> {
        let mut args = Vec::with_capacity(3 + self.items.len() * 8);
        args.extend([number(self.partitions), self.partition.wake(), text(flag)]);
        for item in &self.items {
            let (base, ms) = match item.when {
                When::At(due) => ("at", due.unix_ms()),
                When::In(ms) => ("in", ms),
            };
            args.extend([
                item.id.as_bytes().clone(),
                Bytes::from_static(base.as_bytes()),
                number(ms),
                Bytes::from_static(item.mode.word().as_bytes()),
                item.payload.clone(),
                item.call.clone(),
                item.extras.clone(),
                Bytes::from_static(if item.keyed { b"1" } else { b"0" }),
            ]);
        }
        args
    }

    fn common_keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        let mut keys = vec![p.index(), p.timers(), p.stream(), p.tally()];
        keys.extend(self.items.iter().filter(|item| item.keyed).map(|item| p.timer_key(&item.id)));
        keys
    }
}

impl Call for Schedule {
    type Answer = Scheduled;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::SCHEDULE
    }

    fn what(&self) -> String {
        format!("arm {} timer(s) in {}/{}", self.items.len(), self.partition.queue(), self.partition.number())
    }

    fn keys(&self) -> Vec<Bytes> {
        self.common_keys()
    }

    fn args(&self) -> Vec<Bytes> {
        self.common_args("")
    }

    fn answer(&self, reply: Reply) -> Result<Scheduled, Malformed> {
        let mut answer = Answer::open(reply)?;
        match answer.word() {
            Some("PARTITIONS") => {
                return u32::try_from(answer.u64()?)
                    .map(Scheduled::Partitions)
                    .map_err(|_| Malformed("too many partitions"));
            }
            Some("MODE") => return Err(Malformed("schedule does not know the mode of this version")),
            Some("RANGE") => return Ok(Scheduled::OutOfRange(answer.u64()? as usize)),
            _ => answer.count()?,
        };
        answer.side_error()?;
        let mut items = Vec::with_capacity(self.items.len());
        for _ in &self.items {
            let word = answer.text()?;
            let (generation, due_ms, old) = (answer.u64()?, answer.u64()?, answer.u64()?);
            let change = match word.as_str() {
                "ARMED" => Change::Armed,
                "FIRED_OLD" => Change::FiredOld(old),
                "REPLACED" => Change::Replaced,
                "PRESENT" => Change::Present,
                "KEPT" => Change::Kept,
                "ABSENT" => Change::Absent,
                "DUE" => Change::Due,
                "MORE" => Change::More,
                _ => return Err(Malformed("schedule answered an unknown word")),
            };
            items.push(Armed { change, generation, due_ms });
        }
        Ok(Scheduled::Items(items))
    }
}

/// Asks whether the timers of a [`Schedule`] stand as that very call left them; writes nothing.
#[derive(Clone, Debug)]
pub struct Ask(pub Schedule);

impl Call for Ask {
    /// For each timer: the generation and due of this call, or `None` when it cannot be told.
    type Answer = Vec<Option<(Generation, u64)>>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::SCHEDULE
    }

    fn what(&self) -> String {
        format!("ask whether it was possible to {}", self.0.what())
    }

    fn keys(&self) -> Vec<Bytes> {
        self.0.common_keys()
    }

    fn args(&self) -> Vec<Bytes> {
        self.0.common_args("ask")
    }

    fn answer(&self, reply: Reply) -> Result<Self::Answer, Malformed> {
        let mut answer = Answer::open(reply)?;
        if answer.word().is_some() {
            return Ok(vec![None; self.0.items.len()]);
        }
        answer.side_error()?;
        let mut items = Vec::with_capacity(self.0.items.len());
        for _ in &self.0.items {
            let word = answer.text()?;
            let (generation, due_ms, _) = (answer.u64()?, answer.u64()?, answer.u64()?);
            items.push((word == "HELD").then_some((generation, due_ms)));
        }
        Ok(items)
    }
}

/// One timer to disarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelItem {
    /// Its id.
    pub id: TimerId,
    /// Only this generation; `None` for any.
    pub generation: Option<Generation>,
}

/// Disarms timers of one partition.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Where.
    pub partition: Partition,
    /// The timers; at most 1,000.
    pub items: Vec<CancelItem>,
}

/// What became of one timer to disarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It was armed with this generation (0: it had no record) and due, and is no more.
    Disarmed {
        /// The generation that will not fire.
        generation: Generation,
        /// Its deadline, unix milliseconds.
        due_ms: u64,
    },
    /// It is not armed: never was, was disarmed, or has fired.
    Absent,
    /// Another generation is armed: nothing changed.
    Other(Generation),
    /// Too many armed payloads had to be read: not looked at. Send it again.
    More,
}

impl Call for Cancel {
    /// One for each timer, in the order given.
    type Answer = Vec<Cancelled>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::CANCEL
    }

    fn what(&self) -> String {
        format!(
            "cancel {} timer(s) in {}/{}",
            self.items.len(),
            self.partition.queue(),
            self.partition.number()
        )
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.partition;
        let mut keys = vec![p.index(), p.timers(), p.tally()];
        keys.extend(self.items.iter().map(|item| p.timer_key(&item.id)));
        keys
    }

    fn args(&self) -> Vec<Bytes> {
        let generation = |item: &CancelItem| item.generation.map_or(Bytes::new(), number);
        self.items.iter().flat_map(|item| [item.id.as_bytes().clone(), generation(item)]).collect()
    }

    fn answer(&self, reply: Reply) -> Result<Self::Answer, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.side_error()?;
        let mut items = Vec::with_capacity(self.items.len());
        for _ in &self.items {
            let word = answer.text()?;
            let (generation, due_ms) = (answer.u64()?, answer.u64()?);
            items.push(match word.as_str() {
                "CANCELLED" => Cancelled::Disarmed { generation, due_ms },
                "ABSENT" => Cancelled::Absent,
                "OTHER" => Cancelled::Other(generation),
                "MORE" => Cancelled::More,
                _ => return Err(Malformed("cancel answered an unknown word")),
            });
        }
        Ok(items)
    }
}
