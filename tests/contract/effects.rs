//! Effects happen with the acknowledgement: all of them, once, in their order.

use bytes::Bytes;
use overdue_protocol::call::Applied;
use overdue_protocol::{Effect, Reply};
use overdue_tests::Stage;

use crate::wake_messages::Ear;

pub(crate) fn set(key: &Bytes, value: &str) -> Effect {
    Effect::Set { key: key.clone(), value: Bytes::copy_from_slice(value.as_bytes()) }
}

pub(crate) fn incr(key: &Bytes, by: i64) -> Effect {
    Effect::IncrBy { key: key.clone(), by }
}

pub(crate) fn hset(key: &Bytes, field: &'static str, value: &'static str) -> Effect {
    Effect::HSet { key: key.clone(), field: field.into(), value: value.into() }
}

pub(crate) fn hincr(key: &Bytes, field: &'static str, by: i64) -> Effect {
    Effect::HIncrBy { key: key.clone(), field: field.into(), by }
}

pub(crate) fn del(key: &Bytes) -> Effect {
    Effect::Del { key: key.clone() }
}

pub(crate) fn sadd(key: &Bytes, member: &'static str) -> Effect {
    Effect::SAdd { key: key.clone(), member: member.into() }
}

pub(crate) fn zadd(key: &Bytes, member: &'static str, score: f64) -> Effect {
    Effect::ZAdd { key: key.clone(), member: member.into(), score }
}

pub(crate) fn xadd(key: &Bytes, fields: usize) -> Effect {
    let field = |n: usize| (Bytes::from(n.to_string()), Bytes::from("v"));
    Effect::XAdd { key: key.clone(), fields: (0..fields).map(field).collect() }
}

pub(crate) fn ends(key: &Bytes, at_ms: u64) -> Effect {
    Effect::PExpireAt { key: key.clone(), at_ms }
}

/// A string; `None` when there is none.
pub(crate) fn get(stage: &mut Stage, key: &Bytes) -> Option<String> {
    let value = stage.wire.call(&[b"GET".as_slice(), key]).unwrap().into_bytes();
    value.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

fn list(stage: &mut Stage, args: &[&[u8]]) -> Vec<String> {
    let items = stage.wire.call(args).unwrap().into_array().unwrap();
    items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_of_the_fifteen_happens_once() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entry = stage.deliver("billing", "c", &["a"])[0];
    let key = |name: &str| stage.beside(name);
    let [s, n, h, old, set_, z, l, x] = ["s", "n", "h", "old", "set", "z", "l", "x"].map(key);
    for (command, name) in [("SADD", &set_), ("ZADD", &z)] {
        let args: Vec<&[u8]> = [command.as_bytes(), name]
            .into_iter()
            .chain(if command == "ZADD" { vec![b"1".as_slice(), b"gone"] } else { vec![b"gone".as_slice()] })
            .collect();
        stage.wire.call(&args).unwrap();
    }
    stage.wire.call(&[b"HSET".as_slice(), &h, b"gone", b"1"]).unwrap();
    stage.wire.call(&[b"SET".as_slice(), &old, b"1"]).unwrap();
    let mut ear = Ear::on(&stage, "told".into());
    let ends_at = stage.wire.now_ms() + 3_600_000;
    let gone = || Bytes::from("gone");
    let effects = [
        set(&s, "value"),
        ends(&s, ends_at),
        del(&old),
        incr(&n, -7),
        hset(&h, "f", "\u{0}\r\n{}"),
        Effect::HDel { key: h.clone(), field: gone() },
        hincr(&h, "n", 5),
        sadd(&set_, "m"),
        Effect::SRem { key: set_.clone(), member: gone() },
        zadd(&z, "m", 1.5),
        Effect::ZRem { key: z.clone(), member: gone() },
        Effect::LPush { key: l.clone(), value: "left".into() },
        Effect::RPush { key: l.clone(), value: "right".into() },
        xadd(&x, 2),
        Effect::Publish { channel: "told".into(), message: "done".into() },
    ];
    let by = stage.by("billing", "c");
    assert_eq!(stage.apply(by.clone(), entry, &effects), Applied::Ok);
    let check = |stage: &mut Stage| {
        assert_eq!(
            (get(stage, &s).unwrap(), get(stage, &n).unwrap(), get(stage, &old)),
            ("value".into(), "-7".into(), None)
        );
        let ttl = stage.wire.call(&[b"PTTL".as_slice(), &s]).unwrap().as_u64().unwrap();
        assert!((3_000_000..=3_600_000).contains(&ttl));
        let fields = stage.wire.hgetall(&h).unwrap();
        assert_eq!(
            fields.into_iter().collect::<Vec<_>>(),
            [("f".into(), "\u{0}\r\n{}".into()), ("n".into(), "5".into())]
        );
        assert_eq!(list(stage, &[b"SMEMBERS", &set_]), ["m"]);
        assert_eq!(list(stage, &[b"ZRANGE", &z, b"0", b"-1", b"WITHSCORES"]), ["m", "1.5"]);
        assert_eq!(list(stage, &[b"LRANGE", &l, b"0", b"-1"]), ["left", "right"]);
        assert_eq!(stage.wire.xrange(&x).unwrap()[0].fields.len(), 2);
        assert_eq!((stage.entries().len(), stage.dead().len(), stage.tally("done:billing")), (0, 0, 1));
    };
    check(&mut stage);
    assert_eq!(ear.heard(&mut stage), ["done"]);
    assert_eq!(stage.apply(by, entry, &effects), Applied::Lost);
    check(&mut stage);
    assert!(ear.heard(&mut stage).is_empty());
    stage.assert_balanced();
}

#[test]
fn what_is_published_is_heard_in_order() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entry = stage.deliver("billing", "c", &["a"])[0];
    let mut ear = Ear::open(&stage);
    let say =
        |message: &'static str| Effect::Publish { channel: stage.partition.wake(), message: message.into() };
    let effects = [say("one"), incr(&stage.beside("n"), 1), say("two")];
    let by = stage.by("billing", "c");
    assert_eq!(stage.apply(by, entry, &effects), Applied::Ok);
    assert_eq!(ear.heard(&mut stage), ["one", "two"]);
}

