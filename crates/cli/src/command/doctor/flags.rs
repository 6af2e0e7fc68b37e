//! Looks at the notification flags of every node.

use std::collections::{BTreeMap, BTreeSet};

use overdue_relay::missing_flags;
use overdue_store::{Node, Nodes};

use super::finding::{Finding, Level};
use super::watching::Watching;
use super::watching::expiry::Heard;

const CHECK: &str = "notifications";
const SETTING: &str = "notify-keyspace-events";

/// What a node told, or why it did not answer; and whether its notifications come, if that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    flags: Result<Option<String>, String>,
    heard: Option<bool>,
}

/// One finding when all nodes are alike; else one for each node. A node that does not answer is a finding too.
pub(super) async fn look(nodes: &Nodes, watching: &Watching, heard: &Heard) -> Vec<Finding> {
    let mut found = BTreeMap::new();
    for node in all(nodes) {
        let flags = nodes.config_get(&node, SETTING).await.map_err(|error| error.to_string());
        found.insert(nodes.place(&node), Told { flags, heard: heard.get(&node).copied() });
    }
    each(&found, |at, told| finding(at, told, watching))
}

/// The nodes of now.
pub(super) fn all(nodes: &Nodes) -> BTreeSet<Node> {
    nodes.feeds().borrow().iter().map(|feed| feed.node.clone()).collect()
}

/// One finding when all that was found is alike; else one for each node, with its address in front.
pub(super) fn each<T: PartialEq>(
    found: &BTreeMap<String, T>,
    finding: impl Fn(&str, &T) -> Finding,
) -> Vec<Finding> {
    let first = found.values().next();
    if found.values().all(|one| Some(one) == first) {
        return first.map(|one| finding("", one)).into_iter().collect();
    }
    found.iter().map(|(place, one)| finding(&format!("{place}: "), one)).collect()
}

fn finding(at: &str, told: &Told, watching: &Watching) -> Finding {
    let needs = watching.needs();
    match &told.flags {
        Err(error) => Finding::warn(CHECK, format!("{at}{error}"), "start the node, or remove it"),
        Ok(None) if watching.is_on() => untold(at, told.heard, watching),
        Ok(None) => Finding::ok(
            CHECK,
            format!("{at}the server does not tell its flags; only keyed timers have notifications"),
        ),
        Ok(Some(flags)) => match missing_flags(flags, &needs) {
            None => Finding::ok(CHECK, format!("{at}{SETTING} {flags:?} has all that is needed: {needs}")),
            Some(missing) => lacking(at, flags, &missing, watching),
        },
    }
}

fn lacking(at: &str, flags: &str, missing: &str, watching: &Watching) -> Finding {
    let lacks = format!("{at}{SETTING} {flags:?} lacks {missing}");
    if !watching.is_on() {
        return Finding::warn(
            CHECK,
            format!("{lacks}: keyed timers fire on time all the same, by the index"),
            "a relay adds them when it starts (keyspace_events = add), or set them yourself",
        );
    }
    let finding = if missing.contains(['x', 'K', 'E']) {
        format!(
            "{lacks}: watched keys are not heard of; SCAN and nudges carry on alone, and what is written and expires \
             between two SCANs is not seen"
        )
    } else {
        format!(
            "{lacks}: of watched keys only their end is heard; deadlines that change are found by SCAN, late"
        )
    };
    let advice =
        format!("CONFIG SET {SETTING} {flags}{missing}; a relay does so itself with keyspace_events = add");
    // Until one runs, nobody was asked to add them.
    let level = if watching.has_relays() { Level::Bad } else { Level::Warn };
    Finding::bad(CHECK, finding, advice).at(level)
}

/// No CONFIG: nobody adds what is missing.
fn untold(at: &str, heard: Option<bool>, watching: &Watching) -> Finding {
    let finding = format!("{at}the server does not tell its flags (CONFIG is refused)");
    let advice = format!(
        "make sure with the provider's own setting that {SETTING} has {}: on ElastiCache and MemoryDB it is in the \
         parameter group, on Memorystore in the instance's configuration, on Azure among the advanced settings; on a \
         server of your own, allow +config|get +config|set",
        watching.needs()
    );
    match heard {
        Some(true) => Finding::ok(CHECK, format!("{finding}, but what expires is told of")),
        Some(false) => {
            let level = if watching.has_relays() { Level::Bad } else { Level::Warn };
            Finding::bad(CHECK, format!("{finding}, and what expires is not told of"), advice).at(level)
        }
        None => Finding::warn(CHECK, finding, advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(flags: &[Option<&str>]) -> Vec<Level> {
        let told = |(at, flags): (usize, &Option<&str>)| {
            (at.to_string(), Told { flags: Ok(flags.map(str::to_owned)), heard: None })
        };
        look_at(&flags.iter().enumerate().map(told).collect(), &Watching::default())
    }

    fn look_at(found: &BTreeMap<String, Told>, watching: &Watching) -> Vec<Level> {
        each(found, |at, told| finding(at, told, watching)).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn flags_are_read_as_redis_writes_them() {
        for (text, level) in [("xE", Level::Ok), ("AKE", Level::Ok), ("", Level::Warn), ("Kx", Level::Warn)] {
            assert_eq!(levels(&[Some(text)]), [level], "{text}");
        }
    }

    #[test]
    fn nodes_that_are_alike_are_one_finding() {
        assert_eq!(levels(&[Some("xE"), Some("xE"), Some("xE")]), [Level::Ok]);
        assert_eq!(levels(&[Some("xE"), Some(""), None]), [Level::Ok, Level::Warn, Level::Ok]);
        let down = Told { flags: Err("no answer".to_owned()), heard: None };
        assert_eq!(look_at(&BTreeMap::from([("h".to_owned(), down)]), &Watching::default()), [Level::Warn]);
    }

    #[test]
    fn to_watch_keys_more_is_needed_and_what_is_heard_counts_more_than_what_is_told() {
        let level = |flags: Option<&str>, heard, watching| {
            let told = Told { flags: Ok(flags.map(str::to_owned)), heard };
            finding("", &told, &watching).level
        };
        let (meant, at_work) = (Watching::meant(), Watching::at_work());
        for (flags, heard, meant_level, at_work_level) in [
            (Some("KEgxe"), Some(true), Level::Ok, Level::Ok),
            (Some("AKE"), None, Level::Ok, Level::Ok),
            (Some("Ex"), Some(true), Level::Warn, Level::Bad),
            (Some("KEx"), Some(true), Level::Warn, Level::Bad),
            (None, Some(true), Level::Ok, Level::Ok),
            (None, Some(false), Level::Warn, Level::Bad),
            (None, None, Level::Warn, Level::Warn),
        ] {
            assert_eq!(level(flags, heard, meant.clone()), meant_level, "{flags:?} {heard:?}");
            assert_eq!(level(flags, heard, at_work.clone()), at_work_level, "{flags:?} {heard:?}");
        }
    }
}
