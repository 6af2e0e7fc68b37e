//! From what a subscribed server sends to what the holder is told: each thing once.

use bytes::Bytes;
use redis_protocol::resp2::types::RangeFrame;

use super::line::{refusal, text};
use crate::fault::Fault;
use crate::{ErrorKind, Node, Signal};

/// The names of events that are told again and again: no memory is taken for these.
const NAMES: [&str; 14] = [
    "expired",
    "overdue-mark",
    "set",
    "expire",
    "del",
    "persist",
    "evicted",
    "restore",
    "rename_from",
    "rename_to",
    "copy_to",
    "move_from",
    "move_to",
    "hset",
];

/// Hears one connection of one node.
pub(super) struct Ear {
    node: Node,
    /// With one pattern nothing is sent twice.
    several: bool,
    run: Run,
}

impl Ear {
    pub(super) fn new(node: Node, patterns: usize) -> Self {
        Self { node, several: patterns > 1, run: Run::default() }
    }

    /// What the frame tells; nothing when it is an answer to a PING, or told already.
    pub(super) fn hear(&mut self, frame: &RangeFrame, bytes: &[u8]) -> Result<Option<Signal>, Fault> {
        let RangeFrame::Array(parts) = frame else {
            return match refusal(frame, bytes) {
                Some(fault) => Err(fault),
                // The answer to a PING while nothing is subscribed.
                None => Ok(None),
            };
        };
        let part = |i: usize| parts.get(i).and_then(|part| text(part, bytes)).unwrap_or_default();
        match (part(0), parts.len()) {
            (b"pmessage", 4) => {
                let (pattern, channel, payload) = (part(1), part(2), part(3));
                let told = self.several && !self.run.begins(pattern, channel, payload);
                Ok(if told { None } else { self.signal(channel, payload) })
            }
            (b"pong", _) => Ok(None),
            _ => Err(Fault::new(ErrorKind::Malformed, "it sends what nobody subscribed to")),
        }
    }

    fn signal(&self, channel: &[u8], payload: &[u8]) -> Option<Signal> {
        let copy = Bytes::copy_from_slice;
        let Some((kind, db, rest)) = split(channel) else {
            return Some(Signal::Message { channel: copy(channel), payload: copy(payload) });
        };
        let (name, key) = if kind == Kind::Event { (rest, payload) } else { (payload, rest) };
        let known = NAMES.iter().find(|known| known.as_bytes() == name);
        let name = known.map_or_else(|| copy(name), |known| Bytes::from_static(known.as_bytes()));
        // Copied: a part of the buffer would keep all of it.
        Some(Signal::Event { node: self.node.clone(), db: db?, name, key: copy(key) })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Event,
    Space,
}

/// `__keyevent@<db>__:<name>` or `__keyspace@<db>__:<key>`; no database for a number that is beyond ours.
fn split(channel: &[u8]) -> Option<(Kind, Option<u8>, &[u8])> {
    let (kind, rest) = match channel.strip_prefix(b"__keyevent@") {
        Some(rest) => (Kind::Event, rest),
        None => (Kind::Space, channel.strip_prefix(b"__keyspace@")?),
    };
    let (digits, rest) = rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let rest = rest.strip_prefix(b"__:").filter(|_| !digits.is_empty())?;
    Some((kind, std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()), rest))
}

/// What was published last, and by which patterns it has come.
///
/// A server sends one publication to one client once for each pattern that matches, and nothing else in between. So a
/// frame like the one before by another pattern is the same publication; by a pattern that it came by already, it is
/// the next. That asks nothing of how the server matches.
#[derive(Default)]
struct Run {
    channel: Vec<u8>,
    payload: Vec<u8>,
    patterns: Vec<Vec<u8>>,
}

impl Run {
    /// Whether this is another publication than the one before.
    fn begins(&mut self, pattern: &[u8], channel: &[u8], payload: &[u8]) -> bool {
        let same = self.channel == channel && self.payload == payload;
        if same && !self.patterns.iter().any(|known| known == pattern) {
            self.patterns.push(pattern.to_vec());
            return self.patterns.len() == 1;
        }
        self.patterns.truncate(1);
        match self.patterns.first_mut() {
            Some(first) => replace(first, pattern),
            None => self.patterns.push(pattern.to_vec()),
        }
        replace(&mut self.channel, channel);
        replace(&mut self.payload, payload);
        true
    }
}

