//! From the library's channels into ours. What finds no room in either is counted, never passed over.

use bytes::Bytes;
use fred::clients::Client;
use fred::interfaces::EventInterface;
use fred::types::{KeyspaceEvent, Message};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use tokio::sync::mpsc;

use crate::Signal;

/// How many are fetched at a time before others get their turn.
const TURN: usize = 256;

/// Carries what is heard into the bounded channel.
pub(super) struct Pump {
    events: broadcast::Receiver<KeyspaceEvent>,
    messages: broadcast::Receiver<Message>,
    lost: u64,
}

impl Pump {
    /// Listens from now on: to be made before the client connects.
    pub(super) fn of(client: &Client) -> Self {
        Self { events: client.keyspace_event_rx(), messages: client.message_rx(), lost: 0 }
    }

    pub(super) async fn run(mut self, signals: mpsc::Sender<Signal>) {
        loop {
            tokio::select! {
                room = signals.reserve(), if self.lost > 0 => match room {
                    Ok(room) => room.send(Signal::Lost(std::mem::take(&mut self.lost))),
                    Err(_) => return,
                },
                event = self.events.recv() => {
                    let Some(event) = self.heard(event) else { return };
                    self.put(&signals, event.map(of_event));
                }
                message = self.messages.recv() => {
                    let Some(message) = self.heard(message) else { return };
                    self.put(&signals, message.map(of_message));
                }
            }
            for _ in 0..TURN {
                match self.events.try_recv() {
                    Ok(event) => self.put(&signals, Some(of_event(event))),
                    Err(TryRecvError::Lagged(n)) => self.lost += n,
                    Err(_) => break,
                }
            }
        }
    }

    /// What was received; the inner `None` is a lag, which is counted; the outer one is the end.
    fn heard<T>(&mut self, received: std::result::Result<T, RecvError>) -> Option<Option<T>> {
        match received {
            Ok(item) => Some(Some(item)),
            Err(RecvError::Lagged(n)) => {
                self.lost += n;
                Some(None)
            }
            Err(RecvError::Closed) => None,
        }
    }

    fn put(&mut self, signals: &mpsc::Sender<Signal>, signal: Option<Signal>) {
        let Some(signal) = signal else { return };
        // In order: what was lost before is told before.
        if self.lost > 0 {
            match signals.try_reserve() {
                Ok(room) => room.send(Signal::Lost(std::mem::take(&mut self.lost))),
                Err(_) => {
                    self.lost += 1;
                    return;
                }
            }
        }
        if signals.try_send(signal).is_err() {
            self.lost += 1;
        }
    }
}

fn of_event(event: KeyspaceEvent) -> Signal {
    let key = event.key.into_bytes();
    if event.operation == "expired" {
        return Signal::Expired { db: event.db, key };
    }
    let channel = Bytes::from(format!("__keyevent@{}__:{}", event.db, event.operation));
    Signal::Message { channel, payload: key }
}

fn of_message(message: Message) -> Signal {
    let payload = message.value.into_bytes().unwrap_or_default();
    Signal::Message { channel: message.channel.into_inner(), payload }
}
