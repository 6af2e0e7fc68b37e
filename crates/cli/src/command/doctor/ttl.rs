//! Looks for a TTL on keys of ours: they are for good, and Redis would delete them.

use std::collections::BTreeMap;

use overdue_protocol::{QueueInfo, QueueName};
use overdue_store::{ErrorKind, Store};

use super::finding::Finding;
use crate::command::place;
use crate::exit::Failure;
use crate::output::text;

/// A finding for each key that will go. None where the user may not ask for it.
pub(super) async fn look(
    store: &Store,
    queues: &BTreeMap<QueueName, QueueInfo>,
) -> Result<Vec<Finding>, Failure> {
    let mut findings = vec![];
    let mut keys = vec![store.keyspace().queues()];
    for partition in queues.iter().flat_map(|(queue, info)| place::partitions(store, queue, info)) {
        keys.extend([
            partition.index(),
            partition.timers(),
            partition.stream(),
            partition.dead(),
            partition.retry_index(),
            partition.retry_timers(),
            partition.tally(),
            partition.watched(),
            partition.last(),
            partition.looked(),
            partition.fired(),
        ]);
    }
    for key in keys {
        match store.ttl_ms(&key).await {
            Ok(None) => {}
            Ok(Some(ttl)) => {
                let name = text::printable(&key);
                let finding =
                    format!("{name} has a TTL: Redis deletes it, with all it holds, in {}", text::span(ttl));
                let advice = format!("PERSIST {name}, and find who sets it: nothing of ours does");
                findings.push(Finding::bad("ttl", finding, advice));
            }
            Err(error) if error.kind() == ErrorKind::Refused => return Ok(findings),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(findings)
}
