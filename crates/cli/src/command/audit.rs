//! `overdue audit`: proves that the books balance (PROTOCOL.md section 7).
//!
//! For each partition: what stands there is read, everything is counted in pages, and what stands there is read
//! again. Only if nothing moved in between is the difference of the two sides worth something.

mod account;
mod count;
mod row;

use overdue_protocol::{QueueInfo, QueueName};
use overdue_store::Store;

use self::account::{Account, State};
use super::place::{self, Place};
use crate::args::check::Audit;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;
use crate::stage::progress::Progress;

/// Runs the command.
pub(crate) async fn run(args: &Audit, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let mut progress = Progress::of_a_command(output);
    let (store, queues) = match &args.queue {
        Some(queue) => {
            let place = Place::open(settings, queue).await?;
            (place.store, vec![(place.queue, place.info)])
        }
        None => {
            let store = place::connect(settings).await?;
            let queues = store.queues().await?.into_iter().collect();
            (store, queues)
        }
    };
    if queues.is_empty() {
        output.say("no queues: nothing to audit")?;
    }
    let mut differ = Vec::new();
    for (queue, info) in queues {
        let account = account(&store, &queue, &info, &mut progress).await?;
        progress.end();
        output.object(&account)?;
        say(&account, output)?;
        if account.state == State::Differs {
            differ.push(queue.to_string());
        }
    }
    if differ.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "the books don't balance: {}; what the numbers mean stands in docs/PROTOCOL.md, section 7",
        differ.join(", ")
    );
    Err(Failure::new(Exit::CheckFailed, problem))
}

/// The account of a queue: every partition counted, up to 5 times each.
pub(crate) async fn account(
    store: &Store,
    queue: &QueueName,
    info: &QueueInfo,
    progress: &mut Progress,
) -> Result<Account, Failure> {
    let mut account = Account::new(queue, info.partitions);
    for partition in place::partitions(store, queue, info) {
        account.add(count::settled(store, &partition, progress).await?);
    }
    Ok(account)
}

fn say(account: &Account, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return Ok(());
    }
    output.say(format!("queue {}: {}", account.queue, account.verdict()))?;
    output.table().page(std::slice::from_ref(&account.timers))?;
    output.table().page(&account.groups)?;
    for finding in account.findings() {
        output.say(finding)?;
    }
    output.say("")
}
