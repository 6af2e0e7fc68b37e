//! The one channel to the holder. What finds no room is counted, never passed over; words of the subscription wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use super::held::{BYTES, Held, size};
use super::waiting::Waiting;
use crate::{Node, Signal};

/// How soon a loss is told that waits for bytes, not for room in the channel: nobody says when these are taken.
const AGAIN: Duration = Duration::from_millis(10);

/// Where the links put what they hear.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Shared>);

struct Shared {
    signals: mpsc::Sender<Signal>,
    state: Mutex<State>,
    behind: Notify,
}

#[derive(Default)]
struct State {
    /// Every part that there should be.
    parts: BTreeMap<Part, One>,
    /// How many voices there have been.
    voices: u64,
    up: bool,
    waiting: Waiting,
    held: Held,
}

/// What one link is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// All that is wanted of this node.
    Node(Node),
    /// The messages of a cluster, which reach every node. It tells of no node: only `Up` and `Down` heed it.
    Messages,
}

impl Part {
    fn word(&self, open: bool) -> Option<Signal> {
        match self {
            Self::Node(node) if open => Some(Signal::Opened(node.clone())),
            Self::Node(node) => Some(Signal::Closed(node.clone())),
            Self::Messages => None,
        }
    }
}

/// What is known of a part.
#[derive(Default)]
struct One {
    open: bool,
    /// Who speaks for it.
    voice: u64,
}

impl Outlet {
    pub(super) fn new(signals: mpsc::Sender<Signal>) -> Self {
        Self(Arc::new(Shared { signals, state: Mutex::default(), behind: Notify::new() }))
    }

    /// These parts there are to be and no others; those that are new count as missing.
    pub(super) fn expect<'a>(&self, parts: impl IntoIterator<Item = &'a Part>) {
        let wanted: BTreeSet<&Part> = parts.into_iter().collect();
        self.change(|state| {
            let State { parts, waiting, .. } = state;
            parts.retain(|part, one| {
                let stays = wanted.contains(part);
                if one.open && !stays {
                    part.word(false).into_iter().for_each(|word| waiting.say(word));
                }
                stays
            });
            for part in wanted {
                parts.entry(part.clone()).or_default();
            }
        });
    }

    /// Gives the word to a new link, to this node: no other is heard for that part from now on.
    pub(super) fn voice(&self, part: &Part, node: &Node) -> Voice {
        let mut state = self.lock();
        state.voices += 1;
        let number = state.voices;
        if let Some(one) = state.parts.get_mut(part) {
            one.voice = number;
        }
        Voice { outlet: self.clone(), part: part.clone(), node: node.clone(), number }
    }

    /// Carries what waits into the channel as soon as there is room; ends when the holder has gone.
    pub(super) async fn carry(&self) {
        loop {
            self.0.behind.notified().await;
            loop {
                let (done, heavy) = {
                    let mut state = self.lock();
                    (state.waiting.is_empty(), state.is_heavy(&self.0.signals))
                };
                if done {
                    break;
                }
                if heavy {
                    sleep(AGAIN).await;
                    continue;
                }
                let Ok(room) = self.0.signals.reserve().await else { return };
                let mut state = self.lock();
                if let Some(signal) = state.waiting.pop() {
                    state.held.note(0);
                    room.send(signal);
                }
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let up = !state.parts.is_empty() && state.parts.values().all(|one| one.open);
        if up != state.up {
            state.up = up;
            state.waiting.say(if up { Signal::Up } else { Signal::Down });
        }
        state.flush(&self.0.signals);
        self.settle(&state);
    }

    fn settle(&self, state: &State) {
        if !state.waiting.is_empty() {
            self.0.behind.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one link says of its node. A link that was ended may say one thing more; it is not heard.
#[derive(Clone)]
pub(super) struct Voice {
    outlet: Outlet,
    part: Part,
    node: Node,
    number: u64,
}

impl Voice {
    /// To whom its link is.
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Everything that the node says is heard from here on.
    pub(super) fn opened(&self) {
        self.turn(true);
    }

    /// Nothing is heard from it.
    pub(super) fn closed(&self) {
        self.turn(false);
    }

    /// The same for good.
    pub(super) fn end(&self) {
        self.closed();
        self.outlet.voice(&self.part, &self.node);
    }

    fn turn(&self, open: bool) {
        self.outlet.change(|state| {
            let State { parts, waiting, .. } = state;
            let Some(one) = parts.get_mut(&self.part).filter(|one| one.voice == self.number) else { return };
            if one.open != open {
                one.open = open;
                self.part.word(open).into_iter().for_each(|word| waiting.say(word));
            }
        });
    }

    /// Tells what was heard, in order; the list is empty then.
    pub(super) fn tell(&self, heard: &mut Vec<Signal>) {
        let signals = &self.outlet.0.signals;
        let mut state = self.outlet.lock();
        if state.parts.get(&self.part).is_none_or(|one| one.voice != self.number) {
            heard.clear();
        }
        for signal in heard.drain(..) {
            state.flush(signals);
            if !state.waiting.is_empty() || !state.send(signals, signal) {
                state.waiting.lose(&self.node, 1);
            }
        }
        self.outlet.settle(&state);
    }

    /// Whether the holder is behind, so that it should have the next turn.
    pub(super) fn is_pressed(&self) -> bool {
        let signals = &self.outlet.0.signals;
        signals.capacity() < signals.max_capacity() / 2
    }
}

impl State {
    /// Sends what waits while there is room.
    fn flush(&mut self, signals: &mpsc::Sender<Signal>) {
        while !self.waiting.is_empty()
            && !self.is_heavy(signals)
            && let Ok(room) = signals.try_reserve()
            && let Some(signal) = self.waiting.pop()
        {
            self.held.note(0);
            room.send(signal);
        }
    }

    /// Whether a loss has to wait, or there would be one for each event that does not fit.
    fn is_heavy(&mut self, signals: &mpsc::Sender<Signal>) -> bool {
        let queued = signals.max_capacity() - signals.capacity();
        self.waiting.is_loss_next() && self.held.bytes(queued) > BYTES / 2
    }

    /// Whether there was room. Without a holder there always is.
    fn send(&mut self, signals: &mpsc::Sender<Signal>, signal: Signal) -> bool {
        let size = size(&signal);
        let queued = signals.max_capacity() - signals.capacity();
        // One is always taken, however long.
        if self.held.bytes(queued) + size > BYTES && queued > 0 {
            return false;
        }
        match signals.try_send(signal) {
            Ok(()) => self.held.note(size),
            Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests;
