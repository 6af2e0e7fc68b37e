//! What a watcher subscribes to.

use std::collections::BTreeSet;

use bytes::{BufMut, Bytes, BytesMut};
use overdue_protocol::Keyspace;
use overdue_protocol::watch::{Glob, MARK, Rules};

use super::event::Event;
use super::settings::Notifications;

/// What a watcher subscribes to: the patterns of the rules, the markers of their databases, and the canaries on every
/// node. It is the same for every process with these rules: Redis compares patterns with the rights of a user letter by
/// letter.
#[must_use]
pub fn of(rules: &Rules, mode: Notifications, keyspace: &Keyspace) -> Vec<Bytes> {
    let mut patterns = BTreeSet::new();
    for db in rules.dbs() {
        let by_name = |name: &str| Bytes::from(format!("__keyevent@{db}__:{name}"));
        patterns.insert(by_name(MARK));
        if mode == Notifications::Keyevent {
            patterns.extend(Event::NAMES.map(by_name));
        }
    }
    if mode == Notifications::Keyspace {
        for rule in rules.all() {
            patterns.insert(space(rule.db, rule.pattern.as_bytes()));
        }
        patterns.extend(rules.dbs().first().map(|&db| ends_of_canaries(db, mode, keyspace)));
    }
    patterns.into_iter().collect()
}

/// Where a server tells of the ends of all canaries in a database.
#[must_use]
pub fn ends_of_canaries(db: u8, mode: Notifications, keyspace: &Keyspace) -> Bytes {
    match mode {
        Notifications::Keyspace => space(db, &canaries(keyspace)),
        Notifications::Keyevent => Bytes::from(format!("__keyevent@{db}__:expired")),
    }
}

fn space(db: u8, keys: &[u8]) -> Bytes {
    let mut pattern = BytesMut::from(format!("__keyspace@{db}__:").as_bytes());
    pattern.put_slice(keys);
    pattern.freeze()
}

/// Nodes come and go, and with them the tags: the pattern leaves the tag open, and the process.
fn canaries(keyspace: &Keyspace) -> Bytes {
    let (head, tail) = around_tag(keyspace, "");
    let mut pattern = BytesMut::new();
    for part in [head, tail] {
        pattern.put_slice(Glob::literal(&part).as_bytes());
        pattern.put_u8(b'*');
    }
    pattern.freeze()
}

/// What stands before and behind the tag in the canaries' names: `overdue:{` and `}:canary:<process>`.
pub(super) fn around_tag(keyspace: &Keyspace, process: &str) -> (Bytes, Bytes) {
    let mut head = keyspace.canary("", process);
    // The first brace: the namespace has none.
    let brace = head.iter().position(|&byte| byte == b'{').map_or(0, |at| at + 1);
    let tail = head.split_off(brace);
    (head, tail)
}

#[cfg(test)]
mod tests {
    use overdue_protocol::QueueName;
    use overdue_protocol::watch::Rule;

    use super::*;

    fn rules() -> Rules {
        let rule = |pattern: &'static [u8], db| Rule { db, ..named(pattern) };
        let all = vec![rule(b"s:*", 0), rule(b"\xff?", 3), rule(b"s:*", 0)];
        Rules::new(&Keyspace::default(), all)
    }

    fn named(pattern: &'static [u8]) -> Rule {
        let queue = QueueName::new("q").unwrap();
        Rule::new(queue.clone(), Glob::new(pattern), queue)
    }

    #[test]
    fn by_keyspace_the_server_sorts_out_what_matches() {
        let patterns = of(&rules(), Notifications::Keyspace, &Keyspace::default());
        let expected: [&[u8]; 5] = [
            b"__keyevent@0__:overdue-mark",
            b"__keyevent@3__:overdue-mark",
            b"__keyspace@0__:overdue:{*}:canary:*",
            b"__keyspace@0__:s:*",
            b"__keyspace@3__:\xff?",
        ];
        let canary = Glob::new(patterns[2].clone());
        assert_eq!(patterns.iter().map(Bytes::as_ref).collect::<BTreeSet<_>>(), BTreeSet::from(expected));
        assert!(canary.is_match(b"__keyspace@0__:overdue:{tag}:canary:relay:h[1]:7"));
    }

    #[test]
    fn by_keyevent_each_event_has_a_channel_in_each_database() {
        let patterns = of(&rules(), Notifications::Keyevent, &Keyspace::default());
        assert_eq!(patterns.len(), 2 * (Event::NAMES.len() + 1));
        assert!(patterns.contains(&Bytes::from("__keyevent@3__:expired")));
    }
}
