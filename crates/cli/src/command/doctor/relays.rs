//! Looks at who is alive.

use std::collections::BTreeSet;

use overdue_protocol::QueueName;
use overdue_protocol::member::{HEARTBEAT_MS, Member};

use super::finding::Finding;

/// A consumer that was not seen for this long counts as gone: three heartbeats.
pub(crate) const SEEN_MS: u64 = 3 * HEARTBEAT_MS;
/// A relay, without which nothing fires.
pub(crate) const RELAY_SEEN_MS: u64 = 2 * HEARTBEAT_MS;

/// Whether the process wrote itself down lately.
pub(crate) fn is_alive(member: &Member, now_ms: u64) -> bool {
    let most = if member.role == "relay" { RELAY_SEEN_MS } else { SEEN_MS };
    member.seen + most >= now_ms
}

/// Whether it is a relay that fires timers of this queue. One that was started without --queue works for every queue
/// and names none.
pub(crate) fn serves(member: &Member, queue: &QueueName) -> bool {
    let names = &member.queues;
    member.role == "relay" && (names.is_empty() || names.iter().any(|name| name == queue.as_str()))
}

/// Whether it is a consumer of ours that reads for this group.
pub(crate) fn reads(member: &Member, queue: &QueueName, group: &str) -> bool {
    let is_it = |place: &String| place.split_once('/') == Some((queue.as_str(), group));
    member.role == "consumer" && member.queues.iter().any(is_it)
}

/// Findings about the relays among the processes that are alive.
pub(super) fn look(alive: &[Member]) -> Vec<Finding> {
    let relays: Vec<_> = alive.iter().filter(|member| member.role == "relay").collect();
    if relays.is_empty() {
        return vec![Finding::bad(
            "relays",
            format!("no relay was seen in the last {} s: nothing fires", RELAY_SEEN_MS / 1000),
            "start one or more: overdue relay",
        )];
    }
    let hosts: BTreeSet<_> = relays.iter().map(|relay| relay.host.as_str()).collect();
    let versions: BTreeSet<_> = relays.iter().map(|relay| relay.version.as_str()).collect();
    let seen = format!("{} alive on {}", relays.len(), Vec::from_iter(hosts).join(", "));
    let mut findings = vec![Finding::ok("relays", seen)];
    findings.extend(relays.iter().filter(|relay| !relay.trouble.is_empty()).map(|relay| {
        let finding = format!("relay on {}, process {}: {}", relay.host, relay.pid, relay.trouble);
        let advice = "nothing is lost: timers fire all the same, what watched keys end with may come late; see \
                      `notifications` below, and docs/OPERATIONS.md, section Watched keys";
        Finding::bad("blind", finding, advice)
    }));
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
    let has_relays = alive.iter().any(|member| member.role == "relay");
    if !has_relays || alive.iter().any(|member| serves(member, queue)) {
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
    fn a_relay_is_gone_after_two_heartbeats_and_a_consumer_after_three() {
        for (role, most) in [("relay", 10_000), ("consumer", 15_000)] {
            assert!(is_alive(&member(role, "1", 5_000), 5_000 + most), "{role}");
            assert!(!is_alive(&member(role, "1", 5_000), 5_001 + most), "{role}");
        }
    }

    #[test]
    fn a_relay_that_is_blind_is_found() {
        let blind =
            Member { trouble: "canary server: no notifications come".to_owned(), ..member("relay", "1", 0) };
        let found = look(&[blind]);
        assert_eq!(
            found.iter().map(|one| (one.level, one.check)).collect::<Vec<_>>(),
            [(super::super::Level::Ok, "relays"), (super::super::Level::Bad, "blind"),]
        );
    }

    #[test]
    fn a_consumer_is_no_relay() {
        assert_eq!(look(&[member("consumer", "1", 0)])[0].level, super::super::Level::Bad);
        let mixed = look(&[member("relay", "1", 0), member("relay", "2", 0)]);
        assert_eq!(mixed.len(), 2, "{mixed:?}");
    }
}
