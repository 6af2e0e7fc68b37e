//! Looking at the keys of a page: at those that are due, and ahead at those whose value is wanted.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use overdue_protocol::call::DueKeys;
use overdue_protocol::watch::{Payload, Rule, Seen, WatchedKey};
use overdue_store::{Backoff, Error, Feed, Node};
use overdue_telemetry::label::NudgeResult;
use overdue_watch::{Ask, Looked};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::barrier::Waiting;
use super::fate::{Fate, fate};
use super::metrics::Tally;
use super::pass::{HANDS, NudgePass, State};
use super::rule_of;

/// A member that is looked at.
pub(super) struct Asked {
    key: WatchedKey,
    member: Bytes,
    rule: Arc<Rule>,
    due_ms: u64,
}

/// A page, sorted.
#[derive(Default)]
pub(super) struct Sorted {
    pub(super) asks: BTreeMap<Feed, Vec<Asked>>,
    /// Due, and no key of our rules.
    pub(super) strays: Vec<(Bytes, u64)>,
    pub(super) due: u32,
    /// Due in a moment, the first of them at this.
    pub(super) ahead: u32,
    pub(super) first_ahead_ms: Option<u64>,
}

/// What looking at a page came to.
#[derive(Default)]
pub(super) struct Done {
    pub(super) fired: u32,
    /// Another process may have been quicker.
    pub(super) missed: u32,
    /// Not among those that are due any more; the same of those that were ahead.
    pub(super) cleared: u32,
    pub(super) cleared_ahead: u32,
    pub(super) answered: bool,
    pub(super) error: Option<Error>,
}

impl NudgePass {
    /// Which of a page are to be looked at now.
    pub(super) fn sort(&self, state: &State, page: &DueKeys) -> Sorted {
        let looker = &self.watching.looker;
        let (mut sorted, now) = (Sorted::default(), Instant::now());
        let mut room = HANDS.saturating_sub(state.hands());
        for (member, due_ms) in &page.members {
            let is_due = *due_ms < page.now_ms;
            if is_due {
                sorted.due += 1;
            } else {
                sorted.ahead += 1;
                sorted.first_ahead_ms.get_or_insert(*due_ms);
            }
            let key = WatchedKey::parse(member);
            let ours = key.and_then(|key| Some((Arc::clone(rule_of(looker, &self.partition, &key)?), key)));
            let Some((rule, key)) = ours else {
                if is_due {
                    sorted.strays.push((member.clone(), *due_ms));
                }
                continue;
            };
            let wanted = if is_due {
                let rests = state.not_before.get(member).is_some_and(|&at_ms| at_ms > page.now_ms);
                room > 0 && !rests && !state.barrier.holds(&key)
            } else {
                rule.payload == Payload::Value && !state.captured.contains(&(*due_ms, member.clone()))
            };
            let feed = looker.nodes().feed_of(key.db, &key.key).filter(|_| wanted);
            // One node of a cluster that is down must not hold up the keys of the others.
            let is_down = |node: &Node| *node != Node::server() && !looker.nodes().is_up(node);
            let rests = |feed: &Feed| {
                is_down(&feed.node) || state.resting.get(feed).is_some_and(|(_, until)| now < *until)
            };
            let Some(feed) = feed.filter(|feed| !rests(feed)) else { continue };
            room -= usize::from(is_due);
            let asked = Asked { key, member: member.clone(), rule, due_ms: *due_ms };
            sorted.asks.entry(feed).or_default().push(asked);
        }
        sorted
    }

    /// Looks at the keys of all feeds at once.
    pub(super) async fn look(
        &self,
        state: &mut State,
        asks: BTreeMap<Feed, Vec<Asked>>,
        now_ms: u64,
    ) -> Done {
        let mut looks = JoinSet::new();
        for (feed, asked) in asks {
            let looker = self.watching.looker.clone();
            looks.spawn(async move {
                let ask =
                    |a: &Asked| Ask { key: a.key.key.clone(), rule: Arc::clone(&a.rule), removal: false };
                let asks = asked.iter().map(ask).collect();
                let began = Instant::now();
                let looked = looker.look(&feed, asks).await;
                (feed, asked, looked, began.elapsed())
            });
        }
        let mut done = Done::default();
        // A look does not panic; should it, its keys are nudged again by the next turn.
        while let Some(Ok((feed, asked, looked, took))) = looks.join_next().await {
            match looked {
                Ok(looked) => {
                    done.answered = true;
                    state.resting.remove(&feed);
                    state.metrics.page(took, asked.len());
                    self.judge(state, &mut done, &feed, asked.into_iter().zip(looked), now_ms);
                }
                Err(error) => {
                    state.metrics.nudges(NudgeResult::Failed, asked.len() as u64);
                    let (mut backoff, _) =
                        state.resting.remove(&feed).unwrap_or_else(|| (Backoff::default(), Instant::now()));
                    let until = Instant::now() + backoff.next_wait();
                    state.resting.insert(feed, (backoff, until));
                    done.error = Some(error);
                }
            }
        }
        done
    }

    /// Takes in what the looks at one feed saw.
    fn judge(
        &self,
        state: &mut State,
        done: &mut Done,
        feed: &Feed,
        looks: impl Iterator<Item = (Asked, Looked)>,
        now_ms: u64,
    ) {
        let (mut known, mut proven, mut tally) = (0, 0, Tally::default());
        let mut gone: BTreeMap<u64, Vec<Waiting>> = BTreeMap::new();
        for (asked, looked) in looks {
            let is_due = asked.due_ms < now_ms;
            let is_proven = looked.seen == Seen::Proven;
            proven += u64::from(is_proven);
            if is_due || is_proven {
                state.metrics.nudged(&mut tally, &looked, asked.due_ms);
            }
            let fired = looked.word.is_some_and(|word| word.is_fired());
            done.fired += u32::from(fired);
            done.missed += u32::from(is_proven && !fired);
            let end_ms = if let Seen::Due(end_ms) = looked.seen { Some(end_ms) } else { None };
            state.soonest_ms = state.soonest_ms.into_iter().chain(end_ms).min();
            let fate = fate(&looked, asked.due_ms, now_ms, self.ahead_ms);
            known += u64::from(is_due && looked.seen != Seen::Elsewhere && fate != Fate::Waits);
            match fate {
                Fate::Cleared if is_due => done.cleared += 1,
                Fate::Cleared => done.cleared_ahead += 1,
                Fate::Ahead => {
                    done.cleared += u32::from(is_due);
                    // Where it was, and where it is now.
                    let dues_ms = [asked.due_ms].into_iter().chain(end_ms);
                    state.captured.extend(dues_ms.map(|due_ms| (due_ms, asked.member.clone())));
                }
                Fate::NotBefore(at_ms) => drop(state.not_before.insert(asked.member, at_ms)),
                Fate::Waits => {
                    done.missed += 1;
                    let waiting = Waiting { key: asked.key, rule: asked.rule, due_ms: asked.due_ms };
                    gone.entry(looked.position).or_default().push(waiting);
                }
            }
        }
        state.metrics.counted(tally);
        for (position, gone) in gone {
            state.barrier.hold(feed, position, Instant::now(), gone);
        }
        state.metrics.waiting.set(state.barrier.len() as u64);
        // Those that wait count when they are settled.
        self.vigil.nudged(feed, known, proven);
    }
}
