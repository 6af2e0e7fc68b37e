//! The truth: a subscriber of its own that hears every `expired`, and does nothing else.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use overdue_tests::Redis;

use crate::stage::redis;

/// Counts expirations of keys that begin with `k:`.
pub(crate) struct Truth {
    counts: Arc<Mutex<BTreeMap<Bytes, u64>>>,
    total: Arc<AtomicU64>,
}

/// A server that says everything before any relay asks for it, and who hears it.
pub(crate) fn told() -> (Redis, Truth) {
    let redis = redis();
    let truth = Truth::listen(&redis);
    (redis, truth)
}

impl Truth {
    /// Listens from now on, and lets the server tell of what no relay asks for too. Its connection lasts until the server
    /// ends.
    pub(crate) fn listen(redis: &Redis) -> Self {
        redis.call(&["CONFIG", "SET", "notify-keyspace-events", "KEgxe"]);
        let mut stream = TcpStream::connect(redis.addr()).unwrap();
        stream.write_all(b"CLIENT SETNAME truth\r\nSUBSCRIBE __keyevent@0__:expired\r\n").unwrap();
        let mut input = BufReader::with_capacity(1 << 20, stream);
        let mut line = String::new();
        input.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "+OK");
        assert_eq!(frame(&mut input).unwrap()[0], "subscribe");
        let truth = Self { counts: Arc::default(), total: Arc::default() };
        let (counts, total) = (Arc::clone(&truth.counts), Arc::clone(&truth.total));
        std::thread::spawn(move || {
            while let Some(frame) = frame(&mut input) {
                if frame[0] == "message" && frame[2].starts_with(b"k:") {
                    *counts.lock().unwrap().entry(frame[2].clone()).or_default() += 1;
                    total.fetch_add(1, Ordering::Release);
                }
            }
        });
        truth
    }

    /// How many so far.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Acquire)
    }

    /// How many of each key.
    pub(crate) fn counts(&self) -> BTreeMap<Bytes, u64> {
        self.counts.lock().unwrap().clone()
    }
}

/// Three parts: strings, or the number of subscriptions as text. `None` at the end.
fn frame(input: &mut impl BufRead) -> Option<[Bytes; 3]> {
    let mut line = String::new();
    if input.read_line(&mut line).ok()? == 0 {
        return None;
    }
    assert_eq!(line.trim(), "*3");
    let mut parts: [Bytes; 3] = Default::default();
    for part in &mut parts {
        line.clear();
        input.read_line(&mut line).ok()?;
        let (kind, rest) = line.trim_end().split_at(1);
        *part = if kind == "$" {
            let mut text = vec![0; rest.parse::<usize>().unwrap() + 2];
            input.read_exact(&mut text).ok()?;
            text.truncate(text.len() - 2);
            text.into()
        } else {
            Bytes::copy_from_slice(rest.as_bytes())
        };
    }
    Some(parts)
}
