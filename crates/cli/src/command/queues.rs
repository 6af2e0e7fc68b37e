//! `overdue queues`: lists, creates or changes queues.

use overdue_protocol::{QueueInfo, QueueName};
use overdue_store::Store;
use serde::Serialize;

use super::place;
use crate::args::queues::{Create, Queues, Set};
use crate::exit::{Exit, Failure};
use crate::output::{Output, Row, text};
use crate::settings::Settings;

#[derive(Serialize)]
struct Queue {
    queue: String,
    partitions: u32,
    armed: u64,
    overdue: u64,
    retries: u64,
    stream: u64,
    dead: u64,
    /// How many finished timeouts each partition remembers.
    history: u32,
    paused: bool,
    created: String,
}

impl Row for Queue {
    const COLUMNS: &'static [&'static str] = &[
        "QUEUE",
        "PARTITIONS",
        "ARMED",
        "OVERDUE",
        "RETRIES",
        "STREAM",
        "DEAD",
        "HISTORY",
        "PAUSED",
        "CREATED",
    ];

    fn cells(&self) -> Vec<String> {
        let counts = [self.armed, self.overdue, self.retries, self.stream, self.dead];
        let mut cells = vec![self.queue.clone(), self.partitions.to_string()];
        cells.extend(counts.iter().map(u64::to_string));
        cells.push(self.history.to_string());
        cells.extend([if self.paused { "yes" } else { "no" }.to_owned(), self.created.clone()]);
        cells
    }
}

#[derive(Serialize)]
struct Created<'a> {
    queue: &'a str,
    partitions: u32,
    history: u32,
    created: bool,
}

#[derive(Serialize)]
struct Changed<'a> {
    queue: &'a str,
    history: u32,
    /// What it was.
    before: u32,
}

/// Runs the command.
pub(crate) async fn run(args: &Queues, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let store = place::connect(settings).await?;
    match args {
        Queues::List => list(&store, output).await,
        Queues::Create(args) => create(args, &store, output).await,
        Queues::Set(args) => set(args, &store, output).await,
    }
}

async fn list(store: &Store, output: &mut Output) -> Result<(), Failure> {
    let now_ms = store.time_ms().await?;
    let mut rows = Vec::new();
    for (queue, info) in store.queues().await? {
        rows.push(row(store, &queue, &info, now_ms).await?);
    }
    if rows.is_empty() {
        output.say("no queues: `overdue schedule` creates the one it names")?;
    }
    output.table().page(&rows)
}

async fn row(store: &Store, queue: &QueueName, info: &QueueInfo, now_ms: u64) -> Result<Queue, Failure> {
    let mut row = Queue {
        queue: queue.to_string(),
        partitions: info.partitions,
        armed: 0,
        overdue: 0,
        retries: 0,
        stream: 0,
        dead: 0,
        history: info.history,
        paused: info.paused,
        created: text::time(info.created_ms),
    };
    for partition in place::partitions(store, queue, info) {
        row.armed += store.depth(&partition).await?;
        row.overdue += store.overdue_count(&partition, now_ms).await?;
        row.retries += store.retry_depth(&partition).await?;
        row.stream += store.length(&partition.stream()).await?;
        row.dead += store.length(&partition.dead()).await?;
    }
    Ok(row)
}

async fn create(args: &Create, store: &Store, output: &mut Output) -> Result<(), Failure> {
    let wanted = args.partitions.unwrap_or_else(|| store.default_partitions());
    let (info, created) = store.create_queue_with(&args.queue, wanted, args.history.unwrap_or(0)).await?;
    let (queue, partitions, history) = (&args.queue, info.partitions, info.history);
    if args.partitions.is_some_and(|wanted| wanted != partitions) {
        let problem =
            format!("queue {queue} has {} and keeps them for ever: use another name", count(partitions));
        return Err(Failure::new(Exit::Usage, problem));
    }
    if let Some(wanted) = args.history.filter(|wanted| *wanted != history) {
        let problem = format!(
            "queue {queue} is there and has a history of {history}: change it with \
             `overdue queues set {queue} --history {wanted}`"
        );
        return Err(Failure::new(Exit::Usage, problem));
    }
    output.object(&Created { queue: queue.as_str(), partitions, history, created })?;
    let with = match history {
        0 => count(partitions),
        n => format!("{} and a history of {n}", count(partitions)),
    };
    match created {
        true => output.say(format!("created queue {queue} with {with}")),
        false => output.say(format!("queue {queue} is there already, with {with}")),
    }
}

async fn set(args: &Set, store: &Store, output: &mut Output) -> Result<(), Failure> {
    let (queue, history) = (&args.queue, args.history);
    let Some(before) = store.set_history(queue, history).await? else {
        return Err(place::no_queue(store, queue).await);
    };
    output.object(&Changed { queue: queue.as_str(), history, before })?;
    output.say(match (history, before) {
        (0, 0) => format!("queue {queue} keeps no history, as before"),
        (0, n) => format!("queue {queue} keeps no history any more; it was {n}, and is deleted"),
        (n, before) => format!(
            "each partition of {queue} remembers its last {n} finished timeouts within 10 s; it was {before}"
        ),
    })
}

fn count(partitions: u32) -> String {
    if partitions == 1 { "1 partition".to_owned() } else { format!("{partitions} partitions") }
}
