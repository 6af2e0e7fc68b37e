//! A burst's work over raw sockets: one that sweeps, one that reads, one that acknowledges, as relay and consumer do.
//!
//! Each has calls under way while Redis works on the one before, so that Redis never waits. Nothing is decoded but
//! whether there is more, and the ids of entries.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use bytes::Bytes;
use overdue_protocol::call::{Call, From, Join, PAGE, Sweep};
use overdue_protocol::{GroupName, Partition, script};
use overdue_sandbox::{Connection, Error, Redis, Value};

use crate::stage::wire;

/// Calls under way on a connection.
const UNDER_WAY: usize = 4;
/// Reads under way: one waits while Redis answers the other.
const READS: usize = 2;
/// Entries in one read, as a consumer asks for.
const READ: usize = 500;
/// Entries in one acknowledgement, as a consumer sends.
const BATCH: usize = 256;
/// Reads that may wait to be acknowledged.
const AHEAD: usize = 8;

/// The three connections.
pub(super) struct Crew {
    sweeper: Connection,
    reader: Connection,
    completer: Connection,
    sweep: Vec<Bytes>,
    read: Vec<Bytes>,
    /// As far as the entries.
    complete: Vec<Bytes>,
}

impl Crew {
    /// Connects as relay and consumer do, and joins the group.
    pub(super) fn join(redis: &Redis, partition: Partition, group: &GroupName) -> Result<Self, Error> {
        let mut sweeper = redis.connection_over_tcp()?;
        let join = Join { partition: partition.clone(), group: group.clone(), from: From::Oldest };
        let digest = wire::load(&mut sweeper, script::JOIN.text)?;
        sweeper.call(&wire::evalsha(digest, join.keys(), join.args()))?;

        let (stream, tally) = (partition.stream(), partition.tally());
        let of = |part: &str| Bytes::copy_from_slice(part.as_bytes());
        let count = READ.to_string();
        let group = group.as_str();
        let words = ["XREADGROUP", "GROUP", group, "raw", "COUNT", &count, "BLOCK", "1000", "STREAMS"];
        let read = words.map(of).into_iter().chain([stream.clone(), of(">")]).collect();
        let digest = wire::load(&mut sweeper, script::COMPLETE.text)?;
        let complete = wire::evalsha(digest, vec![stream, tally], vec![of(group), of("raw"), of("0")]);
        let sweep = Sweep { partition, limit: PAGE, grace_ms: 0, sweeper: of("raw") };
        let digest = wire::load(&mut sweeper, script::SWEEP.text)?;
        let sweep = wire::evalsha(digest, sweep.keys(), sweep.args());
        let (reader, completer) = (redis.connection_over_tcp()?, redis.connection_over_tcp()?);
        Ok(Self { sweeper, reader, completer, sweep, read, complete })
    }

    /// Fires, reads and acknowledges `n` timeouts.
    pub(super) fn run(self, n: u64) -> Result<(), Error> {
        let Self { mut sweeper, mut reader, mut completer, sweep, read, complete } = self;
        let (entries, delivered) = sync_channel(AHEAD);
        thread::scope(|scope| {
            let swept = scope.spawn(|| sweep_all(&mut sweeper, &sweep));
            let read = scope.spawn(move || read_all(&mut reader, &read, n, &entries));
            // Gone at the end, whatever the end: the reader does not wait for what nobody takes.
            let delivered = delivered;
            let completed = complete_all(&mut completer, &complete, &delivered);
            drop(delivered);
            let ended = [swept, read].map(|part| part.join().expect("a panic in it goes on"));
            ended.into_iter().collect::<Result<(), _>>().and(completed)
        })
    }
}

/// Sweeps until nothing is due.
fn sweep_all(redis: &mut Connection, sweep: &[Bytes]) -> Result<(), Error> {
    let (mut more, mut under_way) = (true, 0);
    while more || under_way > 0 {
        while more && under_way < UNDER_WAY {
            redis.send(sweep)?;
            under_way += 1;
        }
        let answer = redis.receive()?;
        under_way -= 1;
        // {fired, {side error, now, next due, more, ...}}
        more = answer.items().get(1).and_then(|rest| rest.items().get(3)).and_then(Value::int) == Some(1);
    }
    Ok(())
}

/// Reads until there were `n` entries or nothing comes any more, and hands their ids on.
fn read_all(
    redis: &mut Connection,
    read: &[Bytes],
    n: u64,
    entries: &SyncSender<Vec<Bytes>>,
) -> Result<(), Error> {
    for _ in 0..READS {
        redis.send(read)?;
    }
    let mut left = n;
    loop {
        let answer = redis.receive()?;
        let ids = ids(&answer);
        left = left.saturating_sub(ids.len() as u64);
        let last = ids.is_empty() || left == 0;
        // Whoever acknowledges has failed, and says why.
        if entries.send(ids).is_err() || last {
            return Ok(());
        }
        redis.send(read)?;
    }
}

/// Acknowledges what was read, in full batches but for the last.
fn complete_all(
    redis: &mut Connection,
    complete: &[Bytes],
    read: &Receiver<Vec<Bytes>>,
) -> Result<(), Error> {
    let (mut waiting, mut under_way) = (vec![], 0);
    let all = Bytes::from_static(b"all");
    loop {
        let page = read.recv();
        let last = page.is_err();
        waiting.extend(page.unwrap_or_default());
        while waiting.len() >= BATCH || last && !waiting.is_empty() {
            if under_way == UNDER_WAY {
                redis.receive()?;
                under_way -= 1;
            }
            let batch = waiting.drain(..BATCH.min(waiting.len()));
            let items = batch.flat_map(|id| [id, all.clone()]);
            redis.send(&complete.iter().cloned().chain(items).collect::<Vec<_>>())?;
            under_way += 1;
        }
        if last {
            return (0..under_way).try_for_each(|_| redis.receive().map(drop));
        }
    }
}

/// The ids of `[[stream, [[id, fields], ...]]]`; none for no answer in time.
fn ids(answer: &Value) -> Vec<Bytes> {
    let streams = answer.items();
    let entries = streams.first().and_then(|stream| stream.items().get(1)).map_or(&[][..], Value::items);
    let id = |entry: &Value| entry.items().first().map(|id| Bytes::from(id.text()));
    entries.iter().filter_map(id).collect()
}
