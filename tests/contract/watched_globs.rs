//! Patterns match exactly what the server says they match.

use std::collections::BTreeSet;

use bytes::Bytes;
use overdue_protocol::watch::Glob;
use overdue_tests::{Redis, Wire};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Bytes that mean something in a pattern, and some on either side of the sign of C's char.
const BYTES: &[u8] = b"aabbc***??[[]]^--\\\\\0\n{},\x7f\x80\x81\xfe\xff";

fn text(longest: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(BYTES), 1..=longest).prop_map(Bytes::from)
}

/// For each byte of a name, the pattern that ends before it with a star.
fn near(name: &Bytes) -> impl Iterator<Item = Bytes> {
    (0..name.len()).map(|at| Bytes::from([&name[..at], b"*"].concat()))
}

fn keys(wire: &mut Wire, pattern: &Bytes) -> BTreeSet<Bytes> {
    let names = wire.call(&[b"KEYS".as_slice(), pattern]).unwrap().into_array().unwrap();
    names.into_iter().map(|name| name.into_bytes().unwrap()).collect()
}

#[test]
fn thousands_of_names_and_patterns_of_chance_agree_with_keys() {
    let redis = Redis::start();
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let cases = (prop::collection::btree_set(text(6), 60), prop::collection::vec(text(9), 100));
    let outcome = runner.run(&cases, |(names, patterns)| {
        let mut wire = Wire::connect(&redis);
        wire.call(&["FLUSHALL"]).unwrap();
        for name in &names {
            wire.call(&[b"SET".as_slice(), name, b""]).unwrap();
        }
        for pattern in patterns.into_iter().chain(names.iter().flat_map(near)) {
            let glob = Glob::new(pattern.clone());
            let ours: BTreeSet<_> = names.iter().filter(|name| glob.is_match(name)).cloned().collect();
            prop_assert_eq!(&ours, &keys(&mut wire, &pattern), "{:?}", pattern);
            let captured = ours.iter().filter(|name| glob.capture(name).is_some()).count();
            prop_assert!(captured == 0 || captured == ours.len(), "{:?}", pattern);
        }
        for name in &names {
            let only = keys(&mut wire, Glob::literal(name).as_bytes());
            prop_assert_eq!(only, BTreeSet::from([name.clone()]));
        }
        Ok(())
    });
    outcome.unwrap();
}
