//! Looks at how much each server holds for a subscriber that does not keep up.

use std::collections::BTreeMap;

use overdue_store::{Node, Nodes};

use crate::command::doctor::finding::Finding;
use crate::command::doctor::flags;

const CHECK: &str = "output buffer";
const SETTING: &str = "client-output-buffer-limit";
/// What servers begin with, bytes: at once, and for a minute.
const DEFAULT: (u64, u64) = (32 << 20, 8 << 20);
const ADVICE: &str = "CONFIG SET client-output-buffer-limit \"pubsub 64mb 32mb 60\", and write it into the server's \
                      configuration";

/// The bounds for subscribers, in bytes and seconds; 0 = none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    hard: u64,
    soft: u64,
    soft_s: u64,
}

/// One finding when all nodes are alike, else one for each. A node that does not answer is told of with its flags.
pub(in crate::command::doctor) async fn look(nodes: &Nodes) -> Vec<Finding> {
    let mut found = BTreeMap::new();
    for node in flags::all(nodes) {
        found.extend(read(nodes, &node).await.map(|limit| (nodes.place(&node), limit)));
    }
    flags::each(&found, finding)
}

async fn read(nodes: &Nodes, node: &Node) -> Option<Option<Limit>> {
    let told = nodes.config_get(node, SETTING).await.ok()?;
    Some(told.as_deref().and_then(parse))
}

/// Reads `normal 0 0 0 slave ... pubsub 33554432 8388608 60`.
fn parse(text: &str) -> Option<Limit> {
    let mut words = text.split_ascii_whitespace().skip_while(|word| *word != "pubsub").skip(1);
    let mut number = || words.next()?.parse().ok();
    Some(Limit { hard: number()?, soft: number()?, soft_s: number()? })
}

fn finding(at: &str, limit: &Option<Limit>) -> Finding {
    let Some(limit) = *limit else {
        return Finding::ok(CHECK, format!("{at}the server does not tell its {SETTING}"));
    };
    let Limit { hard, soft, soft_s } = limit;
    let told = format!("{at}{SETTING} pubsub is {hard} {soft} {soft_s}");
    let low = |bound: u64, usual: u64| bound > 0 && bound < usual;
    if hard == 0 && (soft == 0 || soft_s == 0) {
        let finding =
            format!("{told}: for a subscriber that hangs the server fills its memory with notifications");
        return Finding::warn(CHECK, finding, ADVICE);
    }
    if low(hard, DEFAULT.0) || low(soft, DEFAULT.1) {
        let finding = format!(
            "{told}: in a burst of notifications the server ends a relay's subscription; that is a gap"
        );
        return Finding::warn(CHECK, finding, ADVICE);
    }
    Finding::ok(CHECK, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::doctor::finding::Level;

    fn level(pubsub: &str) -> Level {
        finding("", &parse(&format!("normal 0 0 0 slave 268435456 67108864 60 pubsub {pubsub}"))).level
    }

    #[test]
    fn no_bound_and_a_low_one_are_worth_a_word() {
        for (pubsub, expected) in [
            ("33554432 8388608 60", Level::Ok),
            ("67108864 0 0", Level::Ok),
            ("0 33554432 60", Level::Ok),
            ("0 0 0", Level::Warn),
            ("0 33554432 0", Level::Warn),
            ("1048576 0 0", Level::Warn),
            ("33554432 1048576 60", Level::Warn),
            ("", Level::Ok),
        ] {
            assert_eq!(level(pubsub), expected, "{pubsub}");
        }
    }
}
