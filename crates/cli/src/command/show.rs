//! `overdue show`: shows one timer.

use overdue_protocol::entry::idempotency_key;
use overdue_protocol::{Generation, Record, TimerId};
use serde::Serialize;

use super::place::Place;
use crate::args::timers::Show;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::output::text::{self, IdText, PayloadText};
use crate::settings::Settings;

#[derive(Serialize)]
struct Timer {
    queue: String,
    partition: u32,
    #[serde(flatten)]
    id: IdText,
    due: String,
    due_ms: u64,
    #[serde(flatten)]
    armed: Option<Armed>,
}

/// What the record says.
#[derive(Serialize)]
struct Armed {
    generation: Generation,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(flatten)]
    payload: PayloadText,
    #[serde(skip)]
    shown: String,
    bytes: usize,
}

/// Runs the command.
pub(crate) async fn run(args: &Show, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = Place::open(settings, &args.queue).await?;
    let partition = place.partition_of(&args.id);
    let Some((due_ms, record)) = place.store.record(&partition, &args.id).await? else {
        return Err(not_armed(&place, &args.id));
    };
    let timer = Timer {
        queue: args.queue.to_string(),
        partition: partition.number(),
        id: IdText::new(args.id.as_bytes()),
        due: text::time(due_ms),
        due_ms,
        armed: record.map(|record| armed(&place, &args.id, &record)),
    };
    output.object(&timer)?;
    if !output.is_json() {
        say(&timer, &args.id, place.store.time_ms().await?, output)?;
    }
    Ok(())
}

fn armed(place: &Place, id: &TimerId, record: &Record) -> Armed {
    let extra = |name: &str| record.extras.iter().find(|(extra, _)| extra == name);
    let shown = |name| extra(name).map(|(_, value)| String::from_utf8_lossy(value).into_owned());
    Armed {
        generation: record.generation,
        key: idempotency_key(&place.queue, id, record.generation),
        encoding: shown("enc"),
        trace: shown("trace"),
        payload: PayloadText::new(&record.payload),
        shown: text::payload(&record.payload, usize::MAX),
        bytes: record.payload.len(),
    }
}

fn say(timer: &Timer, id: &TimerId, now_ms: u64, output: &mut Output) -> Result<(), Failure> {
    let overdue = if timer.due_ms <= now_ms { "; due, and not fired yet: is a relay running?" } else { "" };
    output.say(format!("id          {}", text::printable(id.as_bytes())))?;
    output.say(format!("queue       {}, partition {}", timer.queue, timer.partition))?;
    output.say(format!("due         {} ({}{overdue})", timer.due, text::distance(timer.due_ms, now_ms)))?;
    let Some(armed) = &timer.armed else {
        return output.say("record      missing or not readable: it fires all the same, with a flaw");
    };
    output.say(format!("generation  {}", armed.generation))?;
    output.say(format!("key         {}", armed.key))?;
    if let Some(trace) = &armed.trace {
        output.say(format!("trace       {}", text::printable(trace.as_bytes())))?;
    }
    let encoding = armed.encoding.as_deref().unwrap_or("raw");
    output.say(format!("payload     {} bytes, {}", armed.bytes, text::printable(encoding.as_bytes())))?;
    if armed.bytes > 0 { output.say(&armed.shown) } else { Ok(()) }
}

fn not_armed(place: &Place, id: &TimerId) -> Failure {
    let (queue, id) = (&place.queue, text::printable(id.as_bytes()));
    let problem = format!(
        "no timer {id} is armed in {queue}: it may have fired, or been cancelled; what fired and is not handled \
         stands in `overdue tail {queue} --from oldest` and `overdue dead list {queue}`"
    );
    Failure::new(Exit::NotThere, problem)
}
