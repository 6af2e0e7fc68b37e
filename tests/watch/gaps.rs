//! Whole stretches of time in which nobody hears of keys: both subscriptions are cut, or stand still, or lag behind.

use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use overdue_protocol::Entry;
use overdue_protocol::entry::Proof;
use overdue_tests::{Mode, Proxy, Redis, eventually_blocking};

use crate::pair::{KEYEVENT, Pair, name, rule};
use crate::truth::{Truth, told};

/// How long the subscriptions are cut.
const CUT_MS: u64 = 5_000;
/// Keys of each kind.
const EACH: usize = 40;

/// What becomes of the keys of a kind during the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// They end.
    Ends,
    /// They end, and somebody else asks for them in that very moment: that is what ends them.
    Asked,
    /// They end later, behind the cut.
    Extended,
    /// They end in the cut, and not behind it.
    Shortened,
    /// They are deleted; their end would be in the cut, or behind it.
    Deleted,
    DeletedEarly,
    /// They are new, and end behind it.
    New,
}

use Kind::{Asked, Deleted, DeletedEarly, Ends, Extended, New, Shortened};

/// How the keys of two rules fare, `k:f:*` that fire without proof and `k:d:*` that do not.
struct Cut {
    pair: Pair,
    proxy: Proxy,
    truth: Truth,
}

fn keys(rule: char, kind: Kind) -> impl Iterator<Item = String> {
    (0..EACH).map(move |n| format!("k:{rule}:{kind:?}:{n}"))
}

fn of_both(kind: Kind) -> impl Iterator<Item = String> {
    keys('f', kind).chain(keys('d', kind))
}

impl Cut {
    fn start() -> Self {
        Self::with("", "__keyspace@0__:")
    }

    /// `channels` stands in what watched keys are heard by, and in nothing else that is sent.
    fn with(config: &str, channels: &str) -> Self {
        let (redis, truth) = told();
        let proxy = Proxy::start(redis.addr());
        proxy.only(channels);
        let rules = [rule("fire", "k:f:*", ""), rule("drop", "k:d:*", "on_unproven = \"drop\"")].concat();
        let pair = Pair::through(redis, &proxy.url(), &format!("{config}{rules}"));
        pair.scanned();
        Self { pair, proxy, truth }
    }

    /// Writes the keys, lets `mode` hold for the subscriptions while they are dealt with, and waits until all have ended.
    fn run(&self, mode: Mode) {
        let redis = &self.pair.redis;
        let mut wire = redis.connection().unwrap();
        let mut call = |command: &[&str]| wire.call(command).unwrap();
        let known = [Ends, Asked, Extended, Shortened, Deleted, DeletedEarly];
        let begun = redis.now_ms();
        let (in_it, far) = (begun + 3_500, begun + 10_000);
        for (kind, at) in known.into_iter().zip([in_it, in_it, in_it, far, in_it, far]) {
            for key in of_both(kind) {
                call(&["SET", &key, "v", "PXAT", &at.to_string()]);
            }
        }
        eventually_blocking("all are known", || {
            let known_now = self.pair.known("fire").len() + self.pair.known("drop").len();
            if known_now == known.len() * 2 * EACH { Ok(()) } else { Err(known_now) }
        });
        self.proxy.down(mode);
        self.proxy.up(mode);
        // So long behind the cut that all are heard of again before, also where little else gets done.
        let behind = redis.now_ms() + CUT_MS + 4_000;
        let healed = Instant::now() + Duration::from_millis(CUT_MS);
        let up = || self.pair.count("overdue_subscription_up", &[("role", "watch")]);
        eventually_blocking("the subscriptions are down, or silent", || {
            // What is heard breaks them.
            call(&["SET", "k:f:noise", "v"]);
            call(&["DEL", "k:f:noise"]);
            up() == 0.0
        });
        let asking = ask_at_the_end(redis, of_both(Asked).collect(), in_it);
        for key in of_both(Extended) {
            call(&["PEXPIREAT", &key, &behind.to_string()]);
        }
        assert!(redis.now_ms() < in_it, "too slow for what comes in the cut");
        for key in of_both(Shortened) {
            call(&["PEXPIREAT", &key, &in_it.to_string()]);
        }
        for key in of_both(Deleted).chain(of_both(DeletedEarly)) {
            call(&["DEL", &key]);
        }
        for key in of_both(New) {
            call(&["SET", &key, "v", "PXAT", &behind.to_string()]);
        }
        asking.join().unwrap();
        std::thread::sleep(healed.saturating_duration_since(Instant::now()));
        self.proxy.heal();
        eventually_blocking("all are heard of again", || up() == 2.0);
        assert!(redis.now_ms() < behind, "too slow for what comes behind the cut");
        for (queue, key) in [("fire", "k:f:~"), ("drop", "k:d:~")] {
            self.pair.entries_after(queue, key, behind.max(far));
        }
    }

