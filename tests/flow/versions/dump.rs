//! All keys of a server as commands, a line each, and back.

use overdue_sandbox::Value;
use overdue_tests::Redis;

/// Commands that make the same keys, for `load` and for `redis-cli`.
pub(super) fn write(redis: &Redis) -> String {
    let mut keys: Vec<_> = redis.call(&["KEYS", "*"]).items().iter().map(bytes).collect();
    keys.sort();
    let mut lines = vec![];
    for key in &keys {
        let call = |command: &str, more: &[&[u8]]| {
            let args: Vec<_> = [command.as_bytes(), key].into_iter().chain(more.iter().copied()).collect();
            redis.call(&args)
        };
        let flat = |value: Value| value.items().iter().map(bytes).collect::<Vec<_>>();
        match call("TYPE", &[]).text().as_str() {
            "string" => lines.push(line(&[b"SET", key, &bytes(&call("GET", &[]))])),
            "hash" => pairs(&mut lines, b"HSET", key, &flat(call("HGETALL", &[])), false),
            "zset" => {
                pairs(&mut lines, b"ZADD", key, &flat(call("ZRANGE", &[b"0", b"-1", b"WITHSCORES"])), true);
            }
            "stream" => stream(&mut lines, redis, key),
            other => panic!("{} is a {other}", key.escape_ascii()),
        }
        let end = call("PEXPIRETIME", &[]).int().unwrap();
        if end > 0 {
            lines.push(line(&[b"PEXPIREAT", key, end.to_string().as_bytes()]));
        }
    }
    lines.concat()
}

/// A line for each pair; `score` says that the second of them comes first.
fn pairs(lines: &mut Vec<String>, command: &[u8], key: &[u8], flat: &[Vec<u8>], score: bool) {
    let mut all: Vec<_> =
        flat.chunks(2).map(|pair| if score { [&pair[1], &pair[0]] } else { [&pair[0], &pair[1]] }).collect();
    all.sort();
    lines.extend(all.into_iter().map(|[a, b]| line(&[command, key, a, b])));
}

/// Entries, groups, and what they have pending.
fn stream(lines: &mut Vec<String>, redis: &Redis, key: &[u8]) {
    for entry in redis.call(&[b"XRANGE".as_slice(), key, b"-", b"+"]).items() {
        let fields: Vec<_> = entry.items()[1].items().iter().map(bytes).collect();
        let id = bytes(&entry.items()[0]);
        let words: Vec<_> =
            [b"XADD".as_slice(), key, &id].into_iter().chain(fields.iter().map(Vec::as_slice)).collect();
        lines.push(line(&words));
    }
    for group in redis.call(&[b"XINFO".as_slice(), b"GROUPS", key]).items() {
        let field = |name: &str| {
            group.items().chunks(2).find(|pair| pair[0].text() == name).map(|pair| bytes(&pair[1])).unwrap()
        };
        let (name, last) = (field("name"), field("last-delivered-id"));
        lines.push(line(&[b"XGROUP", b"CREATE", key, &name, &last, b"MKSTREAM"]));
        let pending = redis.call(&[b"XPENDING".as_slice(), key, &name, b"-", b"+", b"1000"]);
        for held in pending.items() {
            let [id, consumer, _, deliveries] = held.items() else { panic!("{held:?}") };
            let deliveries = deliveries.int().unwrap().to_string();
            let more: [&[u8]; 6] =
                [b"IDLE", b"60000", b"RETRYCOUNT", deliveries.as_bytes(), b"FORCE", b"JUSTID"];
            let (id, consumer) = (bytes(id), bytes(consumer));
            let words: Vec<_> =
                [b"XCLAIM".as_slice(), key, &name, &consumer, b"0", &id].into_iter().chain(more).collect();
            lines.push(line(&words));
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        other => other.text().into_bytes(),
    }
}

fn line(words: &[&[u8]]) -> String {
    let word = |word: &&[u8]| {
        let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:/{}*".contains(b);
        let text = word.escape_ascii().to_string();
        if !word.is_empty() && word.iter().all(is_plain) { text } else { format!("\"{text}\"") }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ") + "\n"
}

/// Runs what [`write`] has written.
pub(super) fn load(redis: &Redis, text: &str) {
    for line in text.lines() {
        redis.call(&words(line));
    }
}

fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut quoted) = (vec![], None::<Vec<u8>>, false);
    let mut rest = line.bytes();
    while let Some(byte) = rest.next() {
        let mut push = |byte| word.get_or_insert_default().push(byte);
        match byte {
            b'"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            b' ' if !quoted => words.extend(word.take()),
            b'\\' => match rest.next().unwrap() {
                b'n' => push(b'\n'),
                b'r' => push(b'\r'),
                b't' => push(b'\t'),
                b'x' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                }
                plain => push(plain),
            },
            plain => push(plain),
        }
    }
    words.extend(word);
    words
}

#[test]
fn any_bytes_come_back() {
    let all: Vec<u8> = (0..=255).collect();
    let given = [b"SET".as_slice(), b"a \"b\"", &all, b""];
    assert_eq!(words(line(&given).trim_end_matches('\n')), given);
}
