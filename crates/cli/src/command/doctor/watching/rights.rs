//! Tries whether this user may do what a relay does to watch keys: subscribe, and touch keys.
//!
//! ACL DRYRUN would tell it without trying, but only a user who may do everything may ask, and not before 7.0.

use overdue_protocol::watch::{Payload, Rule};
use overdue_relay::watch_patterns;
use overdue_store::{Capture, Error, ErrorKind, Feed, Nodes, Result, Subscriber};

use super::Watching;
use crate::command::doctor::finding::Finding;
use crate::command::place;
use crate::settings::Settings;

const CHECK: &str = "watch rights";
const ADVICE: &str = "give the user of the relays what docs/OPERATIONS.md lists, section Rights";

/// A finding for each right that is missing, else one.
pub(in crate::command::doctor) async fn look(
    settings: &Settings,
    nodes: &Nodes,
    watching: &Watching,
) -> Vec<Finding> {
    let patterns = watch_patterns(&watching.rules, watching.mode, &settings.redis.keyspace);
    let number = patterns.len();
    let mut refused = vec![];
    if number > 0 {
        match Subscriber::open(&settings.redis, place::ROLE, patterns, 1024).await {
            Ok((subscriber, _)) => subscriber.close().await,
            Err(error) => refused.push(finding(&error)),
        }
    }
    let feeds = Vec::from_iter(nodes.feeds().borrow().iter().cloned());
    for feed in feeds {
        refused.extend(touch(nodes, watching, &feed).await.err().as_ref().map(finding));
    }
    for rule in watching.rules.all() {
        refused.extend(read(nodes, rule).await.err().as_ref().map(finding));
    }
    if !refused.is_empty() {
        return refused;
    }
    let tried = match watching.rules.all().len() {
        0 => "this user may touch; to have channels and keys tried, call doctor with the relays' settings"
            .to_owned(),
        rules => format!("this user may subscribe to {number} patterns and touch the keys of {rules} rules"),
    };
    vec![Finding::ok(CHECK, tried)]
}

/// A key that each rule of the database would match. Whatever is there stays as it is, unless its time has ended.
async fn touch(nodes: &Nodes, watching: &Watching, feed: &Feed) -> Result<()> {
    let rules = watching.rules.all().iter().filter(|rule| rule.db == feed.db);
    let keys: Vec<_> = rules.filter_map(|rule| rule.pattern.sample()).collect();
    nodes.touch(feed, &keys, Capture::NONE).await.map(drop)
}

/// The key whose value is the payload.
async fn read(nodes: &Nodes, rule: &Rule) -> Result<()> {
    let Payload::Key(template) = &rule.payload else { return Ok(()) };
    nodes.values(rule.db, &[template.fill(b"a")], 1).await.map(drop)
}

fn finding(error: &Error) -> Finding {
    if error.kind() == ErrorKind::Refused {
        Finding::bad(CHECK, format!("this user {error}"), ADVICE)
    } else {
        Finding::warn(
            CHECK,
            format!("not tried: {error}"),
            "see what is wrong with the server, and call doctor again",
        )
    }
}
