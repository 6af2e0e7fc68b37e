//! The proof at start that every script runs: rights and syntax, with real members.
//!
//! A queue of its own with a random name, so that processes that start together do not meet; it is in no list of
//! queues, and its keys are deleted at the end.

use bytes::Bytes;
use fred::types::Value;
use overdue_protocol::call::{
    Apply, ApplyItem, Bury, BuryItem, Cancel, CancelItem, Claim, Complete, CompleteItem, Discard,
    DiscardItem, Drop as DropGroup, Fire, From, Holder, Join, Mode, PAGE_BYTES, Reclaim, Release, Renew,
    Replay, Retire, Retry, RetryItem, Schedule, ScheduleItem, Standing, Sweep, SweepRetries, Trim, When,
};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Due, GroupName, Partition, QueueName, TimerId};

use crate::frame;
use crate::order::{Order, Route};
use crate::way::Way;
use crate::{Error, ErrorKind, Result, Store};

const DOING: &str = "prove the scripts";

impl Store {
    /// Runs every script once on a probe queue with real members, and removes it: proves rights and syntax.
    ///
    /// # Errors
    /// Names what the script that failed was to do. `OutOfMemory` is not one of them: firing goes on there.
    pub async fn prove_scripts(&self) -> Result<()> {
        let name =
            QueueName::new(&format!("overdue-probe-{:016x}", rand::random::<u64>())).map_err(strange)?;
        let probe = Probe {
            store: self,
            at: self.keyspace().partition(&name, 0),
            group: GroupName::new("probe").map_err(strange)?,
        };
        let proof = match probe.run().await {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => Ok(()),
            proof => proof,
        };
        let swept = probe.clean().await;
        proof.and(swept)
    }
}

fn strange(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Malformed, DOING, what.to_string())
}

struct Probe<'a> {
    store: &'a Store,
    at: Partition,
    group: GroupName,
}

impl Probe<'_> {
    async fn run(&self) -> Result<()> {
        let (at, store) = (self.at.clone(), self.store);
        let (soon, later) = (self.id("soon"), self.id("later"));
        store.run(&Join { partition: at.clone(), group: self.group.clone(), from: From::Oldest }).await?;
        let past = Due::from_unix_ms(1).map_err(strange)?;
        let items = vec![
            self.item("soon", When::At(past), false),
            self.item("named", When::At(past), true),
            self.item("third", When::At(past), false),
            self.item("later", When::In(3_600_000), true),
        ];
        store.run(&Schedule { partition: at.clone(), partitions: 1, items }).await?;
        let items = vec![CancelItem { id: later.clone(), generation: None }];
        store.run(&Cancel { partition: at.clone(), items }).await?;
        store.run(&Fire { partition: at.clone(), ids: vec![self.id("named"), soon, later] }).await?;
        let sweeper = Bytes::from_static(b"probe");
        store.run(&Sweep { partition: at.clone(), limit: 10, grace_ms: 0, sweeper }).await?;
        self.outcomes().await?;
        let trim = Trim { partition: at.clone(), dead_max: 1_000, dead_max_age_ms: 3_600_000 };
        store.run(&trim).await?;
        let consumer = self.by().consumer;
        store
            .run(&Retire { partition: at.clone(), group: self.group.clone(), consumer, min_idle_ms: 0 })
            .await?;
        store.run(&DropGroup { partition: at, group: self.group.clone(), cursor: None }).await?;
        Ok(())
    }

    /// The way of three timeouts through everything that a consumer can do with them.
    async fn outcomes(&self) -> Result<()> {
        let (at, store, by) = (&self.at, self.store, || self.by());
        let [first, second, third] = self.read().await?[..] else {
            return Err(strange("three timers were armed, but not fired"));
        };
        store.run(&Renew { by: by(), entries: vec![first, second, third] }).await?;
        let holder = Holder::Own { in_hand: vec![] };
        store.run(&Claim { by: by(), holder, after: EntryId::ZERO, limit: 10 }).await?;
        store.run(&Retry { by: by(), items: vec![RetryItem { entry: first, delay_ms: 0 }] }).await?;
        store.run(&Release { by: by(), items: vec![RetryItem { entry: second, delay_ms: 0 }] }).await?;
        store.run(&self.reclaim()).await?;
        store.run(&SweepRetries { partition: at.clone(), limit: 10 }).await?;
        let [first, second, third] = self.read().await?[..] else {
            return Err(strange("three retries did not come back"));
        };
        let items = vec![BuryItem { entry: first, reason: "rejected", detail: Bytes::new() }];
        store.run(&Bury { by: by(), items }).await?;
        let letters: Vec<_> =
            store.entries(&at.dead(), None, 10).await?.iter().map(|letter| letter.id).collect();
        store.run(&Replay { partition: at.clone(), letters }).await?;
        let items = vec![DiscardItem::Entry(second, self.group.clone())];
        store.run(&Discard { partition: at.clone(), items }).await?;
        // Without effects: their keys are the user's.
        let items = vec![ApplyItem { entry: third, effects: [].into() }];
        store.run(&Apply { by: by(), items, history: 0 }).await?;
        let items = self.read().await?.into_iter().map(CompleteItem::DoneOurs).collect();
        store.run(&Complete { by: by(), items, history: 0 }).await?;
        Ok(())
    }

    /// Takes back what is pending, due at once.
    fn reclaim(&self) -> Reclaim {
        Reclaim {
            partition: self.at.clone(),
            group: self.group.clone(),
            lease_ms: 0,
            attempts: 9,
            first_ms: 0,
            most_ms: 0,
            chance: 1.0,
            limit: 10,
            bytes: u64::from(PAGE_BYTES),
        }
    }

    /// Reads new entries without waiting, so on the command connection.
    async fn read(&self) -> Result<Vec<EntryId>> {
        let doing = "read the probe's stream";
        let args: Vec<Value> = vec![
            "GROUP".into(),
            self.group.as_str().to_owned().into(),
            Value::Bytes(self.by().consumer),
            "STREAMS".into(),
            Value::Bytes(self.at.stream()),
            ">".into(),
        ];
        let deadline = self.store.settings().command_deadline;
        let order = Order::new("XREADGROUP", args, Route::Key(4), deadline);
        let entries = self.store.connection().send(&order).await.and_then(frame::entries_of_read);
        let entries = entries.map_err(|fault| fault.during(doing, self.store.place()))?;
        Ok(entries.into_iter().map(|entry| entry.id).collect())
    }

    async fn clean(&self) -> Result<()> {
        let at = &self.at;
        let mut keys = vec![
            at.index(),
            at.timers(),
            at.stream(),
            at.dead(),
            at.retry_index(),
            at.retry_timers(),
            at.tally(),
        ];
        keys.extend(["soon", "named", "later"].map(|id| at.timer_key(&self.id(id))));
        let keys = keys.into_iter().map(Value::Bytes).collect();
        self.store.command("remove the probe's keys", "DEL", keys, Route::Key(0)).await.map(|_| ())
    }

    fn by(&self) -> Standing {
        Standing {
            partition: self.at.clone(),
            group: self.group.clone(),
            consumer: Bytes::from_static(b"probe"),
        }
    }

    fn id(&self, id: &'static str) -> TimerId {
        TimerId::try_from(id).expect("a short text is an id")
    }

    fn item(&self, id: &'static str, when: When, keyed: bool) -> ScheduleItem {
        let payload = Bytes::from_static(b"probe");
        let call = Bytes::from_static(b"probe\0\0\0");
        ScheduleItem { id: self.id(id), when, mode: Mode::Upsert, payload, call, extras: Bytes::new(), keyed }
    }
}
