//! A primary fails while keys are written: what of it holds and what does not. docs/OPERATIONS.md has the figures.

mod verdict;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use overdue_protocol::Entry;
use overdue_protocol::entry::Proof;
use overdue_tests::{Cluster, Program, Redis, Sentinel, eventually_blocking, patience};

use crate::cluster::{Fleet, home, home_of_index, options};
use crate::pair;
use crate::stage::{QUEUE, entries, partition};
use verdict::Verdict;

/// What is acknowledged so shortly before the end of a server may not have left it, or not be known to the relays.
const HASTE_MS: u64 = 300;
/// How late a key may be that has nothing to do with the server that failed. The failure takes longer.
const LATE_MS: u64 = 1_500;
/// How many keys of the server that fails are written at least before it does, and after its successor is heard.
const ENOUGH: usize = 101;
/// When keys end after they were written; some outlive the failure.
const TTLS_MS: [u64; 4] = [150, 700, 2_500, 7_000];

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_millis() as u64
}

/// A key that was written: acknowledged, and replicated where the server was about to fail.
struct Written {
    key: String,
    at_ms: u64,
    due_ms: u64,
}

/// A primary that fails, the replica that takes over, and those that stay.
struct Failure<'a> {
    old: &'a Redis,
    new: &'a Redis,
    others: &'a [Redis],
    relays: &'a [Program],
    /// By [`now_ms`].
    killed_ms: u64,
    elected_ms: u64,
    heard_ms: u64,
}

impl<'a> Failure<'a> {
    fn of(old: &'a Redis, new: &'a Redis, others: &'a [Redis], relays: &'a [Program]) -> Self {
        Self { old, new, others, relays, killed_ms: u64::MAX, elected_ms: u64::MAX, heard_ms: u64::MAX }
    }

    /// Writes keys for 3 s or more, kills the primary, and goes on until 3 s or more after its successor is heard.
    fn write_through(&mut self) -> Vec<Written> {
        let servers: Vec<_> = [self.old, self.new].into_iter().chain(self.others).collect();
        let mut wires: Vec<_> = servers.iter().map(|server| server.connection().unwrap()).collect();
        let begun = Instant::now();
        let mut written = vec![];
        for n in 0.. {
            assert!(begun.elapsed() < patience(), "nobody took over");
            let key = format!("k:{n}");
            // The servers: old, new, others; homes: old, others.
            let at = match if self.others.is_empty() { 0 } else { home(&key) } {
                0 => usize::from(self.killed_ms < u64::MAX),
                other => other + 1,
            };
            let ttl_ms = TTLS_MS[n % TTLS_MS.len()] + n as u64 % 97;
            let due_ms = now_ms() + ttl_ms;
            let mut ask = |command: &[&str]| wires[at].call(command).map(|answer| answer.text());
            let acknowledged =
                ask(&["SET", &key, "v", "PX", &ttl_ms.to_string()]).is_ok_and(|text| text == "OK");
            if acknowledged && (at > 0 || ask(&["WAIT", "1", "200"]).is_ok_and(|replicas| replicas == "1")) {
                written.push(Written { key, at_ms: now_ms(), due_ms });
            } else if let Ok(again) = servers[at].connection() {
                // A Sentinel ends the connections to whom it promotes.
                wires[at] = again;
            }
            let due_to_fail = self.killed_ms == u64::MAX && begun.elapsed() > Duration::from_secs(3);
            if due_to_fail && self.written_since(&written, 0) >= ENOUGH {
                self.old.kill9();
                self.killed_ms = now_ms();
            }
            if n % 10 == 0 && self.is_over(&written) {
                break;
            }
            std::thread::sleep(Duration::from_millis(4));
        }
        written
    }

    /// How many keys of the server that fails were written since, but for the last.
    fn written_since(&self, written: &[Written], since_ms: u64) -> usize {
        let is_of_old = |one: &&Written| self.others.is_empty() || home(&one.key) == 0;
        let times = since_ms + 1..now_ms() - HASTE_MS;
        written.iter().filter(is_of_old).filter(|one| times.contains(&one.at_ms)).count()
    }

    /// Looks how far it is.
    fn is_over(&mut self, written: &[Written]) -> bool {
        if self.killed_ms == u64::MAX {
            return false;
        }
        if self.elected_ms == u64::MAX && is_primary(self.new) {
            self.elected_ms = now_ms();
        }
        if self.heard_ms == u64::MAX && self.relays.iter().all(|relay| hears(relay, self.new)) {
            self.heard_ms = now_ms();
        }
        self.heard_ms < u64::MAX
            && now_ms() > self.heard_ms + 3_000
            && self.written_since(written, self.heard_ms + HASTE_MS) >= ENOUGH
    }

