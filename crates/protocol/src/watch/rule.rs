//! Watch rules: which keys, and what becomes of them when they end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crc::{CRC_64_XZ, Crc};

use super::{Glob, Template};
use crate::key::Keyspace;
use crate::name::QueueName;

/// One rule. The settings `[[watch]]` and `--watch` make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, as a queue's: stands in each entry.
    pub name: QueueName,
    /// Which keys.
    pub pattern: Glob,
    /// Which of them not.
    pub exclude: Vec<Glob>,
    /// The database of the keys.
    pub db: u8,
    /// Where their timeouts go.
    pub queue: QueueName,
    /// What a timeout carries.
    pub payload: Payload,
    /// What to do with a key that is gone at its due without proof that it expired.
    pub on_unproven: OnUnproven,
    /// What to do with a key that Redis evicted.
    pub on_evicted: OnEvicted,
    /// How long such a key's notification is waited for; at most so long.
    pub proof_wait: Duration,
}

impl Rule {
    /// How long a notification is waited for when nothing is set.
    pub const PROOF_WAIT: Duration = Duration::from_secs(1);

    /// A rule with nothing but what it must have.
    #[must_use]
    pub fn new(name: QueueName, pattern: Glob, queue: QueueName) -> Self {
        Self {
            name,
            pattern,
            exclude: vec![],
            db: 0,
            queue,
            payload: Payload::None,
            on_unproven: OnUnproven::Fire,
            on_evicted: OnEvicted::Ignore,
            proof_wait: Self::PROOF_WAIT,
        }
    }

    /// Whether `key` of database `db` is one of its keys.
    #[must_use]
    pub fn matches(&self, db: u8, key: &[u8]) -> bool {
        db == self.db && self.pattern.is_match(key) && !self.exclude.iter().any(|glob| glob.is_match(key))
    }

    /// All of it, for the hash: lists begin with their length, so that no two rules have the same parts.
    fn parts(&self) -> Vec<Bytes> {
        let number = |n: u64| Bytes::copy_from_slice(&n.to_be_bytes());
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let payload = match &self.payload {
            Payload::None => text("none"),
            Payload::Value => text("value"),
            Payload::Key(template) => text(&format!("key {}", template.as_str())),
        };
        let mut parts = vec![text(self.name.as_str()), self.pattern.as_bytes().clone()];
        parts.push(number(self.exclude.len() as u64));
        parts.extend(self.exclude.iter().map(|glob| glob.as_bytes().clone()));
        parts.extend([number(u64::from(self.db)), text(self.queue.as_str()), payload]);
        parts.push(text(if self.on_unproven == OnUnproven::Fire { "fire" } else { "drop" }));
        parts.push(text(if self.on_evicted == OnEvicted::Fire { "fire" } else { "ignore" }));
        parts.push(number(self.proof_wait.as_millis() as u64));
        parts
    }
}

/// What a timeout of a watched key carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    None,
    /// The key's value as the last look found it, at most 100 ms before the end.
    Value,
    /// The value of another key, read when it fires.
    Key(Template),
}

/// What to do with a key that is gone at its due without proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnUnproven {
    /// Fire: a timeout may be false, none is lost.
    Fire,
    /// Drop: a timeout may be lost, none is false.
    Drop,
}

/// What to do with a key that Redis evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnEvicted {
    /// It fires, with `cause` = evicted.
    Fire,
    /// It is forgotten, as if it had been deleted.
    Ignore,
}

/// Rules in their order: the first that matches wins. Keys of Overdue's own namespace never match.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Arc<Rule>>,
    own: Bytes,
}

impl Rules {
    /// The rules of a process.
    #[must_use]
    pub fn new(keyspace: &Keyspace, rules: Vec<Rule>) -> Self {
        let own = Bytes::from(format!("{}:", keyspace.namespace()));
        Self { rules: rules.into_iter().map(Arc::new).collect(), own }
    }

