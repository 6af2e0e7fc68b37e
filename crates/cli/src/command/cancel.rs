//! `overdue cancel`: disarms timers.

use overdue::{Armed, Client, Raw};
use overdue_protocol::{Generation, TimerId};
use serde::Serialize;

use super::place::{self, ROLE};
use crate::args::timers::Cancel;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::output::text::{self, IdText};
use crate::settings::Settings;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    id: IdText,
    cancelled: bool,
    #[serde(flatten)]
    was: Option<Was>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What was armed.
#[derive(Serialize)]
struct Was {
    generation: Generation,
    due: String,
    due_ms: u64,
}

/// Runs the command.
pub(crate) async fn run(args: &Cancel, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let client = Client::with(settings.redis.clone()).role(ROLE).connect().await?;
    let Some(queue) = client.find_queue::<Raw>(args.queue.as_str()).await? else {
        return Err(place::no_queue(client.store(), &args.queue).await);
    };
    let (mut absent, mut failed, mut first_error) = (0, 0, None);
    for (id, outcome) in args.ids.iter().zip(queue.cancel_many(&args.ids).await) {
        report(id, &outcome, output)?;
        match outcome {
            Ok(was) => absent += usize::from(was.is_none()),
            Err(error) => {
                failed += 1;
                first_error.get_or_insert(error);
            }
        }
    }
    let all = args.ids.len();
    match first_error {
        Some(error) if all == 1 => Err(error.into()),
        Some(error) => {
            Err(Failure::from(error).with(format!("{failed} of {all} timers could not be cancelled")))
        }
        None if absent > 0 => {
            let problem = format!(
                "{absent} of {all} timers were not armed: they may have fired or been cancelled before"
            );
            Err(Failure::new(Exit::NotThere, problem))
        }
        None => Ok(()),
    }
}

fn report(
    id: &TimerId,
    outcome: &overdue::Result<Option<Armed>>,
    output: &mut Output,
) -> Result<(), Failure> {
    let shown = text::printable(id.as_bytes());
    let was = outcome.as_ref().ok().copied().flatten();
    let error = outcome.as_ref().err().map(ToString::to_string);
    let line = match (was, &error) {
        (Some(was), _) => format!("cancelled {shown}, which was due {}", text::time(was.due_ms)),
        (None, None) => format!("{shown} was not armed"),
        (None, Some(_)) => format!("{shown} could not be cancelled"),
    };
    output.say(line)?;
    let was =
        was.map(|was| Was { generation: was.generation, due: text::time(was.due_ms), due_ms: was.due_ms });
    output.object(&Answer { id: IdText::new(id.as_bytes()), cancelled: was.is_some(), was, error })
}
