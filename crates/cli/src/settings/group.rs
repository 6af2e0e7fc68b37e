//! `[[group]]`: groups whose consumers only read and acknowledge. The relay does the rest for them.
//!
//! What a group can say is defined once, in [`table`].

pub(crate) mod table;

use overdue_reconciler::GroupRule;

use super::consumer::ConsumerRule;
use super::layers::Layers;
use super::list::List;
use super::list::draft::Draft;

/// The most groups: each is looked after once a second in every partition of its queue.
const MOST: usize = 256;

/// `[[group]]`
pub(crate) static LIST: List = List {
    name: "group",
    keys: table::KEYS,
    about: "A group of plain consumers, which only read (XREADGROUP) and acknowledge (XACK): the relay creates it, \
            hands what they did not acknowledge out again, and makes it a dead letter after the last attempt. Below \
            is one with all it can say; only queue and name it must.",
    named_by: &["queue", "name"],
    section: None,
};

/// The groups, checked. What is wrong with them is noted in `layers`.
pub(crate) fn read(layers: &mut Layers, consumers: &[ConsumerRule]) -> Vec<GroupRule> {
    let drafts = layers.drafts(&LIST);
    if let Some(draft) = drafts.get(MOST) {
        layers.note(&draft.origin, &format!("more than {MOST} groups: let consumers share some"));
        return vec![];
    }
    let mut groups: Vec<GroupRule> = vec![];
    for draft in &drafts {
        let Some(group) = read_group(layers, draft) else { continue };
        let (queue, name) = (&group.queue, &group.name);
        if groups.iter().any(|first| (&first.queue, &first.name) == (queue, name)) {
            layers
                .note(&draft.origin, &format!("group {name} of queue {queue} is declared already: keep one"));
        }
        // The two keep the books of a group in different ways.
        if consumers.iter().any(|consumer| (&consumer.queue, &consumer.group) == (queue, name)) {
            let problem = format!(
                "group {name} of queue {queue} has a [[consumer]] too, which needs no [[group]]: keep one of them"
            );
            layers.note(&draft.origin, &problem);
        }
        groups.push(group);
    }
    groups
}

fn read_group(layers: &mut Layers, draft: &Draft) -> Option<GroupRule> {
    let (queue, name) = (draft.demand(layers, &table::QUEUE), draft.demand(layers, &table::NAME));
    let from = draft.read(layers, &table::FROM);
    let lease = draft.read(layers, &table::LEASE);
    let attempts = draft.read(layers, &table::ATTEMPTS);
    let retry_wait = draft.read(layers, &table::RETRY_WAIT);
    let retry_wait_max = draft.read(layers, &table::RETRY_WAIT_MAX);
    if retry_wait > retry_wait_max {
        let origin = draft.look_up(&table::RETRY_WAIT.entry).origin;
        layers.note(&origin, "group.retry_wait is longer than group.retry_wait_max");
    }
    Some(GroupRule { queue: queue?, name: name?, from, lease, attempts, retry_wait, retry_wait_max })
}

#[cfg(test)]
mod tests;
