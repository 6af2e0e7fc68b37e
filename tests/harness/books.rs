//! The books, checked from the raw keys (PROTOCOL.md section 7): no script and no code of the audit is used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use overdue_protocol::tally::{self, GroupCounter};
use overdue_protocol::{GroupName, Keyspace, Partition, QueueName};
use overdue_sandbox::{Connection, Value};

use crate::patience::eventually_blocking;
use crate::{Cluster, Redis};

/// Where the keys of a partition are.
pub trait Place {
    /// The server that holds `key`.
    fn server_of(&self, key: &[u8]) -> &Redis;
}

impl Place for Redis {
    fn server_of(&self, _: &[u8]) -> &Redis {
        self
    }
}

impl Place for Cluster {
    fn server_of(&self, key: &[u8]) -> &Redis {
        self.node_of(key)
    }
}

/// Both sides of one equation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What is balanced: the timers, or a group.
    pub what: String,
    /// The terms of the left side: what went in.
    pub left: Vec<(&'static str, i64)>,
    /// The terms of the right side: where it is.
    pub right: Vec<(&'static str, i64)>,
}

impl Line {
    /// Left less right: above 0 something is lost, below 0 something is there twice.
    #[must_use]
    pub fn difference(&self) -> i64 {
        let sum = |side: &[(&str, i64)]| side.iter().map(|(_, n)| n).sum::<i64>();
        sum(&self.left) - sum(&self.right)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side =
            |side: &[(&str, i64)]| side.iter().map(|(term, n)| format!("{term} {n}")).collect::<Vec<_>>();
        let (left, right) = (side(&self.left).join(" + "), side(&self.right).join(" + "));
        write!(f, "{}: {left} = {right}; difference {}", self.what, self.difference())
    }
}

/// The books of one partition, read in one MULTI: they can't move meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    /// The equation of the timers, then one for each group.
    pub lines: Vec<Line>,
}

impl Books {
    /// Reads the books of a partition in database `db`.
    ///
    /// # Panics
    /// The server does not answer, or a key has the wrong type.
    #[must_use]
    pub fn read(place: &impl Place, db: u32, partition: &Partition) -> Self {
        let server = place.server_of(&partition.tally());
        let mut redis = server.connection().unwrap_or_else(|error| panic!("{error}"));
        if db != 0 {
            redis.call(&["SELECT", &db.to_string()]).unwrap_or_else(|error| panic!("{error}"));
        }
        eventually_blocking("the groups stand still for a moment", || {
            let groups = groups(&redis.call(&[b"XINFO".as_slice(), b"GROUPS", &partition.stream()]).ok());
            let answers = snapshot(&mut redis, partition, &groups);
            (groups == self::groups(&answers.first().cloned())).then(|| balance(partition, &groups, &answers))
        })
    }

    /// The lines that don't balance.
    #[must_use]
    pub fn faults(&self) -> Vec<&Line> {
        self.lines.iter().filter(|line| line.difference() != 0).collect()
    }
}

/// Fails unless the books of all partitions of a queue balance, in the default namespace and database.
///
/// # Panics
/// Shows all lines.
pub fn assert_balanced(place: &impl Place, queue: &str, partitions: u32) {
    let queue = QueueName::new(queue).unwrap_or_else(|error| panic!("{error}"));
    for number in 0..partitions {
        assert_partition_balanced(place, 0, &Keyspace::default().partition(&queue, number));
    }
}

/// Fails unless the books of one partition balance.
///
/// # Panics
/// Shows all lines.
pub fn assert_partition_balanced(place: &impl Place, db: u32, partition: &Partition) {
    let books = Books::read(place, db, partition);
    let shown = books.lines.iter().map(|line| format!("\n  {line}")).collect::<String>();
    assert!(books.faults().is_empty(), "the books of {}/{}:{shown}", partition.queue(), partition.number());
}

/// A group as XINFO shows it: up to where it has read.
type Groups = BTreeMap<String, EntryId>;
type EntryId = (u64, u64);

fn groups(info: &Option<Value>) -> Groups {
    let read = |group: &Value| {
        let fields: Vec<_> = group.items().iter().map(Value::text).collect();
        let field = |name: &str| fields.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone());
        Some((field("name")?, entry_id(&field("last-delivered-id")?)))
    };
    info.iter().flat_map(Value::items).filter_map(read).collect()
}

fn entry_id(text: &str) -> EntryId {
    let (ms, seq) = text.split_once('-').unwrap_or((text, "0"));
    (ms.parse().unwrap_or(0), seq.parse().unwrap_or(0))
}

/// XINFO GROUPS, HGETALL tally, ZCARD index, ZRANGE retry-index, XRANGE stream, and XPENDING of each group.
fn snapshot(redis: &mut Connection, partition: &Partition, groups: &Groups) -> Vec<Value> {
    let stream = partition.stream();
    let mut commands: Vec<Vec<&[u8]>> = vec![vec![b"XINFO", b"GROUPS", &stream]];
    let (tally, index, retries) = (partition.tally(), partition.index(), partition.retry_index());
    commands.push(vec![b"HGETALL", &tally]);
    commands.push(vec![b"ZCARD", &index]);
    commands.push(vec![b"ZRANGE", &retries, b"0", b"-1"]);
    commands.push(vec![b"XRANGE", &stream, b"-", b"+"]);
    for group in groups.keys() {
        commands.push(vec![b"XPENDING", &stream, group.as_bytes(), b"-", b"+", b"1000000"]);
    }
    let mut call =
        |args: &[&[u8]]| redis.call(args).unwrap_or_else(|error| panic!("reading the books: {error}"));
    call(&[b"MULTI"]);
    commands.iter().for_each(|command| drop(call(command)));
    call(&[b"EXEC"]).items().to_vec()
}

