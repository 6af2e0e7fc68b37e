//! One round: the whole way of some timers and watched keys through every hot script. It ends as it began.

use bytes::Bytes;
use overdue_protocol::call::{
    Apply, ApplyItem, Bury, BuryItem, Cancel, CancelItem, Claim, Fire, From, Holder, Join, Release, Renew,
    Replay, Retry, RetryItem, SettleOp, SettlePayload, Sight, When,
};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Due, Effect, Reply, TimerId};

use super::lab::{Lab, Order};
use super::orders::Orders;
use crate::exit::{Exit, Failure};
use crate::stage::now_us;

/// The most of one call where it is not measured.
const PAGE: usize = 256;
/// When what is not to fire would be due.
const FAR_MS: u64 = 86_400_000;

/// What a round works on.
pub(super) struct Round<'o> {
    pub(super) orders: &'o Orders,
    /// How many timers and keys: whole pages.
    pub(super) items: usize,
    /// How many one call names.
    pub(super) batch: usize,
}

/// A script, and what it took for all items, microseconds.
pub(super) type Step = (&'static str, u64);

/// Once, before all rounds: the group, and timers that stay armed.
pub(super) fn prepare(lab: &mut Lab<'_>, orders: &Orders, armed: usize) -> Result<(), Failure> {
    let (partition, group) = (orders.partition.clone(), orders.group.clone());
    lab.send(Join { partition, group, from: From::Oldest }.into())?;
    let ids: Vec<_> = (0..armed).map(|n| id("ballast", n)).collect();
    lab.run(ids.chunks(PAGE).map(|ids| orders.arm(ids, When::In(10 * FAR_MS))), PAGE)
}

impl Round<'_> {
    /// Runs all of it, and says what each script took.
    pub(super) fn run(&self, lab: &mut Lab<'_>) -> Result<Vec<Step>, Failure> {
        let mut steps = vec![];
        self.timers(lab, &mut steps)?;
        self.outcomes(lab, &mut steps)?;
        self.letters(lab, &mut steps)?;
        self.watched(lab, &mut steps)?;
        Ok(steps)
    }

    fn timers(&self, lab: &mut Lab<'_>, steps: &mut Vec<Step>) -> Result<(), Failure> {
        let ids = self.ids();
        let far = |ids: &[TimerId]| self.orders.arm(ids, When::In(FAR_MS));
        let cancel = |ids: &[TimerId]| {
            let item = |id: &TimerId| CancelItem { id: id.clone(), generation: None };
            let items = ids.iter().map(item).collect();
            Cancel { partition: self.orders.partition.clone(), items }.into()
        };
        self.step(lab, steps, "schedule", &ids, far)?;
        self.step(lab, steps, "schedule again", &ids, far)?;
        self.step(lab, steps, "cancel", &ids, cancel)
    }

    /// What becomes of timeouts in a consumer's hand.
    fn outcomes(&self, lab: &mut Lab<'_>, steps: &mut Vec<Step>) -> Result<(), Failure> {
        let again = |entries: &[EntryId]| -> Vec<_> {
            entries.iter().map(|&entry| RetryItem { entry, delay_ms: 0 }).collect()
        };
        self.fired(lab, |lab, ids| self.step(lab, steps, "sweep", ids, |ids| self.orders.sweep(ids.len())))?;
        let held = self.read(lab, "a")?;
        self.step(lab, steps, "renew", &held, |entries| {
            Renew { by: self.orders.by("a"), entries: entries.to_vec() }.into()
        })?;
        // Each page goes on after the one before.
        let mut after = EntryId::ZERO;
        self.step(lab, steps, "claim", &held, |entries| {
            let holder = Holder::Others { lease_ms: 0, alone: false };
            let claim = Claim { by: self.orders.by("b"), holder, after, limit: entries.len() as u32 };
            after = entries.last().copied().unwrap_or(after);
            claim.into()
        })?;
        self.step(lab, steps, "retry", &held, |entries| {
            Retry { by: self.orders.by("b"), items: again(entries) }.into()
        })?;
        self.step(lab, steps, "sweep_retries", &held, |entries| self.orders.sweep_retries(entries.len()))?;
        let held = self.read(lab, "a")?;
        self.step(lab, steps, "release", &held, |entries| {
            Release { by: self.orders.by("a"), items: again(entries) }.into()
        })?;
        lab.run(held.chunks(PAGE).map(|entries| self.orders.sweep_retries(entries.len())), PAGE)?;
        let held = self.read(lab, "a")?;
        self.step(lab, steps, "complete", &held, |entries| self.orders.complete(entries))?;
        self.fired(lab, |lab, ids| lab.run(ids.chunks(PAGE).map(|ids| self.orders.sweep(ids.len())), PAGE))?;
        let held = self.read(lab, "a")?;
        let effects = [Effect::IncrBy { key: self.orders.partition.neighbour(b"done"), by: 1 }];
        self.step(lab, steps, "apply", &held, |entries| {
            let item = |&entry: &EntryId| ApplyItem { entry, effects: effects.clone().into() };
            Apply { by: self.orders.by("a"), items: entries.iter().map(item).collect(), history: 0 }.into()
        })
    }

    fn letters(&self, lab: &mut Lab<'_>, steps: &mut Vec<Step>) -> Result<(), Failure> {
        self.fired(lab, |lab, ids| {
            self.step(lab, steps, "fire", ids, |ids| {
                Fire { partition: self.orders.partition.clone(), ids: ids.to_vec() }.into()
            })
        })?;
        let held = self.read(lab, "a")?;
        self.step(lab, steps, "bury", &held, |entries| {
            let item = |&entry: &EntryId| BuryItem { entry, reason: "rejected", detail: "no".into() };
            Bury { by: self.orders.by("a"), items: entries.iter().map(item).collect() }.into()
        })?;
        let dead = lab.command(&[&b"XRANGE"[..], &self.orders.partition.dead(), b"-", b"+"])?;
        self.step(lab, steps, "replay", &entries(dead)?, |letters| {
            Replay { partition: self.orders.partition.clone(), letters: letters.to_vec() }.into()
        })?;
        let held = self.read(lab, "a")?;
        lab.run(held.chunks(PAGE).map(|entries| self.orders.complete(entries)), PAGE)
    }

    fn watched(&self, lab: &mut Lab<'_>, steps: &mut Vec<Step>) -> Result<(), Failure> {
        let keys: Vec<_> = (0..self.items).map(|n| Bytes::from(format!("session:{n:08}"))).collect();
        for key in &keys {
            lab.command(&[&b"SET"[..], key, b"x", b"EX", b"86400"])?;
        }
        self.step(lab, steps, "touch", &keys, |keys| self.orders.touch(keys))?;
        let (position, due) = (now_us(), now_us() / 1_000 + FAR_MS);
        let look = || SettleOp::Look { found: Sight::Due(due), removal: false, captured: None };
        let event = || SettleOp::Event(SettlePayload::None);
        self.none(lab, steps, "settle look", &keys, |keys| self.orders.settle(keys, position, look))?;
        self.step(lab, steps, "settle event", &keys, |keys| self.orders.settle(keys, position + 1, event))?;
        self.none(lab, steps, "settle again", &keys, |keys| self.orders.settle(keys, position + 1, event))?;
        let held = self.read(lab, "a")?;
        lab.run(held.chunks(PAGE).map(|entries| self.orders.complete(entries)), PAGE)?;
        let (p, all) = (&self.orders.partition, keys.into_iter());
        let gone = [Bytes::from_static(b"DEL"), p.watched(), p.looked(), p.fired(), p.last()];
        lab.command(&gone.into_iter().chain(all).collect::<Vec<_>>()).map(drop)
    }

    /// Measures a script on all of `items`, batch by batch; it must say that it did all.
    fn step<T>(
        &self,
        lab: &mut Lab<'_>,
        steps: &mut Vec<Step>,
        name: &'static str,
        items: &[T],
        order: impl FnMut(&[T]) -> Order,
    ) -> Result<(), Failure> {
        self.measured(lab, steps, (name, self.batch), items, order)
    }

    /// The same, where it must say that there was nothing to fire.
    fn none<T>(
        &self,
        lab: &mut Lab<'_>,
        steps: &mut Vec<Step>,
        name: &'static str,
        items: &[T],
        order: impl FnMut(&[T]) -> Order,
    ) -> Result<(), Failure> {
        self.measured(lab, steps, (name, 0), items, order)
    }

    fn measured<T>(
        &self,
        lab: &mut Lab<'_>,
        steps: &mut Vec<Step>,
        (name, did): (&'static str, usize),
        items: &[T],
        order: impl FnMut(&[T]) -> Order,
    ) -> Result<(), Failure> {
        if items.len() != self.items {
            let what = format!("{name} has {} items to work on, not {}", items.len(), self.items);
            return Err(Failure::new(Exit::CheckFailed, what));
        }
        let orders = items.chunks(self.batch).map(order).collect();
        steps.push((name, lab.measure(orders, did)?));
        Ok(())
    }

    /// Arms all as due, and has them fired.
    fn fired(
        &self,
        lab: &mut Lab<'_>,
        fire: impl FnOnce(&mut Lab<'_>, &[TimerId]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (ids, past) = (self.ids(), When::At(Due::from_unix_ms(1).expect("it is a time")));
        lab.run(ids.chunks(PAGE).map(|ids| self.orders.arm(ids, past)), PAGE)?;
        fire(lab, &ids)
    }

    /// Hands all that is new to a consumer.
    fn read(&self, lab: &mut Lab<'_>, consumer: &str) -> Result<Vec<EntryId>, Failure> {
        let group = self.orders.group.as_str();
        let stream = self.orders.partition.stream();
        let args =
            [&b"XREADGROUP"[..], b"GROUP", group.as_bytes(), consumer.as_bytes(), b"STREAMS", &stream, b">"];
        let streams = lab.command(&args)?.into_array().and_then(|mut streams| streams.pop());
        entries(streams.and_then(Reply::into_array).and_then(|mut stream| stream.pop()).unwrap_or(Reply::Nil))
    }

    fn ids(&self) -> Vec<TimerId> {
        (0..self.items).map(|n| id("order", n)).collect()
    }
}

fn id(stem: &str, n: usize) -> TimerId {
    TimerId::new(format!("{stem}-{n:08}")).expect("a short text is an id")
}

/// The ids of `[[id, fields], ...]`.
fn entries(reply: Reply) -> Result<Vec<EntryId>, Failure> {
    let odd = || Failure::new(Exit::CheckFailed, "entries do not look like entries");
    let id = |entry: Reply| entry.into_array()?.first()?.as_str()?.parse().ok();
    let entries = reply.into_array().unwrap_or_default().into_iter();
    entries.map(|entry| id(entry).ok_or_else(odd)).collect()
}
