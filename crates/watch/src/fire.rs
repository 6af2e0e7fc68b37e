//! Firing watched keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use overdue_protocol::call::{SettleItem, SettleOp, SettlePayload, SettledWord};
use overdue_protocol::watch::{Captured, Found, OnUnproven, Payload, Rule, WatchedKey};
use overdue_store::Result;

use crate::Looker;
use crate::looker::persist;
use crate::proofs::Proof;

/// How long a payload key is tried to be read.
const PATIENCE: Duration = Duration::from_secs(5);

/// A key to be fired.
#[derive(Clone, Debug)]
pub struct Fire {
    /// Which.
    pub key: WatchedKey,
    /// Its rule.
    pub rule: Arc<Rule>,
    /// The name of this expiry.
    pub position: u64,
    /// Why.
    pub cause: Cause,
}

/// Why a key is fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A notification said that it expired.
    Expired,
    /// A notification said that it was evicted.
    Evicted,
    /// A touch made it expire.
    Proven,
    /// It was gone at its due, and no notification before the position said why. Its rule decides.
    Unproven,
    /// The same, but the whole database seems to be flushed: it is dropped whatever its rule says.
    Flushed,
}

/// What became of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the script did.
    pub word: SettledWord,
    /// Its deadline, unix milliseconds on the server's clock; 0 = not known.
    pub due_ms: u64,
    /// The server's now, unix milliseconds.
    pub now_ms: u64,
}

impl Looker {
    /// Fires keys, or drops them as their rules say; answers in the order of `fires`. May be repeated.
    ///
    /// An expiry that a look of this process has proven is not settled again when its notification comes.
    ///
    /// # Errors
    /// Redis does not answer for 30 s, or refuses. Nothing is known of the whole batch then.
    pub async fn fire(&self, fires: Vec<Fire>) -> Result<Vec<Outcome>> {
        let names = fires.iter().map(|fire| {
            let may_be_proven = fire.cause == Cause::Expired;
            may_be_proven.then(|| (fire.key.clone(), fire.position))
        });
        let mut known = self.proofs().take_all(names);
        let mut outcomes = vec![Outcome { word: SettledWord::Dup, due_ms: 0, now_ms: 0 }; fires.len()];
        self.fire_unknown(&fires, &known, &mut outcomes).await?;
        // The others have not waited for these.
        if known.contains(&Proof::Pending) {
            for (known, fire) in known.iter_mut().zip(&fires) {
                *known = match known {
                    Proof::Pending => self.proofs().wait_for(&(fire.key.clone(), fire.position)).await,
                    Proof::Unknown | Proof::Settled => Proof::Settled,
                };
            }
            self.fire_unknown(&fires, &known, &mut outcomes).await?;
        }
        Ok(outcomes)
    }

    async fn fire_unknown(&self, fires: &[Fire], known: &[Proof], outcomes: &mut [Outcome]) -> Result<()> {
        let places: Vec<usize> = (0..fires.len()).filter(|&at| known[at] == Proof::Unknown).collect();
        if places.is_empty() {
            return Ok(());
        }
        let unknown = places.iter().map(|&at| fires[at].clone()).collect();
        for (at, outcome) in places.into_iter().zip(self.settle_fires(unknown).await?) {
            outcomes[at] = outcome;
        }
        Ok(())
    }

    async fn settle_fires(&self, fires: Vec<Fire>) -> Result<Vec<Outcome>> {
        let mut payloads = self.payloads(&fires).await;
        let items = fires.into_iter().enumerate().map(|(at, fire)| {
            let partition = self.partition_of(&fire.rule, &fire.key.key);
            let payload = payloads.remove(&at).unwrap_or_else(|| unread(&fire.rule));
            let op = match (fire.cause, fire.rule.on_unproven) {
                (Cause::Expired, _) => SettleOp::Event(payload),
                (Cause::Evicted, _) => SettleOp::Evicted(payload),
                (Cause::Proven, _) => SettleOp::Proof(payload),
                (Cause::Unproven, OnUnproven::Fire) => SettleOp::Unproven(payload),
                (Cause::Unproven, OnUnproven::Drop) | (Cause::Flushed, _) => SettleOp::Drop,
            };
            let rule = fire.rule.name.clone();
            (partition, SettleItem { key: fire.key, rule, position: fire.position, op })
        });
        let words = self.settle(items.collect()).await?;
        Ok(words.into_iter().map(|(word, due_ms, now_ms)| Outcome { word, due_ms, now_ms }).collect())
    }

    /// Reads the keys that are payloads of others, by the place of the fire. A timeout without its payload is better than
    /// none: what can't be read for a while is fired with the flaw `no_value`.
    pub(crate) async fn payloads(&self, fires: &[Fire]) -> BTreeMap<usize, SettlePayload> {
        let mut wanted: BTreeMap<u8, (Vec<usize>, Vec<Bytes>)> = BTreeMap::new();
        for (at, fire) in fires.iter().enumerate() {
            if let Payload::Key(template) = &fire.rule.payload {
                let named = fire.rule.pattern.capture(&fire.key.key).unwrap_or_default();
                let of_db = wanted.entry(fire.key.db).or_default();
                of_db.0.push(at);
                of_db.1.push(template.fill(&named));
            }
        }
        let mut payloads = BTreeMap::new();
        for (db, (places, keys)) in wanted {
            let read = persist(PATIENCE, || self.nodes().values(db, &keys, self.value_max())).await;
            let found = read.unwrap_or_else(|error| {
                tracing::warn!(%error, db, keys = keys.len(), "payload keys can't be read; their timeouts go without");
                vec![Found::Missing; keys.len()]
            });
            for (at, found) in places.into_iter().zip(found) {
                payloads.insert(at, SettlePayload::Given(Captured::of(found, 0)));
            }
        }
        payloads
    }
}

/// What a timeout of this rule carries when nothing was read for it.
pub(crate) fn unread(rule: &Rule) -> SettlePayload {
    match rule.payload {
        Payload::Value => SettlePayload::Last,
        Payload::None | Payload::Key(_) => SettlePayload::None,
    }
}
