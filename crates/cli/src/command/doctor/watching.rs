//! What watching keys needs and what became of it. Looked at when a relay has watch rules, or the settings of this
//! call have.

pub(super) mod buffer;
pub(super) mod expiry;
pub(super) mod index;
pub(super) mod rights;
pub(super) mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use overdue_protocol::member::Member;
use overdue_protocol::watch::Rules;
use overdue_relay::Notifications;

use crate::command::relay;
use crate::settings::Settings;

/// What is known of watching before anything is looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Watching {
    /// The rules in the settings of this call: of those of the relays only their hash is known.
    rules: Rules,
    mode: Notifications,
    /// That of keyed timers.
    grace: Duration,
    /// A relay that has rules is alive.
    relays: bool,
    /// The database of this call's address.
    db: u8,
}

impl Watching {
    pub(super) fn new(settings: &Settings, alive: &BTreeMap<String, Member>) -> Self {
        let relays = alive.values().any(|member| member.role == "relay" && !member.rules.is_empty());
        let rules = Rules::new(&settings.redis.keyspace, settings.relay.watch.clone());
        let (mode, grace) = (relay::mode(&settings.relay), settings.relay.grace);
        Self { rules, mode, grace, relays, db: settings.redis.db() }
    }

    /// Whether anybody watches keys, or is meant to.
    pub(super) fn is_on(&self) -> bool {
        self.relays || !self.rules.is_empty()
    }

    /// Whether a relay that watches is alive.
    pub(super) fn has_relays(&self) -> bool {
        self.relays
    }

    /// The databases of the rules, as far as they are known here.
    pub(super) fn dbs(&self) -> BTreeSet<u8> {
        self.rules.dbs()
    }

    /// The database that is tried: the lowest of the rules.
    fn tried(&self) -> u8 {
        self.rules.dbs().first().copied().unwrap_or(self.db)
    }

    /// The flags that the relays need in `notify-keyspace-events`, each once.
    pub(super) fn needs(&self) -> String {
        relay::needs(self.mode, self.grace, self.is_on())
    }
}

#[cfg(test)]
impl Watching {
    /// Relays that watch keys are alive.
    pub(super) fn at_work() -> Self {
        Self { relays: true, ..Self::default() }
    }

    /// Only the settings of this call have a rule.
    pub(super) fn meant() -> Self {
        let name = overdue_protocol::QueueName::new("q").unwrap();
        let rule = overdue_protocol::watch::Rule::new(
            name.clone(),
            overdue_protocol::watch::Glob::new(&b"session:*"[..]),
            name,
        );
        Self { rules: Rules::new(&overdue_protocol::Keyspace::default(), vec![rule]), ..Self::default() }
    }
}
