//! Watch rules: `[[watch]]` in the file, or `PATTERN=QUEUE` as flag or in the environment ([`short`]). A stronger
//! layer's rules take the place of all rules of a weaker one.
//!
//! What a rule can say is defined once, in [`table`]; `config sample`, `config check` and `config show` follow from it.

pub(crate) mod short;
pub(crate) mod table;

use std::collections::BTreeMap;

use overdue_protocol::QueueName;
use overdue_protocol::watch::{Glob, Payload, Rule, Template};

use super::layers::{Layers, Origin};
use super::list::List;
use super::list::draft::Draft;
use super::table::WATCH;
use table::Carried;

/// The most rules: each event of a watched key is held against all of them, here and in Redis.
const MOST: usize = 256;

/// `[[watch]]`
pub(crate) static LIST: List = List {
    name: "watch",
    keys: table::KEYS,
    about: "Below is one rule with all it can say; only pattern and queue it must.",
    named_by: &["name"],
    section: None,
};

/// The rules of the strongest layer that has any.
pub(crate) fn drafts(layers: &Layers) -> Vec<Draft> {
    let given = layers.look_up(&WATCH.entry);
    if given.origin == Origin::Default {
        return layers.drafts(&LIST);
    }
    let shorts = (WATCH.parse)(&given.text).unwrap_or_default();
    shorts.into_iter().map(|short| short.draft(&given.origin)).collect()
}

/// The rules, checked. What is wrong with them is noted in `layers`.
pub(crate) fn read(layers: &mut Layers, redis: &overdue_store::Settings) -> Vec<Rule> {
    let given = layers.look_up(&WATCH.entry);
    if layers.parse(&WATCH, &given).is_some_and(|rules| rules.is_empty()) && given.origin != Origin::Default {
        layers.note(&given.origin, &format!("there is no rule in {:?}: {}", given.text, short::FORM));
    }
    let drafts = drafts(layers);
    if let Some(draft) = drafts.get(MOST) {
        layers.note(&draft.origin, &format!("more than {MOST} watch rules: let patterns cover more keys"));
        return vec![];
    }
    let mut known = Known::default();
    for draft in &drafts {
        if let Some(rule) = read_rule(layers, draft, redis, &known) {
            known.add(layers, draft, rule);
        }
    }
    known.rules
}

fn read_rule(
    layers: &mut Layers,
    draft: &Draft,
    redis: &overdue_store::Settings,
    known: &Known,
) -> Option<Rule> {
    let (pattern, queue) = (draft.demand(layers, &table::PATTERN), draft.demand(layers, &table::QUEUE));
    let name = draft.read(layers, &table::NAME);
    let exclude = draft.read(layers, &table::EXCLUDE);
    let db = draft.read(layers, &table::DB).unwrap_or_else(|| redis.db());
    let payload = read_payload(layers, draft, pattern.as_ref());
    let on_unproven = draft.read(layers, &table::ON_UNPROVEN);
    let on_evicted = draft.read(layers, &table::ON_EVICTED);
    let proof_wait = draft.read(layers, &table::PROOF_WAIT);
    if redis.is_cluster() && db != 0 {
        let origin = draft.look_up(&table::DB.entry).origin;
        layers.note(&origin, &format!("watch.db is {db}, but a cluster has only database 0: leave it out"));
    }
    let (pattern, queue) = (pattern?, queue?);
    let name = name.unwrap_or_else(|| match draft.origin {
        Origin::File(_) => queue.clone(),
        _ => known.free_name(&queue),
    });
    Some(Rule { name, pattern, exclude, db, queue, payload, on_unproven, on_evicted, proof_wait })
}

