//! A consumer for tests that kill it: the library, with a handler that its arguments choose.
//!
//! `hands URL QUEUE GROUP WORK [name=value ...]`, where WORK is one of
//! - `done`: nothing but done; `sleep:MS`: so much later; `unreachable` and `halt`: always that;
//! - `abort:ID`: the process dies of this timer, all others are done 5 ms later;
//! - `effects`: `[INCRBY a 1, HSET b <id> done]`, its keys beside the partition.
//!
//! It writes a line for each run, the id, to `notes=FILE`; and `up` to stdout when it works.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use overdue_consumer::{Consumer, Effects, HandlerError, Outcome, Raw, Timeout};
use overdue_store::Settings;
use overdue_telemetry::{Health, logs};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), HandlerError> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [url, queue, group, work, options @ ..] = args.as_slice() else {
        return Err("hands URL QUEUE GROUP WORK [name=value ...]".into());
    };
    let option = |name: &str| options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str, default: u64| option(name).map_or(Ok(default), str::parse::<u64>);
    logs::init(logs::Format::Text, "info")?;

    let health = Health::default();
    let (retry, lease) = (number("retry_ms", 20)?, number("lease_ms", 1000)?);
    let settings = Settings { command_deadline: Duration::from_secs(1), ..Settings::new(url) };
    let consumer = Consumer::<Raw>::builder(settings, queue, group)
        .concurrency(usize::try_from(number("concurrency", 64)?)?)
        .lease(Duration::from_millis(lease))
        .attempts(u32::try_from(number("attempts", 1_000_000)?)?)
        .policy(move |_| Duration::from_millis(retry))
        .health(health.clone());
    let notes =
        option("notes").map(|file| OpenOptions::new().append(true).create(true).open(file)).transpose()?;
    let (work, notes) = (Work::parse(work)?, notes.map(Mutex::new));
    let handler = move |t: Timeout<Raw>| {
        if let Some(mut file) = notes.as_ref().and_then(|notes| notes.lock().ok()) {
            // One short write to a file opened for appending: lines of many processes don't mix.
            let _ = file.write_all(format!("{}\n", t.id()).as_bytes());
        }
        let work = work.clone();
        async move { work.run(&t).await }
    };

    let mut term = signal(SignalKind::terminate())?;
    let up = async {
        health.started().await;
        std::io::stdout().write_all(b"up\n")?;
        std::future::pending::<Result<(), HandlerError>>().await
    };
    let stop = async move {
        term.recv().await;
    };
    tokio::select! {
        report = consumer.run(handler, stop) => drop(report?),
        error = up => error?,
    }
    Ok(())
}

#[derive(Clone)]
enum Work {
    Sleep(Duration),
    Abort(Vec<u8>),
    Effects,
    Unreachable,
    Halt,
}

impl Work {
    fn parse(text: &str) -> Result<Self, HandlerError> {
        Ok(match text.split_once(':').unwrap_or((text, "")) {
            ("done", _) => Self::Sleep(Duration::ZERO),
            ("sleep", ms) => Self::Sleep(Duration::from_millis(ms.parse()?)),
            ("abort", id) => Self::Abort(id.as_bytes().to_vec()),
            ("effects", _) => Self::Effects,
            ("unreachable", _) => Self::Unreachable,
            ("halt", _) => Self::Halt,
            _ => return Err(format!("{text:?} is no work").into()),
        })
    }

    async fn run(&self, t: &Timeout<Raw>) -> Outcome {
        match self {
            Self::Sleep(time) => tokio::time::sleep(*time).await,
            Self::Abort(id) if t.id().as_bytes() == id => std::process::abort(),
            Self::Abort(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Self::Effects => {
                let id = t.id().as_bytes();
                return Outcome::DoneWith(Effects::new().incr_by(t.key("a"), 1).hset(t.key("b"), id, "done"));
            }
            Self::Unreachable => return Outcome::unreachable("connection refused"),
            Self::Halt => return Outcome::halt("410 Gone"),
        }
        Outcome::Done
    }
}
