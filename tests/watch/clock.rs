//! The server's clock is stepped by 5 s, as by an administrator. Positions and deadlines are by that clock, so they jump
//! with it.
//!
//! A library that is put before libc adds the step to the server's time: `clock.c`. It needs Linux and a C compiler,
//! which Rust needs there too.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_protocol::Entry;
use overdue_protocol::entry::Proof;
use overdue_tests::redis::Options;
use overdue_tests::{Program, Redis, eventually_blocking};
use tempfile::TempDir;

use crate::churn::Churn;
use crate::stage::{await_quiet, entries, partition, relay, timeouts};
use crate::truth::Truth;

/// Each step.
const STEP_MS: i64 = 5_000;
/// For so long keys are written before a step, and after the last one. Two of them and a second are less than a step: no
/// key is looked at in a second that comes twice (see the last test), on a slow machine neither.
const STRETCH: Duration = Duration::from_millis(1_500);
/// How late a key may be by the clock that it was written under, or in our own time after a step.
const LATE: Duration = Duration::from_secs(1);

/// A server, and the clock that it goes by.
struct Stepped {
    redis: Redis,
    folder: TempDir,
    step_ms: i64,
}

impl Stepped {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("clock.c"), include_str!("clock.c")).unwrap();
        let build = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([path("clock.so"), path("clock.c")])
            .status();
        assert!(build.is_ok_and(|status| status.success()), "a C compiler that answers to cc is needed");
        fs::write(path("step"), 0_i64.to_ne_bytes()).unwrap();

        let server = std::env::var("OVERDUE_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let (library, step) = (path("clock.so"), path("step"));
        let text = format!(
            "#!/bin/sh\nexec env LD_PRELOAD={} STEPPED_CLOCK={} {server} \"$@\"\n",
            library.display(),
            step.display()
        );
        fs::write(path("server"), text).unwrap();
        fs::set_permissions(path("server"), Permissions::from_mode(0o755)).unwrap();
        let redis = Redis::with(Options { program: Some(path("server")), ..Options::default() });
        redis.call(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"]);
        Self { redis, folder, step_ms: 0 }
    }

    /// Steps the clock, forward or back.
    fn step(&mut self, by_ms: i64) {
        self.step_ms += by_ms;
        // Not emptied first, not for a moment: the server has it mapped.
        let mut file = OpenOptions::new().write(true).open(self.path("step")).unwrap();
        file.write_all(&(self.step_ms * 1_000).to_ne_bytes()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn set(&self, keys: impl IntoIterator<Item = String>, ttl_ms: u64) -> Vec<String> {
        let set = |key: String| {
            self.redis.call(&["SET", &key, "v", "PX", &ttl_ms.to_string()]);
            key
        };
        keys.into_iter().map(set).collect()
    }

    fn known(&self) -> u64 {
        self.redis.count(&[b"ZCARD".as_slice(), &partition().watched()])
    }

    fn await_known(&self, keys: usize) {
        eventually_blocking("the index knows them", || {
            let known = self.known();
            if known == keys as u64 { Ok(()) } else { Err(known) }
        });
    }

    /// Waits until so many have fired.
    fn fired(&self, n: usize) -> Vec<Entry> {
        eventually_blocking("all have fired", || {
            let fired = entries(&self.redis);
            if fired.len() >= n { Ok(fired) } else { Err(fired.len()) }
        })
    }

    fn relays(&self, more: &str) -> [Program; 2] {
        std::array::from_fn(|_| relay(&self.redis, more))
    }
}

fn names(prefix: &str, n: usize) -> impl Iterator<Item = String> {
    (0..n).map(move |n| format!("k:{prefix}:{n}"))
}

fn of<'a>(fired: &'a [Entry], prefix: &str) -> Vec<&'a Entry> {
    let prefix = format!("k:{prefix}:");
    fired.iter().filter(|entry| entry.id.as_bytes().starts_with(prefix.as_bytes())).collect()
}

fn lateness(fired: &[&Entry]) -> Duration {
    Duration::from_millis(fired.iter().map(|entry| entry.fired_ms - entry.due_ms).max().unwrap())
}

/// Keys are written, rewritten, extended, shortened, deleted and so on while the clock is stepped after each stretch. It runs
/// alone: where relays are further behind than keys wait for their proof, one that was deleted fires, unproven.
fn every_expiration_is_one_timeout(steps_ms: [i64; 2], on_unproven: &str, seed: u64) {
    let mut server = Stepped::start();
    let relays = server.relays(&format!("on_unproven = \"{on_unproven}\""));
    let truth = Truth::listen(&server.redis);
    let mut churn = Churn::new(&server.redis, seed);
    for by_ms in [Some(steps_ms[0]), Some(steps_ms[1]), None] {
        let begun = Instant::now();
        while begun.elapsed() < STRETCH {
            churn.turn();
        }
        by_ms.into_iter().for_each(|by_ms| server.step(by_ms));
    }
    churn.finish(&server.redis);
    server.await_known(0);
    await_quiet(&server.redis, Duration::from_secs(2));

    let (told, fired) = (truth.counts(), timeouts(&server.redis));
    let keys = told.keys().chain(fired.keys());
    let count = |of: &BTreeMap<Bytes, u64>, key| of.get(key).copied().unwrap_or(0);
    let wrong: BTreeMap<_, _> = keys
        .map(|key| (key, (count(&told, key), count(&fired, key))))
        .filter(|(_, (told, fired))| told != fired)
        .collect();
    println!("stepped by {steps_ms:?} ms, {on_unproven}: {} expirations, wrong: {wrong:?}", truth.total());
    let of_wrong = |entry: &Entry| wrong.keys().any(|key| **key == *entry.id.as_bytes());
    let fired: Vec<_> = entries(&server.redis).into_iter().filter(of_wrong).collect();
    assert!(wrong.is_empty(), "expirations and timeouts differ: {wrong:?}; {fired:#?}");
    assert!(truth.total() > 1_000, "{}", truth.total());
    for relay in &relays {
        relay.sigterm();
        assert!(relay.wait_exit(Duration::from_secs(10)).success(), "{}", relay.stderr());
    }
}