    /// The timeouts of one key each, and how many of them without proof.
    fn fired(&self, queue: &str) -> BTreeMap<String, Vec<Entry>> {
        let mut fired = BTreeMap::<String, Vec<Entry>>::new();
        for entry in self.pair.entries(queue) {
            fired.entry(name(entry.id.as_bytes())).or_default().push(entry);
        }
        fired
    }

    fn told(&self, key: &str) -> usize {
        self.truth.counts().get(key.as_bytes()).map_or(0, |&n| n as usize)
    }

    fn assert_kept(&self) {
        let told = self.truth.counts();
        for kind in [Ends, Asked, Extended, Shortened, New] {
            assert!(
                of_both(kind).all(|key| told.get(key.as_bytes()) == Some(&1)),
                "{kind:?}: the server told another story"
            );
        }
        let (fire, drop) = (self.fired("fire"), self.fired("drop"));
        let count = |of: &BTreeMap<String, Vec<Entry>>, key: &str| of.get(key).map_or(0, Vec::len);
        // Whoever fires without proof loses nothing, and what is false is marked.
        for kind in [Ends, Asked, Extended, Shortened, Deleted, DeletedEarly, New] {
            for key in keys('f', kind) {
                assert_eq!(count(&fire, &key), 1, "{key}: {:?}", fire.get(&key));
                let marked = fire[&key][0].proof == Some(Proof::Unproven);
                assert!(marked || self.told(&key) == 1, "{key}: {:?}", fire[&key]);
            }
        }
        // Whoever does not fires nothing false; what is proven or heard after all fires.
        for kind in [Deleted, DeletedEarly] {
            assert!(keys('d', kind).all(|key| count(&drop, &key) == 0), "{kind:?}");
        }
        for kind in [Extended, New] {
            for key in keys('d', kind) {
                assert_eq!(count(&drop, &key), 1, "{key}");
            }
        }
        assert!(drop.values().flatten().all(|entry| entry.proof != Some(Proof::Unproven)));
        // All else is counted, in the books and in the metrics. The server itself is somebody who may ask for a key.
        let unproven = fire.values().flatten().filter(|entry| entry.proof == Some(Proof::Unproven)).count();
        let of_others = || [Ends, Asked, Shortened].into_iter().flat_map(|kind| keys('d', kind));
        let missing = of_others().filter(|key| count(&drop, key) == 0).count();
        let dropped = self.pair.tally("drop", "watched_dropped");
        println!("unproven {unproven}, dropped {dropped}, of these expired {missing}");
        assert!(of_others().all(|key| count(&drop, &key) <= 1));
        assert_eq!(self.pair.tally("fire", "watched_unproven"), unproven as u64);
        let metric = |queue, result| {
            self.pair.count("overdue_unproven_total", &[("queue", queue), ("result", result)])
        };
        eventually_blocking("the metrics say the same", || {
            let said = (metric("fire", "fired"), metric("drop", "dropped"));
            if said == (unproven as f64, dropped as f64) { Ok(()) } else { Err(said) }
        });
        assert!(dropped >= (2 * EACH + missing) as u64, "{dropped} of {}", 2 * EACH + missing);
        for queue in ["fire", "drop"] {
            self.pair.await_known(queue, &[]);
        }
        self.pair.end();
    }
}