/// Keeps the memory, but not that of something very long.
fn replace(held: &mut Vec<u8>, by: &[u8]) {
    held.clear();
    held.shrink_to(by.len().max(1024));
    held.extend_from_slice(by);
}

#[cfg(test)]
mod tests {
    use redis_protocol::resp2::decode::decode_range;

    use super::*;

    fn frame(words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend([*word, b"\r\n"].concat());
        }
        bytes
    }

    fn hear(ear: &mut Ear, bytes: &[u8]) -> Result<Option<Signal>, Fault> {
        let (frame, _) = decode_range(bytes).unwrap().unwrap();
        ear.hear(&frame, bytes)
    }

    fn heard(ear: &mut Ear, words: &[&[u8]]) -> Option<Signal> {
        hear(ear, &frame(words)).unwrap()
    }

    fn event(db: u8, name: &'static str, key: &'static [u8]) -> Option<Signal> {
        let key = Bytes::from_static(key);
        Some(Signal::Event { node: Node::server(), db, name: name.into(), key })
    }

    #[test]
    fn both_kinds_of_channels_are_read_and_keys_are_kept_byte_for_byte() {
        let mut ear = Ear::new(Node::server(), 1);
        let mut of = |channel: &[u8], payload: &[u8]| heard(&mut ear, &[b"pmessage", b"p", channel, payload]);
        assert_eq!(of(b"__keyevent@0__:expired", b"k"), event(0, "expired", b"k"));
        assert_eq!(of(b"__keyevent@255__:odd", b""), event(255, "odd", b""));
        assert_eq!(of(b"__keyspace@3__:a__:b\xff\r\n", b"del"), event(3, "del", b"a__:b\xff\r\n"));
        assert_eq!(of(b"__keyspace@0__:", b"set"), event(0, "set", b""));
        assert_eq!(of(b"__keyspace@256__:k", b"set"), None);
        assert_eq!(of(b"__keyevent@99999999999__:set", b"k"), None);
        for channel in ["__keyevent@__:x", "__keyevent@1_:x", "__keyevent@-1__:x", "__keyspace@", "abc", ""] {
            let message = Signal::Message { channel: channel.into(), payload: "p".into() };
            assert_eq!(of(channel.as_bytes(), b"p"), Some(message), "{channel}");
        }
    }

    #[test]
    fn a_publication_that_comes_by_several_patterns_is_told_once() {
        let mut ear = Ear::new(Node::server(), 3);
        let mut told = |pattern: &[u8], payload: &[u8]| {
            heard(&mut ear, &[b"pmessage", pattern, b"abc", payload]).is_some()
        };
        // The same thing three times, and the server's order may change meanwhile.
        let runs = [(b"1", true), (b"2", false), (b"3", false), (b"3", true), (b"1", false), (b"2", false)];
        for (pattern, first) in runs.into_iter().chain([(b"2", true), (b"1", false), (b"3", false)]) {
            assert_eq!(told(pattern, b"same"), first, "{pattern:?}");
        }
        assert!(told(b"3", b"other") && told(b"3", b"") && !told(b"1", b"") && told(b"1", b"same"));
    }

    #[test]
    fn what_was_not_asked_for_is_an_error_and_an_answer_to_a_ping_is_not() {
        let mut ear = Ear::new(Node::server(), 1);
        assert_eq!(heard(&mut ear, &[b"pong", b""]), None);
        assert_eq!(hear(&mut ear, b"+PONG\r\n"), Ok(None));
        assert_eq!(
            hear(&mut ear, b"-NOAUTH Authentication required.\r\n").unwrap_err().kind,
            ErrorKind::Refused
        );
        for bytes in [frame(&[b"punsubscribe", b"p", b"0"]), frame(&[b"pmessage", b"p"]), frame(&[])] {
            assert_eq!(hear(&mut ear, &bytes).unwrap_err().kind, ErrorKind::Malformed);
        }
    }
}