#[test]
fn load_a_clock_that_goes_forward_and_comes_back_loses_and_doubles_nothing() {
    every_expiration_is_one_timeout([STEP_MS, -STEP_MS], "fire", 11);
}

#[test]
fn load_a_clock_that_is_set_back_and_put_right_again_loses_and_doubles_nothing() {
    every_expiration_is_one_timeout([-STEP_MS, STEP_MS], "drop", 12);
}

#[test]
fn a_step_forward_ends_at_once_what_ends_within_it_and_nothing_else() {
    const KEYS: usize = 100;
    let mut server = Stepped::start();
    let _relays = server.relays("");
    server.set(names("within", KEYS), 4_000);
    server.set(names("behind", KEYS), 9_000);
    server.await_known(2 * KEYS);
    let begun = Instant::now();
    server.step(STEP_MS);
    let fired = server.fired(KEYS);
    let took = begun.elapsed();
    assert_eq!((of(&fired, "within").len(), fired.len()), (KEYS, KEYS));
    assert!(took < LATE, "{took:?}");
    server.set(names("after", KEYS), 200);
    let fired = server.fired(3 * KEYS);
    for prefix in ["behind", "after"] {
        let late = lateness(&of(&fired, prefix));
        assert!(late < LATE, "{prefix}: {late:?}");
    }
    assert!(timeouts(&server.redis).values().all(|&n| n == 1));
    println!("forward: what ended within the step had fired after {took:?}");
}

#[test]
fn after_a_step_back_keys_end_when_the_clock_says_so() {
    const KEYS: usize = 100;
    let mut server = Stepped::start();
    let _relays = server.relays("");
    server.set(names("before", KEYS), 1_500);
    server.await_known(KEYS);
    server.step(-STEP_MS);
    let written_ms = server.redis.now_ms();
    server.set(names("after", KEYS), 200);
    let fired = server.fired(KEYS);
    assert_eq!(of(&fired, "after").len(), KEYS, "those from before live 5 s longer");
    let fired = server.fired(2 * KEYS);
    for prefix in ["before", "after"] {
        let late = lateness(&of(&fired, prefix));
        assert!(late < LATE, "{prefix}: {late:?}");
    }
    assert!(of(&fired, "before").iter().all(|entry| entry.due_ms >= written_ms + 4_000));
    assert!(timeouts(&server.redis).values().all(|&n| n == 1));
}

/// A look counts until it is more than a second ahead of the clock. So when the clock has been set back by 5 s, what
/// was looked at in the last second before that is not looked at from 4 to 5 s after it. Then the index does not learn
/// that a key was shortened or deleted, and finds it gone at its old due, without proof.
#[test]
fn in_the_second_that_comes_twice_what_is_not_learnt_is_at_worst_unproven() {
    const KEYS: usize = 50;
    for on_unproven in ["drop", "fire"] {
        let mut server = Stepped::start();
        let _relays = server.relays(&format!("on_unproven = \"{on_unproven}\""));
        let shortened = server.set(names("shortened", KEYS), 3_000);
        let deleted = server.set(names("deleted", KEYS), 3_000);
        server.await_known(2 * KEYS);
        let looked_ms = server.redis.now_ms();
        server.step(-STEP_MS);
        eventually_blocking("the clock comes near to where it was", || {
            server.redis.now_ms() + 500 > looked_ms
        });
        for key in &shortened {
            server.redis.call(&["PEXPIRE", key, "20"]);
        }
        for key in &deleted {
            server.redis.call(&["DEL", key]);
        }
        server.await_known(0);
        await_quiet(&server.redis, Duration::from_secs(1));
        let fired = entries(&server.redis);
        let counts = |prefix| {
            let all = of(&fired, prefix);
            let unproven = all.iter().filter(|entry| entry.proof == Some(Proof::Unproven)).count();
            (all.len() - unproven, unproven)
        };
        let (shortened, deleted) = (counts("shortened"), counts("deleted"));
        println!(
            "{on_unproven}: proven and unproven of {KEYS} shortened: {shortened:?}, of {KEYS} deleted: {deleted:?}"
        );
        assert_eq!((shortened.0, deleted.0), (KEYS, 0));
        let most = if on_unproven == "drop" { 0 } else { KEYS };
        assert!(shortened.1 <= most && deleted.1 <= most);
    }
}