/// Somebody who asks for keys without a pause from just before their end until they are gone.
fn ask_at_the_end(redis: &Redis, keys: Vec<String>, end_ms: u64) -> JoinHandle<()> {
    let mut connection = redis.connection().unwrap();
    let now_ms = redis.now_ms();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis((end_ms - 20).saturating_sub(now_ms)));
        let words: Vec<_> = std::iter::once("EXISTS").chain(keys.iter().map(String::as_str)).collect();
        while connection.call(&words).unwrap().int() != Some(0) {}
    })
}

#[test]
fn while_both_subscriptions_are_cut_no_expiry_is_lost_and_what_is_unproven_is_marked_and_counted() {
    let cut = Cut::start();
    cut.run(Mode::Cut);
    cut.assert_kept();
}

#[test]
fn while_both_subscriptions_to_keyevent_channels_are_cut_the_same_holds() {
    let cut = Cut::with(KEYEVENT, "__keyevent@0__:rename_from");
    cut.run(Mode::Cut);
    cut.assert_kept();
}

#[test]
fn while_both_subscriptions_stand_still_no_expiry_is_lost_and_what_is_unproven_is_marked_and_counted() {
    let cut = Cut::start();
    cut.run(Mode::Hold);
    cut.assert_kept();
}

/// Longer than a key waits for its proof, and not so long that the subscription counts as broken.
#[test]
fn notifications_that_come_too_late_pay_for_what_has_fired_and_fire_what_was_dropped() {
    let cut = Cut::start();
    let redis = &cut.pair.redis;
    let gaps = || cut.pair.count("overdue_gaps_total", &[]);
    let gaps_before = gaps();
    cut.proxy.down(Mode::Delay(Duration::from_millis(1_200)));
    let end = redis.now_ms() + 4_000;
    for kind in [Ends, Asked, Deleted] {
        for key in of_both(kind) {
            redis.call(&["SET", &key, "v", "PXAT", &end.to_string()]);
        }
    }
    eventually_blocking("all are known", || {
        let known = cut.pair.known("fire").len() + cut.pair.known("drop").len();
        if known == 6 * EACH { Ok(()) } else { Err(known) }
    });
    let asking = ask_at_the_end(redis, of_both(Asked).collect(), end);
    // Just before their end: the nudge finds them gone before anybody says why.
    std::thread::sleep(Duration::from_millis((end - 50).saturating_sub(redis.now_ms())));
    of_both(Deleted).for_each(|key| drop(redis.call(&["DEL", &key])));
    asking.join().unwrap();
    // And a second life of each, which nothing of the first may pay for.
    eventually_blocking("all without proof are settled", || {
        let settled = cut.pair.tally("fire", "watched_unproven") + cut.pair.tally("drop", "watched_dropped");
        if settled >= 2 * EACH as u64 { Ok(()) } else { Err(settled) }
    });
    let second = redis.now_ms() + 1_500;
    for key in of_both(Deleted).chain(of_both(Asked)) {
        redis.call(&["SET", &key, "v", "PXAT", &second.to_string()]);
    }
    for (queue, key) in [("fire", "k:f:~"), ("drop", "k:d:~")] {
        cut.pair.entries_after(queue, key, second + 2_500);
    }
    assert_eq!(gaps(), gaps_before, "the subscriptions broke");
    let (fire, drop) = (cut.fired("fire"), cut.fired("drop"));
    for kind in [Ends, Asked, Deleted] {
        for (of, rule) in [(&fire, 'f'), (&drop, 'd')] {
            for key in keys(rule, kind) {
                let entries = of.get(&key).map_or(&[][..], Vec::as_slice);
                let false_ones = usize::from(kind == Deleted && rule == 'f');
                assert_eq!(entries.len(), cut.told(&key) + false_ones, "{key}: {entries:?}");
                assert!(false_ones == 0 || entries[0].proof == Some(Proof::Unproven), "{entries:?}");
            }
        }
    }
    let paid = cut.pair.count("overdue_watch_settled_total", &[("word", "PAID")]);
    let dropped = cut.pair.tally("drop", "watched_dropped");
    println!("paid {paid}, dropped {dropped}");
    assert!(paid >= EACH as f64 && dropped >= 2 * EACH as u64, "paid {paid}, dropped {dropped}");
    cut.pair.end();
}
