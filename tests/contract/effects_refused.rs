//! An effect that can't be applied: nothing is written, and the answer says which and why.

use bytes::Bytes;
use overdue_protocol::call::{Applied, Apply, ApplyItem, From, Join, Standing};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Effect, Keyspace, QueueName};
use overdue_sandbox::Options;
use overdue_tests::stage::group;
use overdue_tests::{Cluster, Stage, Wire};

use crate::effects::{del, ends, get, hincr, hset, incr, sadd, set, xadd, zadd};

fn held() -> (Stage, EntryId) {
    let mut stage = Stage::new();
    stage.join("billing");
    let entry = stage.deliver("billing", "c", &["a"])[0];
    (stage, entry)
}

/// Applied as the holder; nothing but the answer may come of it.
#[track_caller]
fn refused(stage: &mut Stage, entry: EntryId, effects: &[Effect]) -> String {
    let (by, before) = (stage.by("billing", "c"), stage.snapshot());
    let applied = stage.apply(by, entry, effects);
    assert_eq!(stage.snapshot(), before, "{applied:?} wrote");
    match applied {
        Applied::Refused(why) => why,
        other => panic!("{other:?} for {effects:?}"),
    }
}

#[test]
fn every_kind_at_a_key_of_every_other_type() {
    let (mut stage, entry) = held();
    let held: [(&str, &str, &[&str]); 6] = [
        ("string", "SET", &["5"]),
        ("hash", "HSET", &["f", "5"]),
        ("set", "SADD", &["m"]),
        ("zset", "ZADD", &["1", "m"]),
        ("list", "RPUSH", &["v"]),
        ("stream", "XADD", &["*", "f", "v"]),
    ];
    let m = || Bytes::from("m");
    type Make = fn(&Bytes, Bytes) -> Effect;
    let kinds: [(&str, Make); 11] = [
        ("string", |k, _| incr(k, 1)),
        ("hash", |k, _| hset(k, "f", "1")),
        ("hash", |k, field| Effect::HDel { key: k.clone(), field }),
        ("hash", |k, _| hincr(k, "f", 1)),
        ("set", |k, _| sadd(k, "m")),
        ("set", |k, member| Effect::SRem { key: k.clone(), member }),
        ("zset", |k, _| zadd(k, "m", 2.0)),
        ("zset", |k, member| Effect::ZRem { key: k.clone(), member }),
        ("list", |k, value| Effect::LPush { key: k.clone(), value }),
        ("list", |k, value| Effect::RPush { key: k.clone(), value }),
        ("stream", |k, _| xadd(k, 1)),
    ];
    let n = stage.beside("n");
    for (type_, command, args) in held {
        let key = stage.beside(type_);
        let all: Vec<&[u8]> =
            [command.as_bytes(), &key].into_iter().chain(args.iter().map(|arg| arg.as_bytes())).collect();
        stage.wire.call(&all).unwrap();
        for (wanted, effect) in kinds.iter().filter(|(wanted, _)| *wanted != type_) {
            let effect = effect(&key, m());
            let why = refused(&mut stage, entry, &[incr(&n, 1), effect.clone()]);
            let name = effect.command();
            let key = String::from_utf8_lossy(&key);
            assert_eq!(why, format!("effect 2, {name} {key}: the key holds a {type_}, not a {wanted}"));
        }
    }
    // The same ones fit where they belong, all in one.
    let effects: Vec<_> = kinds.iter().map(|(type_, effect)| effect(&stage.beside(type_), m())).collect();
    let by = stage.by("billing", "c");
    assert_eq!(stage.apply(by, entry, &effects), Applied::Ok);
    stage.assert_balanced();
}

#[test]
fn a_later_effect_that_does_not_fit_what_an_earlier_one_left() {
    let (mut stage, entry) = held();
    let k = stage.beside("k");
    let later = stage.wire.now_ms() + 3_600_000;
    for effects in [
        vec![set(&k, "x"), hset(&k, "f", "v")],
        vec![set(&k, "x"), incr(&k, 1)],
        vec![hset(&k, "n", "x"), hincr(&k, "n", 1)],
        vec![sadd(&k, "m"), zadd(&k, "m", 1.0)],
        vec![del(&k), xadd(&k, 1), incr(&k, 1)],
        vec![set(&k, "x"), ends(&k, later), sadd(&k, "m")],
        vec![incr(&k, 9_007_199_254_740_991), incr(&k, 1)],
        vec![hincr(&k, "n", -9_007_199_254_740_991), hincr(&k, "n", -1)],
    ] {
        let why = refused(&mut stage, entry, &effects);
        assert!(why.starts_with(&format!("effect {}, ", effects.len())), "{why}");
    }
    assert_eq!(get(&mut stage, &k), None);
}

