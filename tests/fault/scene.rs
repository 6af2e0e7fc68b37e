//! What the tests of the built-in handlers share: a server, a relay and a producer.

use std::fs;

use overdue_tests::{FiredKey, Launch, Program, Redis, Wire, assert_balanced, eventually};

use crate::stage::{Producer, QUEUE, partition, stop, up};

pub(crate) struct Scene {
    pub(crate) redis: Redis,
    pub(crate) relay: Program,
    pub(crate) producer: Producer,
    pub(crate) folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let redis = Redis::start();
        let relay = up(Launch::relay(&redis.url()));
        let producer = Producer::new(&redis.url()).await;
        Self { redis, relay, producer, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes this file; answers its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let file = self.file(name);
        fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn fire(&self, keys: &[FiredKey]) {
        let mut wire = Wire::connect(&self.redis);
        for key in keys {
            key.fire(&mut wire, &partition(0));
        }
    }

    /// The dead letters: id, reason, detail.
    pub(crate) fn dead(&self) -> Vec<[String; 3]> {
        let letters = Wire::connect(&self.redis).xrange(partition(0).dead()).unwrap();
        let field = |letter: &overdue_protocol::RawEntry, name: &str| {
            letter.field(name).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
        };
        let row = |letter| ["id", "reason", "detail"].map(|name| field(letter, name));
        letters.iter().map(row).collect()
    }

    pub(crate) fn finish(&self, consumer: &Program) {
        stop(consumer);
        assert_balanced(&self.redis, QUEUE, 1);
        stop(&self.relay);
    }
}

/// Whether a process runs. A zombie is dead: nobody may be there to wait for it.
pub(crate) fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

/// Whether the process whose number a file holds runs.
pub(crate) fn runs(file: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|pid| alive(pid.trim()))
}

/// Waits until so many timeouts had this result, by the metrics of the program.
pub(crate) async fn handled(program: &Program, result: &str, at_least: f64) {
    eventually("they are handled", async || {
        let n = program.metrics().get("overdue_handled_total", &[("result", result)]).unwrap_or(0.0);
        if n >= at_least { Ok(()) } else { Err(n) }
    })
    .await;
}