    /// The first rule that `key` of `db` matches. An empty name matches none.
    #[must_use]
    pub fn rule_for(&self, db: u8, key: &[u8]) -> Option<&Arc<Rule>> {
        if key.is_empty() || key.starts_with(&self.own) {
            return None;
        }
        self.rules.iter().find(|rule| rule.matches(db, key))
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The databases of the rules.
    #[must_use]
    pub fn dbs(&self) -> BTreeSet<u8> {
        self.rules.iter().map(|rule| rule.db).collect()
    }

    /// The queues of the rules.
    #[must_use]
    pub fn queues(&self) -> BTreeSet<QueueName> {
        self.rules.iter().map(|rule| rule.queue.clone()).collect()
    }

    /// A hash of the rules, 16 hex digits; empty for none. Processes with equal rules in equal order have equal hashes.
    #[must_use]
    pub fn hash(&self) -> String {
        if self.rules.is_empty() {
            return String::new();
        }
        let crc = Crc::<u64>::new(&CRC_64_XZ);
        let mut digest = crc.digest();
        for part in self.rules.iter().flat_map(|rule| rule.parts()) {
            digest.update(&(part.len() as u64).to_be_bytes());
            digest.update(&part);
        }
        format!("{:016x}", digest.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, pattern: &'static str) -> Rule {
        Rule::new(QueueName::new(name).unwrap(), Glob::new(pattern.as_bytes()), QueueName::new("q").unwrap())
    }

    fn hash(rules: Vec<Rule>) -> String {
        Rules::new(&Keyspace::default(), rules).hash()
    }

    #[test]
    fn the_first_rule_wins_and_our_own_keys_match_none() {
        let mut wide = rule("wide", "*");
        wide.exclude = vec![Glob::new(&b"*:tmp"[..])];
        let elsewhere = Rule { db: 3, ..rule("elsewhere", "session:*") };
        let rules = Rules::new(&Keyspace::default(), vec![elsewhere, rule("session", "session:*"), wide]);
        let name = |db, key: &[u8]| rules.rule_for(db, key).map(|rule| rule.name.to_string());
        assert_eq!(name(0, b"session:1"), Some("session".into()));
        assert_eq!(name(3, b"session:1"), Some("elsewhere".into()));
        assert_eq!(name(0, b"other"), Some("wide".into()));
        for (db, key) in [(0, &b"other:tmp"[..]), (1, b"other"), (0, b""), (0, b"overdue:{q:0}:index")] {
            assert_eq!(name(db, key), None);
        }
        assert_eq!((rules.dbs(), rules.queues().len()), (BTreeSet::from([0, 3]), 1));
    }

    #[test]
    fn the_hash_tells_rules_apart_and_knows_their_order() {
        assert_eq!(hash(vec![]), "");
        let (a, b) = (rule("a", "a*"), rule("b", "b*"));
        let base = hash(vec![a.clone(), b.clone()]);
        assert_eq!(base.len(), 16);
        assert_eq!(base, hash(vec![a.clone(), b.clone()]));
        let mut others = vec![hash(vec![b.clone(), a.clone()]), hash(vec![a.clone()])];
        let changes: [fn(&mut Rule); 7] = [
            |rule| rule.exclude = vec![Glob::new(&b"ab"[..])],
            |rule| rule.exclude = vec![Glob::new(&b"a"[..]), Glob::new(&b"b"[..])],
            |rule| rule.db = 1,
            |rule| rule.payload = Payload::Value,
            |rule| rule.on_unproven = OnUnproven::Drop,
            |rule| rule.on_evicted = OnEvicted::Fire,
            |rule| rule.proof_wait = Duration::from_millis(5),
        ];
        for change in changes {
            let mut changed = a.clone();
            change(&mut changed);
            others.push(hash(vec![changed, b.clone()]));
        }
        others.push(base);
        assert_eq!(others.iter().collect::<BTreeSet<_>>().len(), others.len());
    }
}