#[test]
fn numbers_that_are_none_or_leave_the_range() {
    let (mut stage, entry) = held();
    let (k, h) = (stage.beside("k"), stage.beside("h"));
    let most = "9007199254740991";
    for (held, by) in [
        ("x", 1),
        ("", 1),
        ("1.0", 1),
        ("1e3", 1),
        (" 1", 1),
        ("01", 1),
        ("-0", 1),
        ("+1", 1),
        ("0x10", 1),
        ("9007199254740992", -1),
        ("99999999999999999999", 1),
        (most, 1),
        ("-9007199254740991", -1),
        ("1", i64::MAX),
        ("1", 9_007_199_254_740_991),
        ("0", i64::MIN),
    ] {
        stage.wire.call(&[b"SET".as_slice(), &k, held.as_bytes()]).unwrap();
        stage.wire.call(&[b"HSET".as_slice(), &h, b"n", held.as_bytes()]).unwrap();
        for effect in [incr(&k, by), hincr(&h, "n", by)] {
            let why = refused(&mut stage, entry, &[effect]);
            assert!(why.contains("+-9007199254740991"), "{held} + {by}: {why}");
        }
    }
    // And a string that is far too long.
    stage.wire.call(&[b"SETRANGE".as_slice(), &k, b"1000000", b"x"]).unwrap();
    refused(&mut stage, entry, &[incr(&k, 1)]);
    let (z, x) = (stage.beside("z"), stage.beside("x"));
    for score in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(refused(&mut stage, entry, &[zadd(&z, "m", score)]).contains("finite"));
    }
    assert!(refused(&mut stage, entry, &[ends(&k, u64::MAX)]).contains("range"));
    assert!(refused(&mut stage, entry, &[ends(&k, 9_007_199_254_740_992)]).contains("range"));
    for fields in [0, 501] {
        assert!(refused(&mut stage, entry, &[xadd(&x, fields)]).contains("500"));
    }
    let by = stage.by("billing", "c");
    let effects = [xadd(&x, 500), zadd(&z, "m", f64::MAX), zadd(&z, "least", 5e-324), ends(&z, 1 << 52)];
    assert_eq!(stage.apply(by, entry, &effects), Applied::Ok);
    stage.assert_balanced();
}

#[test]
fn of_many_timeouts_each_stands_for_itself_and_the_repaired_one_is_done_later() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b", "c"]);
    let (by, n, b) = (stage.by("billing", "c"), stage.beside("n"), stage.beside("b"));
    let c = stage.beside("c");
    let (good, last) = ([incr(&n, 1), set(&b, "a string")], [incr(&n, 1), sadd(&c, "m")]);
    // What it would have left at `c` was never there.
    let bad = [set(&c, "x"), hset(&b, "f", "v")];
    let call = stage.to_apply(by.clone(), &[(entries[0], &good), (entries[1], &bad), (entries[2], &last)]);
    let applied = stage.wire.run(&call).unwrap();
    assert!(matches!(&applied[..], [Applied::Ok, Applied::Refused(_), Applied::Ok]), "{applied:?}");
    assert_eq!((get(&mut stage, &n).unwrap(), stage.entries().len()), ("2".into(), 1));
    stage.assert_balanced();
    stage.wire.call(&[b"DEL".as_slice(), &b]).unwrap();
    assert_eq!(stage.apply(by, entries[1], &bad), Applied::Ok);
    assert_eq!(get(&mut stage, &c).unwrap(), "x");
    stage.assert_balanced();
}

#[test]
fn what_the_user_may_not_do_is_known_beforehand_where_the_server_says_so() {
    let users = vec!["no-hset on nopass ~* &* +@all -hset".to_owned()];
    let mut stage = Stage::with(Options { users, ..Options::default() });
    stage.join("billing");
    let entry = stage.deliver("billing", "c", &["a"])[0];
    let (n, h) = (stage.beside("n"), stage.beside("h"));
    let effects = [incr(&n, 1), hset(&h, "f", "v"), incr(&n, 1)];
    let call = stage.to_apply(stage.by("billing", "c"), &[(entry, &effects)]);
    let before = stage.snapshot();
    let applied = stage.wire_of("no-hset").run(&call).unwrap().remove(0);
    if stage.redis.info("server")["redis_version"].starts_with("6.") {
        let Applied::Incomplete(why) = applied else { panic!("{applied:?}") };
        assert!(why.starts_with("effect 2, HSET {orders:0}h: "), "{why}");
        assert_eq!((get(&mut stage, &n).unwrap(), stage.dead().len()), ("1".into(), 1));
    } else {
        assert!(matches!(&applied, Applied::Refused(why) if why.contains("may not")), "{applied:?}");
        assert_eq!(stage.snapshot(), before);
    }
    stage.assert_balanced();
}

#[test]
fn on_a_cluster_neighbours_are_in_the_slot_and_a_key_elsewhere_refuses_the_call() {
    let cluster = Cluster::start();
    let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 3);
    let (stream, n) = (partition.stream(), partition.neighbour(b"n\xff{x}"));
    let mut wire = Wire::connect(cluster.node_of(&stream));
    let by = Standing { partition: partition.clone(), group: group("billing"), consumer: "c".into() };
    let join = Join { partition: partition.clone(), group: group("billing"), from: From::Oldest };
    wire.run(&join).unwrap();
    wire.call(&[b"XADD".as_slice(), &stream, b"7-7", b"id", b"a"]).unwrap();
    let read = [b"XREADGROUP".as_slice(), b"GROUP", b"billing", b"c", b"STREAMS", &stream, b">"];
    wire.call(&read).unwrap();
    let with = |effects: &[Effect]| {
        let item = ApplyItem { entry: EntryId { ms: 7, seq: 7 }, effects: effects.to_vec().into() };
        Apply { by: by.clone(), items: vec![item], history: 9 }
    };
    let elsewhere = Bytes::from("seats");
    assert!(partition.is_neighbour(&n) && !partition.is_neighbour(&elsewhere));
    let refused = wire.eval(&with(&[incr(&n, 1), incr(&elsewhere, 1)])).unwrap_err();
    assert!(refused.contains("CROSSSLOT"), "{refused}");
    assert_eq!(wire.run(&with(&[incr(&n, 1), incr(&n, 1)])).unwrap(), [Applied::Ok]);
    assert_eq!(wire.call(&[b"GET".as_slice(), &n]).unwrap().as_u64(), Some(2));
    assert_eq!(wire.xrange(partition.history()).unwrap().len(), 1);
}
