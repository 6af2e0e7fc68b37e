//! Looks at the server: version, role, replicas, persistence, eviction, clock.

use std::time::{SystemTime, UNIX_EPOCH};

use overdue_store::{ServerInfo, Store};

use super::finding::Finding;
use super::memory;
use crate::exit::Failure;
use crate::output::text;

/// A clock that is this far off is worth a word.
const CLOCK_MS: u64 = 1_000;
/// How many seconds a replica may be behind before it is worth a word.
const BEHIND_S: u64 = 10;

/// Findings about the server; on a cluster, about one node of it.
pub(super) async fn look(store: &Store) -> Result<Vec<Finding>, Failure> {
    let server = store.server().await?;
    let save = store.config_get("save").await?;
    let mut findings = vec![version(&server), role(&server), persistence(&server, save.as_deref())];
    findings.extend(replicas(&server));
    findings.extend(failing_writes(&server));
    findings.push(eviction(&server));
    findings.push(memory::look(store, &server).await?);
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
        _ if server.connected_replicas == 0 => {
            Finding::ok("role", "primary without replicas: what it holds is as safe as its disk")
        }
        _ => Finding::ok("role", format!("primary with {} replicas", server.connected_replicas)),
    }
}

/// Replicas that are not in step: what they lack is lost when one takes over now.
fn replicas(server: &ServerInfo) -> Vec<Finding> {
    let of = |line: &str, name: &str| {
        line.split(',')
            .find_map(|field| Some(field.split_once('=').filter(|(n, _)| *n == name)?.1.to_owned()))
    };
    let look = |line: &String| {
        let (ip, port, state) = (of(line, "ip")?, of(line, "port")?, of(line, "state")?);
        let behind = of(line, "lag").and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        if state == "online" && behind <= BEHIND_S {
            return None;
        }
        let finding = format!("replica {ip}:{port} is {state}, last heard of {behind} s ago");
        let advice = "if it takes over now, what it lacks is lost; see its log and the network between them";
        Some(Finding::warn("replicas", finding, advice))
    };
    (0..server.connected_replicas).filter_map(|n| look(server.lines.get(&format!("slave{n}"))?)).collect()
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

    #[test]
    fn a_replica_that_is_not_in_step_is_worth_a_word() {
        let found = |line: &str| {
            let lines = [("slave0".to_owned(), line.to_owned())].into();
            replicas(&ServerInfo { connected_replicas: 1, lines, ..server() }).len()
        };
        assert_eq!(found("ip=10.0.0.2,port=6379,state=online,offset=7,lag=1"), 0);
        assert_eq!(found("ip=10.0.0.2,port=6379,state=online,offset=7,lag=11"), 1);
        assert_eq!(found("ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0"), 1);
    }

    fn version_of(version: &str, valkey: bool) -> Finding {
        super::version(&ServerInfo { version: version.into(), valkey, ..server() })
    }
}
