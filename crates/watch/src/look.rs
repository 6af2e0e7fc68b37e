//! Looking at watched keys: touch, then settle.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use overdue_protocol::call::{SettleItem, SettleOp, SettlePayload, SettledWord, Sight};
use overdue_protocol::watch::{Captured, Payload, Rule, Seen, WatchedKey};
use overdue_store::{Capture, Feed, Result, Touched};
use tokio::task::JoinSet;

use crate::fire::{Cause, Fire, unread};
use crate::proofs::Claim;
use crate::{CAPTURE_WITHIN_MS, Looker};

/// So many keys are touched by one call. Small calls cost more each, but what they fire is handled while the next is under way.
const TOUCH: usize = 128;
/// How often a look is made that comes too late each time.
const TRIES: usize = 3;

/// A key to be looked at.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Which.
    pub key: Bytes,
    /// Its rule.
    pub rule: Arc<Rule>,
    /// A removal event is among what was heard of it.
    pub removal: bool,
}

/// What a look saw and did.
#[derive(Clone, Debug)]
pub struct Looked {
    /// What was asked.
    pub ask: Ask,
    /// The position of the look.
    pub position: u64,
    /// What the touch saw.
    pub seen: Seen,
    /// What was settled; `None` = nothing had to be: the key is gone or served by another node.
    pub word: Option<SettledWord>,
    /// Its deadline, unix milliseconds; 0 = none.
    pub due_ms: u64,
    /// The now of the index's server, unix milliseconds; 0 when nothing was settled.
    pub now_ms: u64,
}