/// `payload` and `payload_key`, which must fit each other and the pattern.
fn read_payload(layers: &mut Layers, draft: &Draft, pattern: Option<&Glob>) -> Payload {
    let template = draft.look_up(&table::PAYLOAD_KEY.entry);
    let carried = layers.parse(&table::PAYLOAD, &draft.look_up(&table::PAYLOAD.entry));
    let key = draft.read(layers, &table::PAYLOAD_KEY);
    let Some(carried) = carried else { return Payload::None };
    match (carried, key) {
        (Carried::Key, Some(key)) => {
            if let Some(problem) = pattern.and_then(|pattern| misfit(pattern, &key)) {
                layers.note(&template.origin, &format!("watch.payload_key: {problem}"));
            }
            return Payload::Key(key);
        }
        // One that is there and wrong has been noted.
        (Carried::Key, None) if template.text.is_empty() => {
            let origin = draft.look_up(&table::PAYLOAD.entry).origin;
            let write = "write which key, such as payload_key = \"order:{1}\"";
            layers.note(
                &origin,
                &format!("watch.payload is \"key\", but watch.payload_key is missing: {write}"),
            );
        }
        (Carried::None | Carried::Value, Some(_)) => {
            let problem = "watch.payload_key is set, but nothing reads it: write payload = \"key\" beside it";
            layers.note(&template.origin, problem);
        }
        (Carried::Value, None) => return Payload::Value,
        (Carried::Key | Carried::None, None) => {}
    }
    Payload::None
}

fn misfit(pattern: &Glob, template: &Template) -> Option<&'static str> {
    match (pattern.has_star(), template.has_hole()) {
        (false, true) => Some(
            "{1} is what the first * of the pattern matches, and the pattern has no *: write a * or a key without {1}",
        ),
        (true, false) => Some(
            "without {1} every key of the rule carries the value of one and the same key: write {1} for what the \
             first * of the pattern matches",
        ),
        _ => None,
    }
}

/// The rules so far, and where each began.
#[derive(Default)]
struct Known {
    rules: Vec<Rule>,
    names: BTreeMap<QueueName, Origin>,
}

impl Known {
    /// The queue's name, else the first of `<queue>-2`, `<queue>-3` ... that no rule has.
    fn free_name(&self, queue: &QueueName) -> QueueName {
        let numbered = (2..=MOST + 1).filter_map(|number| {
            let tail = format!("-{number}");
            // A long name gives way to the number.
            let head = &queue.as_str()[..queue.as_str().len().min(64 - tail.len())];
            QueueName::new(&format!("{head}{tail}")).ok()
        });
        let mut names = std::iter::once(queue.clone()).chain(numbered);
        names.find(|name| !self.names.contains_key(name)).unwrap_or_else(|| queue.clone())
    }

    fn add(&mut self, layers: &mut Layers, draft: &Draft, rule: Rule) {
        if let Some(first) = self.names.get(&rule.name) {
            let given = draft.look_up(&table::NAME.entry).origin;
            let origin = if given == Origin::Default { &draft.origin } else { &given };
            let write = format!("write name = {:?} or the like", self.free_name(&rule.name).as_str());
            layers.note(
                origin,
                &format!("watch.name: the rule at {first} is called {} already: {write}", rule.name),
            );
        }
        if let Some(first) = self.rules.iter().find(|first| leaves_nothing_to(first, &rule)) {
            let (name, queue) = (&first.name, &first.queue);
            let problem = format!(
                "rule {} never gets a key: rule {name}, which comes first, takes them all. A key goes to one queue: \
                 let groups of queue {queue} share it",
                rule.name
            );
            layers.note(&draft.origin, &problem);
        }
        self.names.entry(rule.name.clone()).or_insert_with(|| draft.origin.clone());
        self.rules.push(rule);
    }
}

fn leaves_nothing_to(first: &Rule, rule: &Rule) -> bool {
    let all = matches_all(&first.pattern) || first.pattern == rule.pattern;
    first.db == rule.db && first.exclude.is_empty() && all
}

fn matches_all(pattern: &Glob) -> bool {
    pattern.as_bytes().iter().all(|&byte| byte == b'*')
}

/// What is allowed, but costs more than one may think: `config check` and the relay say it.
pub(crate) fn warnings(rules: &[Rule]) -> Vec<String> {
    let costly = rules.iter().filter(|rule| matches_all(&rule.pattern)).map(|rule| {
        format!(
            "rule {}: the pattern * watches every key with a TTL in database {}, at some 25 us of Redis' time and \
             100 to 330 bytes for each: a narrower pattern costs less",
            rule.name, rule.db
        )
    });
    costly.collect()
}

#[cfg(test)]
mod tests;
