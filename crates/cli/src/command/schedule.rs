//! `overdue schedule`: arms a timer.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use overdue::{Change, Client, Mode, Raw, Scheduled, When};
use overdue_protocol::entry::idempotency_key;
use overdue_protocol::{Generation, QueueName, TimerId, TraceParent};
use serde::Serialize;

use super::place::ROLE;
use crate::args::schedule::{self, Schedule};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::output::text::{self, IdText};
use crate::settings::Settings;

#[derive(Serialize)]
struct Answer {
    queue: String,
    #[serde(flatten)]
    id: IdText,
    change: &'static str,
    /// Whether this call armed it.
    armed: bool,
    created_queue: bool,
    /// What is armed now, whoever did it.
    #[serde(flatten)]
    standing: Option<Standing>,
    /// The generation of the one before, when it was due and has fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    fired_generation: Option<Generation>,
}

#[derive(Serialize)]
struct Standing {
    generation: Generation,
    key: String,
    due: String,
    due_ms: u64,
}

/// Runs the command.
pub(crate) async fn run(args: &Schedule, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let payload = read_payload(&args.payload, settings.client.max_payload).await?;
    let client = Client::with(settings.redis.clone()).role(ROLE).max_payload(settings.client.max_payload);
    let client = client.connect().await?;
    let queue = client.queue::<Raw>(args.queue.as_str()).await?;
    if queue.created() {
        output.say(format!("created queue {}", args.queue))?;
    }
    let mut timer = queue.timer(&args.id).at(when(&args.when)).payload(&payload).mode(mode(args.mode));
    if args.keyed {
        timer = timer.keyed();
    }
    if let Some(parent) = args.traceparent.clone().or_else(inherited) {
        timer = timer.traceparent(parent.as_str());
    }
    let scheduled = timer.schedule().await?;
    output.object(&answer(&args.queue, &args.id, scheduled, queue.created()))?;
    let now_ms = client.store().time_ms().await.unwrap_or_else(|_| local_ms());
    let line = said(&args.queue, &args.id, scheduled, now_ms);
    if scheduled.change.is_armed() { output.say(line) } else { Err(Failure::new(Exit::NotThere, line)) }
}

/// The trace of whoever runs this program. As a header that is none of W3C's, a variable that is none is left aside.
fn inherited() -> Option<TraceParent> {
    TraceParent::parse(&std::env::var("TRACEPARENT").ok()?).ok()
}

fn when(when: &schedule::When) -> When {
    match (when.within, when.at) {
        (Some(within), _) => When::After(within),
        (None, Some(due)) => When::UnixMs(due.unix_ms()),
        (None, None) => unreachable!("clap asks for one of the two"),
    }
}

fn mode(mode: schedule::Mode) -> Mode {
    match mode {
        _ if mode.if_absent => Mode::IfAbsent,
        _ if mode.if_present => Mode::IfPresent,
        _ if mode.only_later => Mode::OnlyLater,
        _ if mode.only_earlier => Mode::OnlyEarlier,
        _ => Mode::Upsert,
    }
}

/// Reads the payload; never more of a file than may be sent.
async fn read_payload(payload: &schedule::Payload, most: usize) -> Result<Raw, Failure> {
    let Some(path) = &payload.file else {
        return Ok(payload.text.as_ref().map_or_else(Raw::default, Raw::text));
    };
    let stdin = path == Path::new("-");
    let name = if stdin { "stdin".to_owned() } else { path.display().to_string() };
    let path = path.clone();
    let read = tokio::task::spawn_blocking(move || match stdin {
        true => read_bounded(io::stdin(), most),
        false => read_bounded(File::open(path)?, most),
    });
    let unreadable =
        |error| Failure::new(Exit::Usage, format!("cannot read the payload from {name}: {error}"));
    let bytes = read.await.map_err(io::Error::other).and_then(|read| read).map_err(unreadable)?;
    if bytes.len() > most {
        let problem = format!(
            "the payload in {name} has more than {most} bytes (client.max_payload): keep it elsewhere and send its name"
        );
        return Err(Failure::new(Exit::Usage, problem));
    }
    Ok(Raw::new(bytes))
}

fn read_bounded(from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn answer(queue: &QueueName, id: &TimerId, scheduled: Scheduled, created_queue: bool) -> Answer {
    let Scheduled { generation, due_ms, change } = scheduled;
    let fired_generation = if let Change::FiredOld(generation) = change { Some(generation) } else { None };
    let standing = || Standing {
        generation,
        key: idempotency_key(queue, id, generation),
        due: text::time(due_ms),
        due_ms,
    };
    Answer {
        queue: queue.to_string(),
        id: IdText::new(id.as_bytes()),
        change: change.as_str(),
        armed: change.is_armed(),
        created_queue,
        standing: (generation > 0).then(standing),
        fired_generation,
    }
}

/// What became of it, on one line.
fn said(queue: &QueueName, id: &TimerId, scheduled: Scheduled, now_ms: u64) -> String {
    let Scheduled { generation, due_ms, change } = scheduled;
    let key = idempotency_key(queue, id, generation);
    let (id, due) = (text::printable(id.as_bytes()), text::time(due_ms));
    let distance = text::distance(due_ms, now_ms);
    let standing = format!("due {due} ({distance}), generation {generation}, key {key}");
    match change {
        Change::Armed => format!("armed {id}: {standing}"),
        Change::Replaced => format!("replaced {id}: {standing}"),
        Change::FiredOld(old) => {
            format!("armed {id}: {standing}; the one before, generation {old}, was due and has fired")
        }
        Change::Confirmed => format!("armed {id}: {standing}; the answer was lost, Redis confirmed it"),
        Change::Present => format!("nothing changed: {id} is armed already, {standing}"),
        Change::Kept => format!("nothing changed: {id} stays as it is, {standing}"),
        Change::Due => format!("nothing changed: {id} is due already and will fire, {standing}"),
        Change::Absent => format!("nothing changed: no timer {id} is armed in {queue}"),
    }
}

/// Only for words, when Redis does not say its time any more.
fn local_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