fn balance(partition: &Partition, groups: &Groups, answers: &[Value]) -> Books {
    if let Some(Value::Error(error)) = answers[1..5].iter().find(|answer| matches!(answer, Value::Error(_))) {
        panic!("reading the books of {}/{}: {error}", partition.queue(), partition.number());
    }
    let tally: BTreeMap<_, _> =
        answers[1].items().chunks(2).map(|pair| (pair[0].text(), pair[1].int().unwrap_or(0))).collect();
    let count = |field: &str| tally.get(field).copied().unwrap_or(0);
    let timers = Line {
        what: "timers".to_owned(),
        left: vec![("scheduled", count(tally::SCHEDULED)), ("foreign", count(tally::FOREIGN))],
        right: vec![
            ("replaced", count(tally::REPLACED)),
            ("cancelled", count(tally::CANCELLED)),
            ("fired", count(tally::FIRED_TIMERS)),
            ("armed", answers[2].int().unwrap_or(0)),
        ],
    };
    let retries: Vec<_> = answers[3].items().iter().map(Value::text).collect();
    let mut lines = vec![timers];
    for (i, (name, last)) in groups.iter().enumerate() {
        let group = GroupName::new(name).unwrap_or_else(|error| panic!("{error}"));
        let of = |counter: GroupCounter| count(&counter.field(&group));
        let waiting = retries.iter().filter(|member| member.split('/').next() == Some(name)).count();
        let pending: BTreeSet<_> = answers[5 + i]
            .items()
            .iter()
            .filter_map(|entry| entry.items().first())
            .map(|id| entry_id(&id.text()))
            .collect();
        let plain = count(&tally::plain(&group)) == 1;
        let live =
            answers[4].items().iter().filter(|entry| is_live(entry, name, *last, &pending, plain)).count();
        lines.push(Line {
            what: format!("group {name}"),
            left: vec![
                ("fired", count(tally::FIRED_TIMERS)),
                ("watched fired", count(tally::WATCHED_FIRED)),
                ("less base", -of(GroupCounter::Base)),
                ("replayed", of(GroupCounter::Replayed)),
            ],
            right: vec![
                ("done", of(GroupCounter::Done)),
                ("buried", of(GroupCounter::Buried)),
                ("discarded", of(GroupCounter::Discarded)),
                ("waiting", i64::try_from(waiting).unwrap_or(i64::MAX)),
                ("live", i64::try_from(live).unwrap_or(i64::MAX)),
            ],
        });
    }
    Books { lines }
}

/// Whether the group has still to finish this entry: it is not addressed to another, and unread or pending. For a plain
/// group until it is deleted: nobody counts an acknowledgement.
fn is_live(entry: &Value, group: &str, last: EntryId, pending: &BTreeSet<EntryId>, plain: bool) -> bool {
    let [id, fields] = entry.items() else { return false };
    let id = entry_id(&id.text());
    let addressed =
        fields.items().chunks(2).find(|pair| pair[0].text() == "group").map(|pair| pair[1].text());
    addressed.is_none_or(|to| to == group) && (plain || id > last || pending.contains(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Partition {
        Keyspace::default().partition(&QueueName::new("orders").unwrap(), 0)
    }

    fn set(redis: &Redis, fields: &[(&str, i64)]) {
        for (field, n) in fields {
            redis.call(&[b"HSET".as_slice(), &orders().tally(), field.as_bytes(), n.to_string().as_bytes()]);
        }
    }

    #[test]
    fn nothing_at_all_balances() {
        assert_balanced(&Redis::start(), "orders", 2);
    }

    #[test]
    fn each_term_is_counted_and_a_missing_timer_is_found() {
        let redis = Redis::start();
        set(
            &redis,
            &[("scheduled", 9), ("foreign", 1), ("replaced", 1), ("cancelled", 1), ("fired_timers", 6)],
        );
        for id in ["a", "b"] {
            redis.call(&[b"ZADD".as_slice(), &orders().index(), b"1", id.as_bytes()]);
        }
        // Of six: one done and gone, one buried and gone, one waiting as a retry, one finished, one pending, one unread.
        let stream = orders().stream();
        let xadd = |id: &str, field: &str, value: &str| {
            redis.call(&[b"XADD".as_slice(), &stream, id.as_bytes(), field.as_bytes(), value.as_bytes()]);
        };
        xadd("1-1", "id", "finished");
        xadd("1-2", "id", "pending");
        xadd("1-3", "group", "mailing");
        redis.call(&[b"XGROUP".as_slice(), b"CREATE", &stream, b"billing", b"0"]);
        redis.call(&[b"XREADGROUP".as_slice(), b"GROUP", b"billing", b"c", b"STREAMS", &stream, b">"]);
        redis.call(&[b"XACK".as_slice(), &stream, b"billing", b"1-1", b"1-3"]);
        xadd("1-4", "id", "unread");
        xadd("1-5", "group", "mailing");
        redis.call(&[b"ZADD".as_slice(), &orders().retry_index(), b"1", b"billing/a/b/7"]);
        redis.call(&[b"ZADD".as_slice(), &orders().retry_index(), b"1", b"bill/a/b/7"]);
        set(&redis, &[("done:billing", 2), ("buried:billing", 1), ("base:billing", 0)]);
        assert_balanced(&redis, "orders", 1);

        redis.call(&[b"ZREM".as_slice(), &orders().index(), b"a"]);
        redis.call(&[b"XDEL".as_slice(), &stream, b"1-4"]);
        let books = Books::read(&redis, 0, &orders());
        let faults: Vec<_> =
            books.faults().iter().map(|line| (line.what.as_str(), line.difference())).collect();
        assert_eq!(faults, [("timers", 1), ("group billing", 1)]);
    }
}
