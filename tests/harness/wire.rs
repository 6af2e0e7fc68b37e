//! The protocol on the bare wire: contract tests need no store and no client library.

use std::collections::BTreeMap;

use bytes::Bytes;
use overdue_protocol::{Call, RawEntry, Reply};
use overdue_sandbox::{Connection, Redis, Value};

/// One blocking connection. Scripts go out as EVAL, with their whole text.
pub struct Wire {
    connection: Connection,
}

impl Wire {
    /// Connects to a private server.
    ///
    /// # Panics
    /// The server is down.
    #[must_use]
    pub fn connect(redis: &Redis) -> Self {
        Self { connection: redis.connection().unwrap_or_else(|error| panic!("{error}")) }
    }

    /// Sends one command.
    ///
    /// # Errors
    /// Redis' own words, such as `WRONGTYPE Operation against ...`; or what broke the connection.
    pub fn call(&mut self, args: &[impl AsRef<[u8]>]) -> Result<Reply, String> {
        self.connection.call(args).map(reply).map_err(|error| error.detail().to_owned())
    }

    /// Runs a script and decodes its answer.
    ///
    /// # Errors
    /// As [`Wire::call`]; and what the answer's decoder says.
    pub fn run<C: Call>(&mut self, call: &C) -> Result<C::Answer, String> {
        let raw = self.eval(call)?;
        call.answer(raw.clone()).map_err(|error| format!("{error}; the answer was {raw:?}"))
    }

    /// Runs a script; the answer as Redis gave it.
    ///
    /// # Errors
    /// As [`Wire::call`].
    pub fn eval<C: Call>(&mut self, call: &C) -> Result<Reply, String> {
        let keys = call.keys();
        let head =
            [Bytes::from_static(b"EVAL"), Bytes::from(call.script().text), keys.len().to_string().into()];
        let args: Vec<Bytes> = head.into_iter().chain(keys).chain(call.args()).collect();
        self.call(&args)
    }

    /// Milliseconds on the server's clock.
    ///
    /// # Panics
    /// The server is down.
    pub fn now_ms(&mut self) -> u64 {
        let time = self.call(&["TIME"]).expect("TIME is answered").into_array().expect("TIME answers a list");
        let part = |i: usize| time.get(i).and_then(Reply::as_u64).expect("TIME answers two numbers");
        part(0) * 1000 + part(1) / 1000
    }

    /// A hash; empty when there is none.
    ///
    /// # Errors
    /// As [`Wire::call`].
    pub fn hgetall(&mut self, key: impl AsRef<[u8]>) -> Result<BTreeMap<Bytes, Bytes>, String> {
        let flat = strings(self.call(&[b"HGETALL", key.as_ref()])?)?;
        Ok(flat.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
    }

    /// A sorted set in its order, with scores.
    ///
    /// # Errors
    /// As [`Wire::call`]; and a score that is no whole number from 0.
    pub fn zrange(&mut self, key: impl AsRef<[u8]>) -> Result<Vec<(Bytes, u64)>, String> {
        let flat = strings(self.call(&[b"ZRANGE".as_slice(), key.as_ref(), b"0", b"-1", b"WITHSCORES"])?)?;
        let pair = |pair: &[Bytes]| {
            let score = Reply::Bytes(pair[1].clone()).as_u64();
            Ok((pair[0].clone(), score.ok_or(format!("{:?} is no score of ours", pair[1]))?))
        };
        flat.chunks_exact(2).map(pair).collect()
    }

    /// A whole stream; empty when there is none.
    ///
    /// # Errors
    /// As [`Wire::call`].
    pub fn xrange(&mut self, key: impl AsRef<[u8]>) -> Result<Vec<RawEntry>, String> {
        let entries = self.call(&[b"XRANGE".as_slice(), key.as_ref(), b"-", b"+"])?;
        let entries = entries.into_array().ok_or("XRANGE did not answer a list")?;
        entries
            .into_iter()
            .map(|entry| RawEntry::from_reply(entry).map_err(|error| error.to_string()))
            .collect()
    }
}

/// An error inside a list has no place in a [`Reply`]: it becomes text, as some servers' scripts return it.
fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(n) => Reply::Int(n),
        Value::Bytes(bytes) => Reply::Bytes(bytes.into()),
        Value::Error(text) => Reply::Bytes(text.into()),
        Value::Array(items) => Reply::Array(items.into_iter().map(reply).collect()),
    }
}

fn strings(reply: Reply) -> Result<Vec<Bytes>, String> {
    let items = reply.into_array().ok_or("the answer is no list")?;
    items.into_iter().map(|item| item.into_bytes().ok_or("an item is no string".to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use overdue_protocol::call::{Change, Mode, Schedule, ScheduleItem, Scheduled, When};
    use overdue_protocol::{Keyspace, QueueName, TimerId};

    use super::*;

    #[test]
    fn a_call_is_run_and_its_answer_decoded() {
        let redis = Redis::start(overdue_sandbox::Options::default()).unwrap();
        let mut wire = Wire::connect(&redis);
        let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 0);
        let item = ScheduleItem {
            id: TimerId::try_from("a").unwrap(),
            when: When::In(1000),
            mode: Mode::Upsert,
            payload: Bytes::new(),
            call: Bytes::from_static(b"8 bytes!"),
            extras: Bytes::new(),
            keyed: false,
        };
        let mut call = Schedule { partition: partition.clone(), partitions: 1, items: vec![item] };
        let Scheduled::Items(armed) = wire.run(&call).unwrap() else { panic!("not armed") };
        assert_eq!(armed[0].change, Change::Armed);
        assert_eq!(wire.zrange(partition.index()).unwrap(), [(Bytes::from("a"), armed[0].due_ms)]);
        call.partitions = 2;
        assert_eq!(wire.run(&call), Ok(Scheduled::Partitions(1)));
    }

    #[test]
    fn the_wire_is_binary_safe_and_keeps_the_words_of_an_error() {
        let redis = Redis::start(overdue_sandbox::Options::default()).unwrap();
        let mut wire = Wire::connect(&redis);
        let odd = b"\xff\r\n\0{}".as_slice();
        wire.call(&[b"HSET".as_slice(), b"h", odd, b""]).unwrap();
        assert_eq!(wire.hgetall("h").unwrap(), BTreeMap::from([(Bytes::from(odd), Bytes::new())]));
        wire.call(&["ZADD", "z", "1767225600000", "a"]).unwrap();
        assert_eq!(wire.zrange("z").unwrap(), [(Bytes::from("a"), 1_767_225_600_000)]);
        wire.call(&["XADD", "s", "1-1", "a", "b"]).unwrap();
        let entries = wire.xrange("s").unwrap();
        assert_eq!(entries[0].field("a"), Some(&Bytes::from("b")));
        assert!(wire.call(&["GET", "z"]).unwrap_err().starts_with("WRONGTYPE "));
        assert_eq!(wire.call(&["GET", "none"]).unwrap(), Reply::Nil);
        assert!(wire.xrange("none").unwrap().is_empty());
        assert!(wire.now_ms().abs_diff(redis_now(&redis)) < 1000);
    }

    fn redis_now(redis: &Redis) -> u64 {
        let seconds = redis.command(&["TIME"]).unwrap().items()[0].int().unwrap();
        u64::try_from(seconds).unwrap() * 1000
    }
}