    /// What became of the keys, and what must have.
    fn judge(&self, written: &[Written], fired: Vec<Entry>) {
        let mut of_key: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for entry in fired {
            of_key.entry(pair::name(entry.id.as_bytes())).or_default().push(entry);
        }
        let judge = |which: &dyn Fn(&Written) -> bool| {
            let mut verdict = Verdict::default();
            written.iter().filter(|one| which(one)).for_each(|one| verdict.add(one, of_key.get(&one.key)));
            verdict
        };
        let alone = self.others.is_empty();
        let is_of_old = |one: &Written| alone || home(&one.key) == 0;
        let has_index = |one: &Written| alone || home_of_index(QUEUE, &one.key) == 0;
        let known = |one: &Written| one.at_ms + HASTE_MS < self.killed_ms;
        let heard = |one: &Written| one.at_ms > self.heard_ms + HASTE_MS;
        // What is alive when SCAN comes by is found.
        let found = |one: &Written| one.at_ms > self.killed_ms && one.due_ms > self.heard_ms + 1_000;

        let before = judge(&|one| is_of_old(one) && known(one));
        let haste = judge(&|one| is_of_old(one) && !known(one) && one.at_ms <= self.killed_ms);
        let gap = judge(&|one| is_of_old(one) && one.at_ms > self.killed_ms && !heard(one) && !found(one));
        let after = judge(&|one| is_of_old(one) && (heard(one) || found(one)));
        let index = judge(&|one| !is_of_old(one) && has_index(one));
        let others = judge(&|one| !is_of_old(one) && !has_index(one));
        println!(
            "taken over after {} ms, heard {} ms later\n  of the server that failed, written before: {before}\n  in the last \
             {HASTE_MS} ms before: {haste}\n  after it, and gone before it was heard: {gap}\n  later, or alive then: \
             {after}\n  of others, with the index there: {index}\n  of others: {others}",
            self.elected_ms - self.killed_ms,
            self.heard_ms.saturating_sub(self.elected_ms)
        );
        for (what, verdict) in
            [("before", &before), ("after", &after), ("others", &others), ("index", &index)]
        {
            let Verdict { lost, twice, .. } = verdict;
            assert!(lost.is_empty() && twice.is_empty(), "{what}: lost {lost:?}, twice {twice:?}");
        }
        assert!(haste.twice.is_empty() && gap.twice.is_empty(), "{:?} {:?}", haste.twice, gap.twice);
        assert!(before.of >= ENOUGH && after.of >= ENOUGH, "{before}, {after}");
        assert_eq!(others.unproven, 0, "{others}");
        assert!(others.late_ms.iter().all(|&late| late < LATE_MS), "the others stood still: {others}");
    }
}

fn is_primary(server: &Redis) -> bool {
    server.info("replication")["role"] == "master"
}

/// Whether a relay is subscribed to a primary that sends notifications.
fn hears(relay: &Program, server: &Redis) -> bool {
    let name = format!(":{} ", relay.pid());
    let clients = server.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
    let subscribed = clients.lines().any(|line| line.contains("name=overdue-watch:") && line.contains(&name));
    subscribed && server.call(&["CONFIG", "GET", "notify-keyspace-events"]).items()[1].text().contains('K')
}

#[test]
fn when_a_node_of_a_cluster_fails_the_others_go_on_and_its_successor_is_heard() {
    let fleet = Fleet::start(Cluster::with_replica(&options()), &pair::rule(QUEUE, "k:*", ""));
    let nodes = fleet.cluster.nodes();
    let mut failure = Failure::of(&nodes[0], &nodes[3], &nodes[1..3], &fleet.relays);
    let written = failure.write_through();
    fleet.await_known(QUEUE, 0);
    failure.judge(&written, fleet.entries(QUEUE));
    fleet.end();
}

#[test]
fn idle_subscriptions_follow_an_orderly_failover_within_seconds() {
    let fleet = Fleet::start(Cluster::with_replica(&options()), &pair::rule(QUEUE, "k:*", ""));
    let nodes = fleet.cluster.nodes();
    let (old, new) = (&nodes[0], &nodes[3]);
    let keys: Vec<_> = (0..).map(|n| format!("k:{n}")).filter(|key| home(key) == 0).take(40).collect();
    let set = |key: &String, at: &Redis, ttl_ms: &str| drop(at.call(&["SET", key, "v", "PX", ttl_ms]));
    keys[..20].iter().for_each(|key| set(key, old, "3600000"));
    fleet.await_known(QUEUE, 20);

    new.call(&["CLUSTER", "FAILOVER"]);
    eventually_blocking("the replica takes over", || is_primary(new));
    let begun = Instant::now();
    eventually_blocking("it is heard", || fleet.relays.iter().all(|relay| hears(relay, new)));
    let took = begun.elapsed();
    println!("heard {took:?} after an orderly failover");
    assert!(took < Duration::from_secs(6), "{took:?}");
    eventually_blocking("its predecessor is left", || !fleet.relays.iter().any(|relay| hears(relay, old)));

    keys[..20].iter().for_each(|key| drop(new.call(&["PEXPIRE", key, "500"])));
    keys[20..].iter().for_each(|key| set(key, new, "500"));
    let fired = eventually_blocking("all have fired", || {
        let fired = fleet.entries(QUEUE);
        if fired.len() >= keys.len() { Ok(fired) } else { Err(fired.len()) }
    });
    let mut names: Vec<_> = fired.iter().map(|entry| pair::name(entry.id.as_bytes())).collect();
    let mut expected = keys;
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
    assert!(fired.iter().all(|entry| entry.proof != Some(Proof::Unproven)), "{fired:?}");
    fleet.end();
}

#[test]
fn when_a_primary_behind_a_sentinel_fails_its_successor_is_heard() {
    let sentinel = Sentinel::start();
    let [old, new] = sentinel.nodes();
    let config = pair::rule(QUEUE, "k:*", "");
    let relays: [Program; 2] = std::array::from_fn(|_| pair::relay(new, &sentinel.url(), &config));
    let mut failure = Failure::of(old, new, &[], &relays);
    let written = failure.write_through();
    eventually_blocking("nothing is waited for any more", || {
        let known = new.count(&[b"ZCARD".as_slice(), &partition().watched()]);
        if known == 0 { Ok(()) } else { Err(known) }
    });
    failure.judge(&written, entries(new));
    for relay in &relays {
        relay.sigterm();
        assert!(relay.wait_exit(Duration::from_secs(10)).success(), "{}", relay.stderr());
    }
}
