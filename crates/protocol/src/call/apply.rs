//! Acknowledge with effects (PROTOCOL.md section 3, "Effects").

use std::sync::Arc;

use bytes::Bytes;

use super::outcome::Standing;
use super::{Call, number, text};
use crate::answer::{Answer, Malformed};
use crate::effect::Effect;
use crate::entry::EntryId;
use crate::reply::Reply;
use crate::script::{self, Script};

/// One entry that is done when its effects are applied.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyItem {
    /// The entry.
    pub entry: EntryId,
    /// What is written with the acknowledgement, in this order; each key in the partition's slot.
    pub effects: Arc<[Effect]>,
}

/// Acknowledges entries and applies their effects, one entry after the other. Fenced.
#[derive(Clone, Debug)]
pub struct Apply {
    /// Who says so.
    pub by: Standing,
    /// The entries: at most 256, 1,000 effects, and 1 MiB of payload and effects ([`Effect::size`]); but
    /// one always may go.
    pub items: Vec<ApplyItem>,
    /// The most finished timeouts that the partition's history keeps; 0 for none.
    pub history: u32,
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Acknowledged, with all its effects.
    Ok,
    /// It is not pending for this consumer: nothing was written.
    Lost,
    /// It was pending, but somebody deleted the entry: acknowledged, without effects.
    Gone,
    /// An effect can't be applied, and which: nothing was written, the entry is pending as before.
    Refused(String),
    /// A write failed although all was checked, and which: what stood before it is applied, the rest is skipped, and
    /// the timeout is a dead letter. It is never tried again.
    Incomplete(String),
}

impl Call for Apply {
    type Answer = Vec<Applied>;
    const BOOKS: bool = true;

    fn script(&self) -> &'static Script {
        &script::APPLY
    }

    fn what(&self) -> String {
        self.by.what("acknowledge with effects", self.items.len())
    }

    fn keys(&self) -> Vec<Bytes> {
        let p = &self.by.partition;
        let mut keys = vec![p.stream(), p.dead(), p.tally()];
        keys.extend(self.items.iter().flat_map(|item| item.effects.iter()).filter_map(Effect::key).cloned());
        if self.history > 0 {
            keys.push(p.history());
        }
        keys
    }

    fn args(&self) -> Vec<Bytes> {
        let mut args = self.by.who();
        args.push(number(self.history));
        for item in &self.items {
            args.extend([item.entry.to_bytes(), number(item.effects.len() as u64)]);
            for effect in item.effects.iter() {
                let parts = effect.args();
                args.extend([text(effect.command()), number(parts.len() as u64)]);
                args.extend(parts);
            }
        }
        args
    }

    fn answer(&self, reply: Reply) -> Result<Vec<Applied>, Malformed> {
        let mut answer = Answer::open(reply)?;
        answer.count()?;
        answer.side_error()?;
        let one = |_| {
            let (word, detail) = (answer.text()?, answer.text()?);
            match word.as_str() {
                "OK" => Ok(Applied::Ok),
                "LOST" => Ok(Applied::Lost),
                "GONE" => Ok(Applied::Gone),
                "REFUSED" => Ok(Applied::Refused(detail)),
                "INCOMPLETE" => Ok(Applied::Incomplete(detail)),
                _ => Err(Malformed("apply answered an unknown word")),
            }
        };
        self.items.iter().map(one).collect()
    }
}
