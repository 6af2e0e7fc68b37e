//! Writers who do to keys whatever can be done to them, at the worst moments.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use overdue_tests::Redis;

use crate::stage::deaf_connection;

/// How many keys there are.
const KEYS: u64 = 600;
/// Operations in a millisecond, on average.
const PER_MS: f64 = 1.2;

/// One writer.
pub(crate) struct Churn {
    stream: TcpStream,
    seed: u64,
    /// Keys to be written again, by the millisecond: around their end.
    rewrites: BTreeMap<u64, Vec<u64>>,
    sent: u64,
    begun: Instant,
}

impl Churn {
    pub(crate) fn new(redis: &Redis, seed: u64) -> Self {
        let stream = deaf_connection(redis);
        Self { stream, seed, rewrites: BTreeMap::new(), sent: 0, begun: Instant::now() }
    }

    /// Works for one turn: what is due now.
    pub(crate) fn turn(&mut self) {
        let mut batch = Vec::new();
        let now = now_ms();
        let later = self.rewrites.split_off(&(now + 1));
        for key in std::mem::replace(&mut self.rewrites, later).into_values().flatten() {
            self.write(&mut batch, key);
        }
        let target = (self.begun.elapsed().as_secs_f64() * 1_000.0 * PER_MS) as u64;
        while self.sent < target {
            self.operate(&mut batch);
        }
        self.stream.write_all(&batch).unwrap();
        std::thread::sleep(Duration::from_micros(500));
    }

    /// Deletes what would never end.
    pub(crate) fn finish(mut self, redis: &Redis) {
        let delete = "for key = 0, ARGV[1] - 1 do
            for _, name in ipairs({'k:' .. key, 'k:' .. key .. ':r', 'k:' .. key .. ':c'}) do
                if redis.call('PTTL', name) == -1 then redis.call('DEL', name) end
            end
        end";
        self.stream.flush().unwrap();
        redis.call(&["EVAL", delete, "0", &KEYS.to_string()]);
    }

    fn operate(&mut self, batch: &mut Vec<u8>) {
        let key = self.below(KEYS);
        let name = format!("k:{key}");
        let (longer, shorter) = (200 + self.below(1_300), 1 + self.below(100));
        match self.below(100) {
            0..58 => self.write(batch, key),
            58..66 => self.say(batch, &["PEXPIRE", &name, &longer.to_string()]),
            66..72 => self.say(batch, &["PEXPIRE", &name, &shorter.to_string()]),
            72..75 => self.say(batch, &["PERSIST", &name]),
            75..78 => self.say(batch, &["SET", &name, "for ever"]),
            78..85 => self.say(batch, &["DEL", &name]),
            85..88 => self.say(batch, &["EXPIRE", &name, "0"]),
            88..91 => self.say(batch, &["GETEX", &name, "PX", &longer.to_string()]),
            91..94 => self.say(batch, &["RENAME", &name, &format!("{name}:r")]),
            94..97 => self.say(batch, &["COPY", &name, &format!("{name}:c"), "REPLACE"]),
            _ => self.say(batch, &["SET", &name, "again", "KEEPTTL"]),
        }
    }

    /// Writes a key with a TTL; half of them are written again within 3 ms of their end.
    fn write(&mut self, batch: &mut Vec<u8>, key: u64) {
        let ttl = 100 + self.below(1_400);
        self.say(batch, &["SET", &format!("k:{key}"), "value", "PX", &ttl.to_string()]);
        if self.below(2) == 0 {
            let at = now_ms() + ttl - 3 + self.below(7);
            self.rewrites.entry(at).or_default().push(key);
        }
    }

    fn say(&mut self, batch: &mut Vec<u8>, words: &[&str]) {
        self.sent += 1;
        write!(batch, "*{}\r\n", words.len()).unwrap();
        for word in words {
            write!(batch, "${}\r\n{word}\r\n", word.len()).unwrap();
        }
    }

    /// Less than `n`, by a generator with a seed: a run can be had again.
    fn below(&mut self, n: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % n
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}
