//! Looks at the server: version, role, persistence, eviction, clock.

use std::time::{SystemTime, UNIX_EPOCH};

use overdue_store::{ServerInfo, Store};

use super::finding::Finding;
use crate::exit::Failure;
use crate::output::text;

/// A clock that is this far off is worth a word.
const CLOCK_MS: u64 = 1_000;
/// Memory in use, of maxmemory in percent, from which on it is worth a word.
const FULL: u64 = 90;

/// Findings about the server; on a cluster, about one node of it.
pub(super) async fn look(store: &Store) -> Result<Vec<Finding>, Failure> {
    let server = store.server().await?;
    let save = store.config_get("save").await?;
    let mut findings = vec![version(&server), role(&server), persistence(&server, save.as_deref())];
    findings.extend(failing_writes(&server));
    findings.push(eviction(&server));
    findings.extend(memory(&server));
    findings.push(clock(store.time_ms().await?));
    Ok(findings)
}

fn version(server: &ServerInfo) -> Finding {
    let product = if server.valkey { "Valkey" } else { "Redis" };
    let known = |major: u64| if server.valkey { major >= 8 } else { (6..=8).contains(&major) };
    let major = server.version.split('.').next().and_then(|major| major.parse().ok());
    let what = format!("{product} {}, {}", server.version, server.mode);
    match major {
        Some(major) if known(major) => Finding::ok("version", what),
        // Older than 6.2 does not come this far.
        _ => Finding::warn(
            "version",
            format!("{what}: not tried with Overdue"),
            "Redis 6.2 to 8 and Valkey 8 and later are",
        ),
    }
}

fn role(server: &ServerInfo) -> Finding {
    match server.role.as_str() {
        "slave" => Finding::bad(
            "role",
            "this is a replica: it refuses writes",
            "give the address of the primary, or use redis-sentinel://",
        ),
        "" => {
            Finding::warn("role", "the server does not say whether it is a primary", "allow the command INFO")
        }
        _ => Finding::ok("role", format!("primary with {} replicas", server.connected_replicas)),
    }
}

fn persistence(server: &ServerInfo, save: Option<&str>) -> Finding {
    const APPEND: &str = "append-only file: set appendonly yes";
    match (server.aof_enabled, save) {
        (true, _) => Finding::ok("persistence", "the append-only file is on"),
        (false, Some("")) => Finding::bad(
            "persistence",
            "no append-only file and no snapshots: all timers are lost with the server",
            format!("switch on the {APPEND}"),
        ),
        (false, Some(_)) => Finding::warn(
            "persistence",
            "snapshots only: what was armed after the last one is lost with the server, and what fired may fire again",
            format!("switch on the {APPEND}"),
        ),
        (false, None) => Finding::warn(
            "persistence",
            "no append-only file; the server does not say whether it takes snapshots",
            format!("ask whoever runs it; best is the {APPEND}"),
        ),
    }
}

/// Saving goes wrong: Redis refuses writes then (MISCONF).
fn failing_writes(server: &ServerInfo) -> Vec<Finding> {
    let failed = |name: &str| server.lines.get(name).is_some_and(|status| status == "err");
    let advice = "look at the server's disk and log";
    let snapshot = failed("rdb_last_bgsave_status")
        .then(|| Finding::bad("persistence", "the last snapshot failed", advice));
    let append = failed("aof_last_write_status")
        .then(|| Finding::bad("persistence", "the last write to the append-only file failed", advice));
    snapshot.into_iter().chain(append).collect()
}

fn eviction(server: &ServerInfo) -> Finding {
    let (policy, max) = (server.maxmemory_policy.as_str(), server.maxmemory);
    match policy {
        _ if max == 0 => Finding::ok("eviction", "no maxmemory: nothing is evicted"),
        "noeviction" => Finding::ok("eviction", format!("maxmemory {max} bytes, policy noeviction")),
        _ if policy.starts_with("volatile") => Finding::warn(
            "eviction",
            format!(
                "policy {policy}: the plain keys of keyed timers may go early; the timers themselves stay"
            ),
            "set maxmemory-policy noeviction if somebody reads those keys",
        ),
        _ => Finding::bad(
            "eviction",
            format!("policy {policy}: at maxmemory Redis deletes any key, whole queues too"),
            "set maxmemory-policy noeviction",
        ),
    }
}

fn memory(server: &ServerInfo) -> Option<Finding> {
    let (used, max) = (server.used_memory, server.maxmemory);
    let full = max > 0 && used.saturating_mul(100) >= max.saturating_mul(FULL);
    let finding =
        || format!("{used} of {max} bytes are in use: at the limit schedule is refused, firing goes on");
    full.then(|| Finding::warn("memory", finding(), "raise maxmemory, or remove data"))
}

fn clock(server_ms: u64) -> Finding {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let here_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let off = here_ms.abs_diff(server_ms);
    if off < CLOCK_MS {
        return Finding::ok("clock", "the server's clock and the one here agree");
    }
    let side = if server_ms > here_ms { "ahead of" } else { "behind" };
    let finding = format!(
        "the server's clock is {} {side} the one here; the server's decides what is due",
        text::span(off)
    );
    Finding::warn("clock", finding, "set both by NTP")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn server() -> ServerInfo {
        ServerInfo {
            version: "7.0.15".into(),
            mode: "standalone".into(),
            role: "master".into(),
            ..ServerInfo::default()
        }
    }

    #[test]
    fn without_append_only_file_and_snapshots_everything_can_be_lost() {
        let level = |aof_enabled, save| persistence(&ServerInfo { aof_enabled, ..server() }, save).level;
        assert_eq!(level(false, Some("")), Level::Bad);
        assert_eq!(level(false, Some("3600 1")), Level::Warn);
        assert_eq!(level(false, None), Level::Warn);
        assert_eq!(level(true, Some("")), Level::Ok);
    }

    #[test]
    fn only_eviction_of_any_key_is_bad() {
        let level = |maxmemory, policy: &str| {
            eviction(&ServerInfo { maxmemory, maxmemory_policy: policy.into(), ..server() }).level
        };
        assert_eq!(level(0, "allkeys-lru"), Level::Ok);
        assert_eq!(level(1, "noeviction"), Level::Ok);
        assert_eq!(level(1, "volatile-ttl"), Level::Warn);
        assert_eq!(level(1, "allkeys-random"), Level::Bad);
    }

    #[test]
    fn a_replica_is_bad_and_an_unknown_version_worth_a_word() {
        assert_eq!(role(&ServerInfo { role: "slave".into(), ..server() }).level, Level::Bad);
        let level = |version: &str, valkey| version_of(version, valkey).level;
        assert_eq!(level("7.0.15", false), Level::Ok);
        assert_eq!(level("9.1.0", true), Level::Ok);
        assert_eq!(level("99.0", false), Level::Warn);
    }

    fn version_of(version: &str, valkey: bool) -> Finding {
        super::version(&ServerInfo { version: version.into(), valkey, ..server() })
    }
}