impl Looker {
    /// Looks at keys of one feed, each of which stands in `asks` once; answers in their order. A key whose expiry the touch proves is fired.
    ///
    /// What is gone without proof is left alone, unless a removal event asked: see [`Looker::fire`] with
    /// [`Cause::Unproven`].
    ///
    /// # Errors
    /// Redis does not answer, or refuses. What was asked can be asked again.
    pub async fn look(&self, feed: &Feed, asks: Vec<Ask>) -> Result<Vec<Looked>> {
        if asks.is_empty() {
            return Ok(vec![]);
        }
        let mut pages = asks.chunks(TOUCH);
        let mut settling = JoinSet::new();
        let mut failed = None;
        let last = pages.next_back().map(<[Ask]>::to_vec).unwrap_or_default();
        for (number, page) in pages.enumerate() {
            match self.touch(feed, page.to_vec()).await {
                // While this page is settled, the next is touched.
                Ok(touch) => {
                    let (looker, feed) = (self.clone(), feed.clone());
                    settling.spawn(async move { (number, looker.settle_touch(&feed, touch).await) });
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let last = match failed {
            None => self.touch(feed, last).await,
            Some(error) => Err(error),
        };
        let last = match last {
            Ok(touch) => self.settle_touch(feed, touch).await,
            Err(error) => Err(error),
        };
        // Whatever has failed, these are seen to their end: they hold proofs.
        let mut settled = BTreeMap::new();
        while let Some(page) = settling.join_next().await {
            let (number, looked) = page.expect("a look does not panic");
            settled.insert(number, looked);
        }
        let settled: Result<Vec<_>> = settled.into_values().chain([last]).collect();
        Ok(settled?.into_iter().flatten().collect())
    }

    /// Touches at most a page of keys.
    async fn touch(&self, feed: &Feed, asks: Vec<Ask>) -> Result<Touch> {
        let keys: Vec<Bytes> = asks.iter().map(|ask| ask.key.clone()).collect();
        let wants_value = asks.iter().any(|ask| ask.rule.payload == Payload::Value);
        let capture = if wants_value {
            Capture { limit: self.value_max(), within_ms: CAPTURE_WITHIN_MS }
        } else {
            Capture::NONE
        };
        let touched = self.nodes().touch(feed, &keys, capture).await?;
        let looked: Vec<Looked> =
            asks.into_iter().zip(&touched.seen).map(|(ask, &seen)| of(&touched, ask, seen)).collect();
        let proven: Vec<usize> = (0..looked.len()).filter(|&at| looked[at].seen == Seen::Proven).collect();
        let fires: Vec<Fire> = proven.iter().map(|&at| proof(feed, &looked[at])).collect();
        let claim = self.proofs().claim(fires.iter().map(|fire| (fire.key.clone(), fire.position)).collect());
        Ok(Touch { touched, looked, proven, fires, claim })
    }

    /// Settles what a touch saw; what comes too late is looked at again.
    async fn settle_touch(&self, feed: &Feed, touch: Touch) -> Result<Vec<Looked>> {
        let mut looked = self.settle_once(feed, touch).await?;
        for _ in 1..TRIES {
            let late: Vec<usize> = (0..looked.len())
                .filter(|&at| looked[at].word == Some(SettledWord::Old) && looked[at].seen != Seen::Proven)
                .collect();
            if late.is_empty() {
                break;
            }
            let again = late.iter().map(|&at| looked[at].ask.clone()).collect();
            let touch = self.touch(feed, again).await?;
            for (at, new) in late.into_iter().zip(self.settle_once(feed, touch).await?) {
                looked[at] = new;
            }
        }
        Ok(looked)
    }

    async fn settle_once(&self, feed: &Feed, touch: Touch) -> Result<Vec<Looked>> {
        let Touch { mut touched, mut looked, proven, fires, claim } = touch;
        let mut payloads = self.payloads(&fires).await;
        let mut places = vec![];
        let mut items = vec![];
        for (at, one) in looked.iter().enumerate() {
            let Some(op) =
                op(one, at, &mut touched, proven.binary_search(&at).ok().and_then(|n| payloads.remove(&n)))
            else {
                continue;
            };
            let position = if one.seen == Seen::Proven { one.position + 1 } else { one.position };
            let key = WatchedKey { db: feed.db, key: one.ask.key.clone() };
            let partition = self.partition_of(&one.ask.rule, &one.ask.key);
            places.push(at);
            items.push((partition, SettleItem { key, rule: one.ask.rule.name.clone(), position, op }));
        }
        for (at, (word, due_ms, now_ms)) in places.into_iter().zip(self.settle(items).await?) {
            looked[at].word = Some(word);
            looked[at].now_ms = now_ms;
            if looked[at].seen == Seen::Proven {
                looked[at].due_ms = due_ms;
            }
        }
        claim.settled();
        Ok(looked)
    }
}

/// What a touch saw, to be settled.
struct Touch {
    touched: Touched,
    looked: Vec<Looked>,
    /// The places of those whose expiry it proves, and what fires them.
    proven: Vec<usize>,
    fires: Vec<Fire>,
    claim: Claim,
}

fn of(touched: &Touched, ask: Ask, seen: Seen) -> Looked {
    let due_ms = if let Seen::Due(due_ms) = seen { due_ms } else { 0 };
    Looked { ask, position: touched.position, seen, word: None, due_ms, now_ms: 0 }
}

/// An expiry that a touch proves has the name that its event gets: one behind the marker.
fn proof(feed: &Feed, looked: &Looked) -> Fire {
    let key = WatchedKey { db: feed.db, key: looked.ask.key.clone() };
    Fire { key, rule: Arc::clone(&looked.ask.rule), position: looked.position + 1, cause: Cause::Proven }
}

fn op(looked: &Looked, at: usize, touched: &mut Touched, payload: Option<SettlePayload>) -> Option<SettleOp> {
    let removal = looked.ask.removal;
    match looked.seen {
        Seen::Due(due_ms) => {
            let wanted = looked.ask.rule.payload == Payload::Value;
            let found = touched.captured.remove(&at).filter(|_| wanted);
            let captured = found.map(|found| Captured::of(found, looked.position / 1_000));
            Some(SettleOp::Look { found: Sight::Due(due_ms), removal, captured })
        }
        Seen::Forever => Some(SettleOp::Look { found: Sight::Forever, removal, captured: None }),
        Seen::Gone if removal => Some(SettleOp::Look { found: Sight::Gone, removal, captured: None }),
        Seen::Gone | Seen::Elsewhere => None,
        Seen::Proven => Some(SettleOp::Proof(payload.unwrap_or_else(|| unread(&looked.ask.rule)))),
    }
}
