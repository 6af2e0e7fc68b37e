//! `[[consumer]]`: what `overdue consume` runs when the command line names nothing. What one does not say is as
//! `[consume]` says.
//!
//! What a consumer can say is defined once, in [`table`].

pub(crate) mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use overdue_protocol::call::From;
use overdue_protocol::{GroupName, QueueName};

use super::Consume;
use super::layers::Layers;
use super::list::List;
use super::list::draft::Draft;

/// The most consumers in one process.
const MOST: usize = 64;

/// `[[consumer]]`
pub(crate) static LIST: List = List {
    name: "consumer",
    keys: table::KEYS,
    about: "A consumer: overdue consume without --queue runs all of them in one process. Below is one with all it \
            can say; only queue, group and one of webhook, exec, pipe and print it must. What it does not say is as \
            [consume] says.",
    named_by: &["queue", "group"],
    section: Some("consume"),
};

/// One consumer, valid. Units and bounds stand in [`table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerRule {
    pub(crate) queue: QueueName,
    /// At most one consumer of this queue has it.
    pub(crate) group: GroupName,
    pub(crate) from: From,
    pub(crate) handler: HandlerRule,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) attempts: u32,
    /// `None` = an attempt may run for ever.
    pub(crate) limit: Option<Duration>,
    pub(crate) retry_wait: Duration,
    /// At least `retry_wait`.
    pub(crate) retry_wait_max: Duration,
}

/// What handles the timeouts of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandlerRule {
    /// POST to `url`, signed with what `secret_file` holds.
    Webhook {
        url: String,
        secret_file: Option<PathBuf>,
    },
    /// One command for each timeout. Not empty.
    Exec(Vec<OsString>),
    /// One long-lived command for each slot. Not empty.
    Pipe(Vec<OsString>),
    Print,
}

/// The consumers, checked. What is wrong with them is noted in `layers`.
pub(crate) fn read(layers: &mut Layers, consume: &Consume) -> Vec<ConsumerRule> {
    let drafts = layers.drafts(&LIST);
    if let Some(draft) = drafts.get(MOST) {
        layers.note(&draft.origin, &format!("more than {MOST} consumers: run a second process"));
        return vec![];
    }
    let mut consumers: Vec<ConsumerRule> = vec![];
    for draft in &drafts {
        let Some(consumer) = read_consumer(layers, draft, consume) else { continue };
        if consumers.iter().any(|first| (&first.queue, &first.group) == (&consumer.queue, &consumer.group)) {
            let (queue, group) = (&consumer.queue, &consumer.group);
            let problem = format!(
                "group {group} of queue {queue} has a consumer already: raise its concurrency, or name another group"
            );
            layers.note(&draft.origin, &problem);
        }
        consumers.push(consumer);
    }
    consumers
}

fn read_consumer(layers: &mut Layers, draft: &Draft, consume: &Consume) -> Option<ConsumerRule> {
    let (queue, group) = (draft.demand(layers, &table::QUEUE), draft.demand(layers, &table::GROUP));
    let from = draft.read(layers, &table::FROM);
    let handler = read_handler(layers, draft);
    let concurrency = draft.read_or(layers, &table::CONCURRENCY, consume.concurrency);
    let lease = draft.read_or(layers, &table::LEASE, consume.lease);
    let attempts = draft.read_or(layers, &table::ATTEMPTS, consume.attempts);
    let limit = handler.as_ref().map_or(consume.limit, |handler| consume.limit_of(handler));
    let limit = draft.read_or(layers, &table::LIMIT, limit);
    let retry_wait = draft.read_or(layers, &table::RETRY_WAIT, consume.retry_wait);
    let retry_wait_max = draft.read_or(layers, &table::RETRY_WAIT_MAX, consume.retry_wait_max);
    let waits = [&table::RETRY_WAIT.entry, &table::RETRY_WAIT_MAX.entry];
    // If [consume] is wrong in this, that is noted there.
    if retry_wait > retry_wait_max
        && let Some(said) = waits.into_iter().find_map(|entry| draft.said(entry))
    {
        let (wait, most) =
            (humantime::format_duration(retry_wait), humantime::format_duration(retry_wait_max));
        let problem = format!("consumer.retry_wait, {wait}, is longer than consumer.retry_wait_max, {most}");
        layers.note(&said.origin, &problem);
    }
    Some(ConsumerRule {
        queue: queue?,
        group: group?,
        from,
        handler: handler?,
        concurrency,
        lease,
        attempts,
        limit,
        retry_wait,
        retry_wait_max,
    })
}

/// Exactly one of the four, and the secret only beside a webhook.
fn read_handler(layers: &mut Layers, draft: &Draft) -> Option<HandlerRule> {
    let url = draft.read(layers, &table::WEBHOOK);
    let secret_file = draft.read(layers, &table::WEBHOOK_SECRET_FILE);
    let exec = draft.read(layers, &table::EXEC);
    let pipe = draft.read(layers, &table::PIPE);
    let print = draft.read(layers, &table::PRINT);
    if let (Some(_), None) = (&secret_file, draft.said(&table::WEBHOOK.entry)) {
        let origin = draft.look_up(&table::WEBHOOK_SECRET_FILE.entry).origin;
        layers.note(&origin, "consumer.webhook_secret_file is set, but consumer.webhook is not");
    }
    let handlers = [
        url.map(|url| HandlerRule::Webhook { url, secret_file }),
        exec.map(HandlerRule::Exec),
        pipe.map(HandlerRule::Pipe),
        print.then_some(HandlerRule::Print),
    ];
    let said = [&table::WEBHOOK.entry, &table::EXEC.entry, &table::PIPE.entry]
        .map(|entry| draft.said(entry).is_some());
    let said = said.into_iter().chain([print]).filter(|said| *said).count();
    if said != 1 {
        let problem = if said == 0 { "a consumer without a handler" } else { "a consumer with two handlers" };
        layers.note(&draft.origin, &format!("{problem}: write one of webhook, exec, pipe and print"));
        return None;
    }
    // One that is there and wrong has been noted.
    handlers.into_iter().flatten().next()
}

#[cfg(test)]
mod tests;
