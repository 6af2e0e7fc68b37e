//! What the tests with whole processes share: a producer that keeps the ledger, and what the keys say afterwards.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use overdue::{Client, Queue, Raw, When};
use overdue_protocol::{Entry, Keyspace, Partition, QueueName};
use overdue_tests::{Launch, Ledger, Program, Redis, Wire, eventually};

pub(crate) const QUEUE: &str = "orders";
pub(crate) const GROUP: &str = "billing";

/// A partition of the queue, in the default namespace.
pub(crate) fn partition(number: u32) -> Partition {
    Keyspace::default().partition(&QueueName::new(QUEUE).unwrap(), number)
}

/// A producer whose acknowledged timers are obligations.
pub(crate) struct Producer {
    pub(crate) queue: Queue<Raw>,
    pub(crate) ledger: Ledger,
}

impl Producer {
    pub(crate) async fn new(url: &str) -> Self {
        let client = Client::connect(url).await.unwrap();
        Self { queue: client.queue(QUEUE).await.unwrap(), ledger: Ledger::new() }
    }

    /// Arms one timer for each id.
    pub(crate) async fn arm<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
        when: impl Into<When>,
        keyed: bool,
    ) {
        self.arm_with(ids, when, keyed, &Raw::new("hold")).await;
    }

    pub(crate) async fn arm_with<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
        when: impl Into<When>,
        keyed: bool,
        payload: &Raw,
    ) {
        let when = when.into();
        let ids: Vec<_> = ids.into_iter().map(|id| id.as_ref().to_vec()).collect();
        let timer = |id: &Vec<u8>| {
            let timer = self.queue.timer(id).at(when).payload(payload);
            if keyed { timer.keyed() } else { timer }
        };
        let answers = self.queue.schedule_many(ids.iter().map(timer)).await;
        for (id, answer) in ids.iter().zip(answers) {
            let armed = answer.unwrap_or_else(|error| panic!("{}: {error}", id.escape_ascii()));
            self.ledger.armed(QUEUE, id, armed.generation, armed.due_ms);
        }
    }

    /// What `consume --print --json` programs have handled; call it once, when they are gone.
    pub(crate) fn read(&self, consumers: &[&Program]) {
        for consumer in consumers {
            self.ledger.read_json_lines(&consumer.stdout());
        }
    }
}

/// `n` ids.
pub(crate) fn ids(name: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{name}-{i}")).collect()
}

/// A consumer of the queue that prints.
pub(crate) fn printing(url: &str) -> Launch {
    Launch::consume(url, QUEUE, GROUP).args(["--print", "--json"])
}

/// A consumer of the queue that runs a shell script.
pub(crate) fn running(url: &str, script: &str, more: &[&str]) -> Launch {
    Launch::consume(url, QUEUE, GROUP).args(more).args(["--exec", "--", "sh", "-c", script])
}

/// Waits until a service says where it listens: it has come through its start.
pub(crate) fn up(launch: Launch) -> Program {
    let program = launch.start();
    program.addr();
    program
}

/// The entries in the stream of a partition.
pub(crate) fn entries(redis: &Redis, partition: &Partition) -> Vec<Entry> {
    let raw = Wire::connect(redis).xrange(partition.stream()).unwrap();
    raw.iter().map(|raw| Entry::decode(raw).unwrap()).collect()
}

/// Fails unless the stream holds one entry for each of `n` generations, and nothing else.
pub(crate) fn assert_one_entry_each(redis: &Redis, n: usize) {
    let entries = entries(redis, &partition(0));
    let distinct: BTreeSet<_> = entries.iter().map(|entry| entry.generation).collect();
    assert_eq!((entries.len(), distinct.len()), (n, n), "entries and generations");
}

/// Waits until nothing is armed, unread, in hand or waiting for another attempt.
pub(crate) async fn settled(redis: &Redis, partitions: u32) {
    eventually("all is handled", async || {
        let left: Vec<_> = (0..partitions).map(|number| left(redis, &partition(number))).collect();
        if left.iter().all(|left| left.iter().sum::<u64>() == 0) { Ok(()) } else { Err(left) }
    })
    .await;
}

/// Armed, in the stream, waiting retries: at one moment, for a retry moves from one to the other.
pub(crate) fn left(redis: &Redis, partition: &Partition) -> [u64; 3] {
    const LOOK: &str =
        "return {redis.call('ZCARD', KEYS[1]), redis.call('XLEN', KEYS[2]), redis.call('ZCARD', KEYS[3])}";
    let keys = [partition.index(), partition.stream(), partition.retry_index()];
    let args = [b"EVAL".as_slice(), LOOK.as_bytes(), b"3", &keys[0], &keys[1], &keys[2]];
    let counts = redis.command(&args).unwrap();
    std::array::from_fn(|i| counts.items()[i].int().and_then(|n| u64::try_from(n).ok()).unwrap())
}

/// How many timeouts the group has in hand.
pub(crate) fn pending(redis: &Redis) -> u64 {
    let summary = redis.command(&[b"XPENDING".as_slice(), &partition(0).stream(), GROUP.as_bytes()]);
    let first = summary.ok().and_then(|summary| summary.items().first().and_then(|n| n.int()));
    first.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

/// Waits until the group has so many in hand.
pub(crate) async fn in_hand(redis: &Redis, n: u64) {
    eventually("they are in hand", async || {
        let pending = pending(redis);
        if pending == n { Ok(()) } else { Err(pending) }
    })
    .await;
}

/// SIGTERM, and exit code 0 within `deadline`.
pub(crate) fn end(program: &Program, deadline: Duration) {
    program.sigterm();
    assert_eq!(program.wait_exit(deadline).code(), Some(0), "{}", program.stderr());
}

/// SIGTERM, and exit code 0 within 10 s.
pub(crate) fn stop(program: &Program) {
    end(program, Duration::from_secs(10));
}

/// Lets a fault last, while `meanwhile` is done again and again.
pub(crate) async fn last(fault: Duration, mut meanwhile: impl AsyncFnMut()) {
    let end = Instant::now() + fault;
    while Instant::now() < end {
        meanwhile().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Fails when a kind of line stood in the log more than once a second or more than 20 times in a minute.
pub(crate) fn assert_not_noisy(program: &Program) {
    let log = program.stderr();
    let mut kinds = std::collections::BTreeMap::<String, Vec<f64>>::new();
    for line in log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")) {
        let mut words = line.split_whitespace();
        let at = words.next().and_then(seconds).unwrap_or_else(|| panic!("no time in {line:?}"));
        let kind: Vec<_> = words.take(6).collect();
        kinds.entry(kind.join(" ")).or_default().push(at);
    }
    for (kind, times) in kinds {
        let close = times.windows(2).filter(|pair| pair[1] - pair[0] < 0.95).count();
        let most = times.iter().map(|&t| times.iter().filter(|&&u| (t..t + 60.0).contains(&u)).count()).max();
        assert!(close == 0 && most <= Some(20), "{kind:?} stands in the log at {times:?}:\n{log}");
    }
}

/// The seconds within a day of `2026-01-01T12:34:56.789Z`.
fn seconds(time: &str) -> Option<f64> {
    let (_, time) = time.trim_end_matches('Z').split_once('T')?;
    let parts: Vec<f64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    Some(parts[0] * 3600.0 + parts[1] * 60.0 + parts[2])
}
