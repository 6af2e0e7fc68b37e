//! Watched keys on a stage: every call in short, positions counted from the server's own time.

use bytes::Bytes;
use overdue_protocol::call::{
    DueKeys, DuePage, Forget, Forgot, Settle, SettleItem, SettleOp, SettlePayload, SettledWord, Sight,
};
use overdue_protocol::watch::{Capture, Captured, Found, Touched, WatchedKey, mark_channel, touch_args};
use overdue_protocol::{Keyspace, QueueName, RawEntry, Reply, script};
use overdue_tests::Stage;

/// The partition `{orders:0}`, and a second from which positions are counted.
pub(crate) struct Watched {
    pub(crate) stage: Stage,
    base: u64,
}

/// A key of db 0.
pub(crate) fn key(name: impl AsRef<[u8]>) -> WatchedKey {
    WatchedKey { db: 0, key: Bytes::copy_from_slice(name.as_ref()) }
}

/// A string, as a look captures it.
pub(crate) fn value(text: impl Into<Bytes>) -> Captured {
    Captured::of(Found::String(text.into()), 77)
}

/// A look that a touch made, or one that a removal event asked for.
pub(crate) fn look(found: Sight) -> SettleOp {
    SettleOp::Look { found, removal: false, captured: None }
}

pub(crate) fn removal(found: Sight) -> SettleOp {
    SettleOp::Look { found, removal: true, captured: None }
}

pub(crate) const EVENT: SettleOp = SettleOp::Event(SettlePayload::None);
pub(crate) const PROOF: SettleOp = SettleOp::Proof(SettlePayload::None);
pub(crate) const UNPROVEN: SettleOp = SettleOp::Unproven(SettlePayload::None);

impl Watched {
    pub(crate) fn new() -> Self {
        Self::on(Stage::new())
    }

    pub(crate) fn on(mut stage: Stage) -> Self {
        let base = (stage.wire.now_ms() - 1_000) * 1_000;
        Self { stage, base }
    }

    /// A position, `n` microseconds behind the first: all but the largest lie in the past second.
    pub(crate) fn at(&self, n: u64) -> u64 {
        self.base + n
    }

    /// A deadline that has passed, whatever the position.
    pub(crate) fn past(&self) -> u64 {
        self.base / 1_000 - 500
    }

    /// A deadline that does not come.
    pub(crate) fn later(&self) -> u64 {
        self.base / 1_000 + 3_600_000
    }

    /// An item of the rule `sessions`, at the position `n`.
    pub(crate) fn item(&self, key: WatchedKey, n: u64, op: SettleOp) -> SettleItem {
        SettleItem { key, rule: QueueName::new("sessions").unwrap(), position: self.at(n), op }
    }

    pub(crate) fn call(&self, items: Vec<SettleItem>) -> Settle {
        Settle { partition: self.stage.partition.clone(), items }
    }

    /// Settles items: the words.
    pub(crate) fn settle(&mut self, items: Vec<SettleItem>) -> Vec<SettledWord> {
        let settled = self.stage.wire.run(&self.call(items)).unwrap();
        let fired = settled.words.iter().filter(|(word, _)| word.is_fired()).count();
        assert_eq!(fired, settled.fired as usize, "the number of those that fired is told");
        settled.words.into_iter().map(|(word, _)| word).collect()
    }

    /// Settles one: its word and deadline.
    pub(crate) fn one(&mut self, name: &str, n: u64, op: SettleOp) -> (SettledWord, u64) {
        let call = self.call(vec![self.item(key(name), n, op)]);
        self.stage.wire.run(&call).unwrap().words[0]
    }

    /// Settles one: its word.
    pub(crate) fn word(&mut self, name: &str, n: u64, op: SettleOp) -> SettledWord {
        self.one(name, n, op).0
    }

    /// A look that finds the key alive.
    pub(crate) fn track(&mut self, name: &str, n: u64, due: u64) {
        assert_eq!(self.one(name, n, look(Sight::Due(due))), (SettledWord::Ok, due));
    }

    pub(crate) fn scores(&mut self, of: impl Fn(&overdue_protocol::Partition) -> Bytes) -> Vec<(Bytes, u64)> {
        self.stage.wire.zrange(of(&self.stage.partition)).unwrap()
    }

    /// What is watched.
    pub(crate) fn watched(&mut self) -> Vec<(Bytes, u64)> {
        self.scores(overdue_protocol::Partition::watched)
    }

    /// The position of the last look, counted as [`Watched::at`] does.
    pub(crate) fn looked(&mut self, name: &str) -> Option<u64> {
        let member = key(name).member();
        let looks = self.scores(overdue_protocol::Partition::looked);
        looks.into_iter().find(|(one, _)| *one == member).map(|(_, at)| at - self.base)
    }

    /// Names and debts.
    pub(crate) fn names(&mut self) -> Vec<String> {
        let names = self.scores(overdue_protocol::Partition::fired);
        names.into_iter().map(|(name, _)| String::from_utf8_lossy(&name).into_owned()).collect()
    }

    /// The last entry of the stream.
    pub(crate) fn last_entry(&mut self) -> RawEntry {
        self.stage.entries().pop().unwrap()
    }

    /// A field of the last entry.
    pub(crate) fn field(&mut self, name: &str) -> Option<String> {
        let entry = self.last_entry();
        entry.field(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    pub(crate) fn forget(&mut self, n: u64, limit: u32) -> Forgot {
        let call = Forget { partition: self.stage.partition.clone(), upto: self.at(n), limit };
        self.stage.wire.run(&call).unwrap()
    }

    pub(crate) fn due(&mut self, limit: u32, offset: u32, ahead_ms: u64) -> DueKeys {
        let call = DuePage { partition: self.stage.partition.clone(), limit, offset, ahead_ms };
        self.stage.wire.run(&call).unwrap()
    }

    /// A touch of keys of db 0.
    pub(crate) fn touch(&mut self, keys: &[&[u8]], capture: Capture) -> Touched {
        let keys: Vec<_> = keys.iter().map(|key| Bytes::copy_from_slice(key)).collect();
        let reply = self.try_touch(&keys, capture).unwrap();
        Touched::decode(reply, keys.len()).unwrap()
    }

    pub(crate) fn try_touch(&mut self, keys: &[Bytes], capture: Capture) -> Result<Reply, String> {
        let guard = Keyspace::default().guard("0");
        run(&mut self.stage.wire, &script::TOUCH, touch_args(mark_channel(0), "server", guard, capture, keys))
    }
}

/// Runs a script that takes no keys.
pub(crate) fn run(
    wire: &mut overdue_tests::Wire,
    script: &overdue_protocol::Script,
    args: Vec<Bytes>,
) -> Result<Reply, String> {
    let head = [Bytes::from_static(b"EVAL"), Bytes::from(script.text), Bytes::from_static(b"0")];
    wire.call(&head.into_iter().chain(args).collect::<Vec<_>>())
}
