//! Looks at how much memory is left, and for how many timers.

use overdue_store::{ServerInfo, Store};

use super::finding::Finding;
use crate::command::place;
use crate::exit::Failure;
use crate::output::text::count;

/// Memory in use, of maxmemory in percent, from which on it is worth a word.
const FULL: u64 = 90;
/// What an armed timer takes with an id of 20 and a payload of 100 bytes; docs/OPERATIONS.md, section Sizing.
const TIMER: u64 = 375;

/// One finding; on a cluster, about one node of it.
pub(super) async fn look(store: &Store, server: &ServerInfo) -> Result<Finding, Failure> {
    let mut armed = 0;
    for (queue, info) in store.queues().await.unwrap_or_default() {
        for partition in place::partitions(store, &queue, &info) {
            armed += store.depth(&partition).await?;
        }
    }
    Ok(finding(server, armed))
}

fn finding(server: &ServerInfo, armed: u64) -> Finding {
    let (used, max) = (server.used_memory, server.maxmemory);
    let (bound, most) = match (max, number(server, "total_system_memory")) {
        (0, 0) => {
            return Finding::ok("memory", format!("{} bytes are in use, no limit is known", count(used)));
        }
        (0, machine) => ("the machine's", machine),
        (max, _) => ("maxmemory", max),
    };
    let room = most.saturating_sub(used);
    let finding = format!(
        "{} of {} bytes ({bound}) are in use; {} timers are armed, and there is room for some {} more with 100 bytes each",
        count(used),
        count(most),
        count(armed),
        count(room / TIMER)
    );
    let advice = "raise maxmemory, or remove data: at the limit schedule is refused, firing goes on";
    match () {
        () if max > 0 && used >= max => Finding::bad("memory", finding, advice),
        // All that is armed turns into timeouts in the streams, and with no consumer stays there.
        () if used.saturating_mul(100) >= most.saturating_mul(FULL) => {
            Finding::warn("memory", finding, advice)
        }
        () => Finding::ok("memory", finding),
    }
}

fn number(server: &ServerInfo, name: &str) -> u64 {
    server.lines.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn nearly_full_is_worth_a_word_and_full_is_bad() {
        let level = |used_memory, maxmemory| {
            finding(&ServerInfo { used_memory, maxmemory, ..ServerInfo::default() }, 7).level
        };
        assert_eq!(level(89, 100), Level::Ok);
        assert_eq!(level(90, 100), Level::Warn);
        assert_eq!(level(100, 100), Level::Bad);
        assert_eq!(level(100, 0), Level::Ok);
    }

    #[test]
    fn without_maxmemory_the_machine_is_the_bound() {
        let lines = [("total_system_memory".to_owned(), "1000".to_owned())].into();
        let server = ServerInfo { used_memory: 950, lines, ..ServerInfo::default() };
        assert_eq!(finding(&server, 7).level, Level::Warn);
    }
}