#[test]
fn each_effect_meets_what_those_before_it_left() {
    let now = Stage::new().wire.now_ms();
    type Make = fn(&Bytes, u64) -> Vec<Effect>;
    // What the key holds before, the effects, and what it is then.
    let cases: [(&[&str], Make, &str); 16] = [
        (&["SET", "x"], |k, _| vec![del(k), incr(k, 1)], "string 1"),
        (&["HSET", "n", "x"], |k, _| vec![del(k), hincr(k, "n", 1)], "hash"),
        (&[], |k, _| vec![set(k, "x"), del(k), incr(k, 1)], "string 1"),
        (&[], |k, _| vec![hset(k, "n", "x"), del(k), hincr(k, "n", 1)], "hash"),
        (&[], |k, _| vec![incr(k, 1), incr(k, 1)], "string 2"),
        (&["SET", "40"], |k, _| vec![incr(k, 1), incr(k, 1)], "string 42"),
        (&["SET", "x"], |k, _| vec![del(k), hset(k, "f", "v")], "hash"),
        (&["SADD", "m"], |k, _| vec![set(k, "7"), incr(k, 1)], "string 8"),
        (&["SET", "x"], |k, _| vec![set(k, "7"), del(k), incr(k, 1)], "string 1"),
        (&["SET", "x"], |k, past| vec![ends(k, past), sadd(k, "m")], "set"),
        (&["SET", "x"], |k, _| vec![ends(k, 0), zadd(k, "m", -1e300)], "zset"),
        (&["HSET", "n", "x"], |k, _| vec![hset(k, "n", "5"), hincr(k, "n", -6)], "hash"),
        (
            &["HSET", "n", "x"],
            |k, _| vec![Effect::HDel { key: k.clone(), field: "n".into() }, hincr(k, "n", 1)],
            "hash",
        ),
        (&[], |k, _| vec![Effect::HDel { key: k.clone(), field: "n".into() }, xadd(k, 1)], "stream"),
        (
            &["LPUSH", "x"],
            |k, _| vec![del(k), del(k), set(k, "9007199254740990"), incr(k, 1)],
            "string 9007199254740991",
        ),
        (
            &["SET", "-9007199254740991"],
            |k, _| vec![incr(k, 9_007_199_254_740_991), incr(k, -1)],
            "string -1",
        ),
    ];
    for (n, (before, effects, then)) in cases.into_iter().enumerate() {
        let mut stage = Stage::new();
        stage.join("billing");
        let entry = stage.deliver("billing", "c", &["a"])[0];
        let key = stage.beside("k");
        if let Some((command, rest)) = before.split_first() {
            let args: Vec<&[u8]> =
                [command.as_bytes(), &key].into_iter().chain(rest.iter().map(|arg| arg.as_bytes())).collect();
            stage.wire.call(&args).unwrap();
        }
        let by = stage.by("billing", "c");
        assert_eq!(stage.apply(by, entry, &effects(&key, now - 1000)), Applied::Ok, "case {n}");
        let kind = stage.wire.call(&[b"TYPE".as_slice(), &key]).unwrap();
        let value = if kind == Reply::from("string") {
            format!(" {}", get(&mut stage, &key).unwrap())
        } else {
            String::new()
        };
        assert_eq!(format!("{}{value}", kind.as_str().unwrap()), then, "case {n}");
        stage.assert_balanced();
    }
}
