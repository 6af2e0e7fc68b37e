//! Those who watch the play: the journals of the consumers, and a follower of the stream.

use std::thread;
use std::time::Duration;

use overdue_protocol::Entry;
use overdue_protocol::entry::EntryId;
use overdue_store::Reader;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ledger::Fired;
use super::score::Event;
use crate::exit::Failure;
use crate::stage::program::Program;
use crate::stage::{Stage, journal};

/// How long one look at the stream waits; the follower notices the end only between two looks.
const BLOCK: Duration = Duration::from_millis(200);

/// Passes on what a consumer writes, until it ends.
pub(super) fn read_journal(consumer: usize, program: &mut Program, events: mpsc::Sender<Event>) {
    let pipe = program.take_stdout();
    // A blocked read of a pipe needs a thread of its own.
    thread::spawn(move || {
        for line in journal::read(pipe) {
            if events.blocking_send(Event::Journal { consumer, line }).is_err() {
                return;
            }
        }
    });
}

/// Passes on every entry that enters the stream, until `stop`. It belongs to no group and changes nothing.
pub(super) async fn follow(
    stage: &Stage,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let reader = Reader::open(stage.store.settings(), "demo").await?;
    let stream = stage.partition.stream();
    tokio::spawn(async move {
        let mut after = EntryId::ZERO;
        while !stop.is_cancelled() {
            let Ok(entries) = reader.follow(&stream, &after, 1_000, BLOCK).await else {
                sleep(BLOCK).await;
                continue;
            };
            for raw in entries {
                after = raw.id;
                let Ok(entry) = Entry::decode(&raw) else { continue };
                if entry.group.is_some() {
                    // A retry of an attempt that died or was given back: no second firing.
                    continue;
                }
                let Entry { id, generation, source, due_ms, fired_ms, proof, .. } = entry;
                let id = String::from_utf8_lossy(id.as_bytes()).into_owned();
                let fired = Fired { generation, source, due_ms, fired_ms, proof };
                if events.send(Event::Entry { id, fired }).await.is_err() {
                    return;
                }
            }
        }
        reader.close().await;
    });
    Ok(())
}
