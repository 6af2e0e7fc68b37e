//! Who is up: makes one `Up` and `Down` out of what each node's link says.

use std::collections::BTreeMap;

use tokio::sync::mpsc;

use crate::Signal;

/// What a link says of its node.
#[derive(Debug)]
pub(super) enum Word {
    /// Every pattern is confirmed.
    Up(String),
    /// Nothing is heard from it.
    Down(String),
    /// It is no longer of interest.
    Gone(String),
}

/// Starts the board; it ends when the last speaker is gone.
pub(super) fn start(signals: mpsc::Sender<Signal>) -> mpsc::Sender<Word> {
    let (words, mut heard) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut board = Board::default();
        while let Some(word) = heard.recv().await {
            // Waits for room: these are never dropped.
            if let Some(signal) = board.note(word)
                && signals.send(signal).await.is_err()
            {
                return;
            }
        }
    });
    words
}

#[derive(Default)]
struct Board {
    nodes: BTreeMap<String, bool>,
    up: bool,
}

impl Board {
    fn note(&mut self, word: Word) -> Option<Signal> {
        match word {
            Word::Up(node) => self.nodes.insert(node, true),
            Word::Down(node) => self.nodes.insert(node, false),
            Word::Gone(node) => self.nodes.remove(&node),
        };
        let up = !self.nodes.is_empty() && self.nodes.values().all(|up| *up);
        let changed = up != self.up;
        self.up = up;
        changed.then_some(if up { Signal::Up } else { Signal::Down })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_is_said_when_all_are_and_down_with_the_first() {
        let mut board = Board::default();
        let (a, b) = (|| "a".to_owned(), || "b".to_owned());
        assert_eq!(board.note(Word::Down(b())), None);
        assert_eq!(board.note(Word::Up(a())), None);
        assert_eq!(board.note(Word::Up(b())), Some(Signal::Up));
        assert_eq!(board.note(Word::Down(a())), Some(Signal::Down));
        assert_eq!(board.note(Word::Down(b())), None);
        assert_eq!(board.note(Word::Up(b())), None);
        assert_eq!(board.note(Word::Gone(a())), Some(Signal::Up));
        assert_eq!(board.note(Word::Gone(b())), Some(Signal::Down));
    }
}
