//! Looks at the watch rules of the relays, of which each writes down a hash.

use std::collections::BTreeMap;

use overdue_protocol::member::Member;

use super::Watching;
use crate::command::doctor::finding::Finding;

const CHECK: &str = "watch rules";
/// How much of a hash people see.
const SHOWN: usize = 8;

/// One finding; none while no relay is alive, or nobody watches.
pub(in crate::command::doctor) fn look(
    watching: &Watching,
    alive: &BTreeMap<String, Member>,
) -> Option<Finding> {
    let mut by_hash: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, relay) in alive.iter().filter(|(_, member)| member.role == "relay") {
        by_hash.entry(&relay.rules).or_default().push(name);
    }
    let ours = watching.rules.hash();
    let first = by_hash.keys().next().copied();
    match first {
        None => None,
        Some(_) if by_hash.len() > 1 => {
            let each =
                by_hash.iter().map(|(hash, names)| format!("{}: {}", shown(hash, &ours), names.join(", ")));
            let finding = format!("relays have different watch rules: {}", Vec::from_iter(each).join("; "));
            let advice = "give all of them the same, in the same order; fine while new rules are rolled out. \
                          `overdue config show` shows what each was started with";
            Some(Finding::warn(CHECK, finding, advice))
        }
        Some("") if ours.is_empty() => None,
        Some("") => Some(Finding::bad(
            CHECK,
            format!(
                "no relay watches keys, and the settings of this call have {} rules",
                watching.rules.all().len()
            ),
            "start the relays with these settings",
        )),
        Some(theirs) if !ours.is_empty() && theirs != ours => Some(Finding::warn(
            CHECK,
            "all relays have the same watch rules, and the settings of this call have others",
            "start the relays anew with these settings, or call doctor with theirs",
        )),
        Some(theirs) => {
            let here = if ours.is_empty() { "" } else { ", those of this call" };
            Some(Finding::ok(CHECK, format!("all relays have the same{here}: {}", shown(theirs, ""))))
        }
    }
}

fn shown(hash: &str, ours: &str) -> String {
    match hash {
        "" => "none".to_owned(),
        _ if hash == ours => format!("{} (as in this call)", cut(hash)),
        _ => cut(hash).to_owned(),
    }
}

/// The hash was written by whoever claims to be a relay.
fn cut(hash: &str) -> &str {
    hash.get(..SHOWN).unwrap_or(hash)
}
