//! `overdue pause` and `overdue resume`: whether consumers hand out a queue.

use overdue_protocol::QueueName;
use serde::Serialize;

use super::place;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::Settings;

#[derive(Serialize)]
struct Paused<'a> {
    queue: &'a str,
    paused: bool,
}

/// Sets whether `queue` is paused. Exit code 1 when there is no such queue.
pub(crate) async fn run(
    queue: &QueueName,
    paused: bool,
    settings: &Settings,
    output: &mut Output,
) -> Result<(), Failure> {
    let store = place::connect(settings).await?;
    if !store.set_paused(queue, paused).await? {
        return Err(place::no_queue(&store, queue).await);
    }
    output.object(&Paused { queue: queue.as_str(), paused })?;
    match paused {
        true => {
            output.say(format!("paused {queue}: timers fire on, consumers take nothing new within a second"))
        }
        false => output.say(format!("resumed {queue}")),
    }
}
