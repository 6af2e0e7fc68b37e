//! Looks at who is alive.

use std::collections::BTreeSet;

use overdue_protocol::QueueName;
use overdue_protocol::member::{HEARTBEAT_MS, Member};

use super::finding::Finding;

/// A process that was not seen for this long counts as gone: three heartbeats.
pub(crate) const SEEN_MS: u64 = 3 * HEARTBEAT_MS;

/// Whether the process wrote itself down lately.
pub(crate) fn is_alive(member: &Member, now_ms: u64) -> bool {
    member.seen + SEEN_MS >= now_ms
}

/// Findings about the relays among the processes that are alive.
pub(super) fn look(alive: &[Member]) -> Vec<Finding> {
    let relays: Vec<_> = alive.iter().filter(|member| member.role == "relay").collect();
    if relays.is_empty() {
        return vec![Finding::bad(
            "relays",
            format!("no relay was seen in the last {} s: nothing fires", SEEN_MS / 1000),
            "start one or more: overdue relay",
        )];
    }
    let hosts: BTreeSet<_> = relays.iter().map(|relay| relay.host.as_str()).collect();
    let versions: BTreeSet<_> = relays.iter().map(|relay| relay.version.as_str()).collect();
    let seen = format!("{} alive on {}", relays.len(), Vec::from_iter(hosts).join(", "));
    let mut findings = vec![Finding::ok("relays", seen)];
    if versions.len() > 1 {
        let versions = Vec::from_iter(versions).join(", ");
        let finding = format!("relays of different versions are at work: {versions}");
        findings.push(Finding::warn(
            "relays",
            finding,
            "fine while a new version is rolled out; else upgrade the old ones",
        ));
    }
    findings
}

/// When relays are alive, but each was started for other queues.
pub(super) fn missing_for(queue: &QueueName, alive: &[Member]) -> Option<Finding> {
    let mut relays = alive.iter().filter(|member| member.role == "relay").peekable();
    relays.peek()?;
    // A relay that was started without --queue works for every queue and names none.
    let serves =
        |relay: &Member| relay.queues.is_empty() || relay.queues.iter().any(|name| name == queue.as_str());
    if relays.any(serves) {
        return None;
    }
    let advice = format!("start one: overdue relay --queue {queue}");
    Some(Finding::bad("relays", format!("no relay works for queue {queue}: nothing of it fires"), advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(role: &str, version: &str, seen: u64) -> Member {
        let text = |text: &str| text.to_owned();
        Member {
            role: text(role),
            version: text(version),
            host: text("a"),
            pid: 1,
            started: 0,
            seen,
            queues: vec![],
            rules: String::new(),
            trouble: String::new(),
        }
    }

    #[test]
    fn who_was_not_seen_for_three_heartbeats_is_gone() {
        assert!(is_alive(&member("relay", "1", 5_000), 20_000));
        assert!(!is_alive(&member("relay", "1", 5_000), 20_001));
    }

    #[test]
    fn a_consumer_is_no_relay() {
        assert_eq!(look(&[member("consumer", "1", 0)])[0].level, super::super::Level::Bad);
        let mixed = look(&[member("relay", "1", 0), member("relay", "2", 0)]);
        assert_eq!(mixed.len(), 2, "{mixed:?}");
    }
}
