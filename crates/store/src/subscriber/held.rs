//! How much memory the signals in the channel take: keys may be long.

use std::collections::VecDeque;

use crate::Signal;

/// So many bytes of names, keys and messages are held for the holder at most.
pub(super) const BYTES: usize = 64 * 1024 * 1024;

/// The sizes of what is in the channel, the newest last.
#[derive(Default)]
pub(super) struct Held {
    sizes: VecDeque<usize>,
    sum: usize,
}

impl Held {
    /// One more was put into the channel.
    pub(super) fn note(&mut self, size: usize) {
        self.sizes.push_back(size);
        self.sum += size;
    }

    /// How many bytes the last `queued` have: the others were taken.
    pub(super) fn bytes(&mut self, queued: usize) -> usize {
        while self.sizes.len() > queued {
            self.sum -= self.sizes.pop_front().unwrap_or(0);
        }
        self.sum
    }
}

/// How many bytes a signal has.
pub(super) fn size(signal: &Signal) -> usize {
    match signal {
        Signal::Event { name, key, .. } => name.len() + key.len(),
        Signal::Message { channel, payload } => channel.len() + payload.len(),
        _ => 0,
    }
}
