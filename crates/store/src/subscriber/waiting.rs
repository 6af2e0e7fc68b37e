//! What must be told but found no room yet, in order.

use std::collections::VecDeque;

use crate::{Node, Signal};

/// So many words of one kind wait at most (of one node, or of all together): then a further one and the one before
/// it, its opposite, are both left out. What is left still begins and ends as it was.
const WORDS: usize = 3;

/// Words and losses that wait for room. Bounded: some seven for each node.
#[derive(Default)]
pub(super) struct Waiting(VecDeque<Signal>);

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the next one only counts.
    pub(super) fn is_loss_next(&self) -> bool {
        matches!(self.0.front(), Some(Signal::Lost { .. }))
    }

    pub(super) fn pop(&mut self) -> Option<Signal> {
        self.0.pop_front()
    }

    /// Adds `Up`, `Down`, `Opened` or `Closed`, each always the opposite of the one before it.
    pub(super) fn say(&mut self, word: Signal) {
        let alike = |other: &Signal| match (other, &word) {
            (Signal::Up | Signal::Down, Signal::Up | Signal::Down) => true,
            (Signal::Opened(a) | Signal::Closed(a), Signal::Opened(b) | Signal::Closed(b)) => a == b,
            _ => false,
        };
        if self.0.iter().filter(|other| alike(other)).count() < WORDS {
            self.0.push_back(word);
            return;
        }
        let Some(opposite) = self.0.iter().rposition(alike).and_then(|at| self.0.remove(at)) else { return };
        if let Signal::Opened(node) | Signal::Closed(node) = opposite {
            self.merge_losses(&node);
        }
    }

    /// Adds to what was lost of a node since its last word.
    pub(super) fn lose(&mut self, of: &Node, more: u64) {
        let last = self.0.iter_mut().rev().find(|signal| node(signal) == Some(of));
        match last {
            Some(Signal::Lost { count, .. }) => *count += more,
            _ => self.0.push_back(Signal::Lost { node: of.clone(), count: more }),
        }
    }

    /// Losses of a node with none of its words between them are one.
    fn merge_losses(&mut self, of: &Node) {
        let mut before: Option<usize> = None;
        let mut at = 0;
        while at < self.0.len() {
            match (&self.0[at], before) {
                (Signal::Lost { node, count }, Some(first)) if node == of => {
                    let more = *count;
                    self.0.remove(at);
                    if let Signal::Lost { count, .. } = &mut self.0[first] {
                        *count += more;
                    }
                    continue;
                }
                (Signal::Lost { node, .. }, None) if node == of => before = Some(at),
                (signal, _) if node(signal) == Some(of) => before = None,
                _ => {}
            }
            at += 1;
        }
    }
}

/// Of whom a word or a loss is.
fn node(signal: &Signal) -> Option<&Node> {
    match signal {
        Signal::Opened(node) | Signal::Closed(node) | Signal::Lost { node, .. } => Some(node),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a() -> Node {
        Node::of_cluster("a")
    }

    fn b() -> Node {
        Node::of_cluster("b")
    }

    fn lost(node: Node, count: u64) -> Signal {
        Signal::Lost { node, count }
    }

    #[test]
    fn losses_stand_before_the_next_word_of_their_node() {
        let mut waiting = Waiting::default();
        waiting.lose(&a(), 2);
        waiting.lose(&b(), 1);
        waiting.lose(&a(), 3);
        waiting.say(Signal::Closed(a()));
        waiting.lose(&b(), 1);
        waiting.say(Signal::Opened(a()));
        waiting.lose(&a(), 7);
        let all: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
        let wanted = [lost(a(), 5), lost(b(), 2), Signal::Closed(a()), Signal::Opened(a()), lost(a(), 7)];
        assert_eq!(all, wanted);
    }

    #[test]
    fn a_holder_that_never_listens_costs_little_and_no_count_is_wrong() {
        let mut waiting = Waiting::default();
        for _ in 0..1_000 {
            for (word, words) in [(Signal::Closed(a()), Signal::Down), (Signal::Opened(a()), Signal::Up)] {
                waiting.lose(&a(), 1);
                waiting.lose(&b(), 1);
                waiting.say(word);
                waiting.say(words);
            }
        }
        assert!(waiting.0.len() <= 14, "{}", waiting.0.len());
        let all: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
        let count = |of: Node| -> u64 {
            all.iter()
                .map(|s| {
                    if let Signal::Lost { node, count } = s
                        && *node == of
                    {
                        *count
                    } else {
                        0
                    }
                })
                .sum()
        };
        assert_eq!((count(a()), count(b())), (2_000, 2_000));
        let words: Vec<_> = all.iter().filter(|s| matches!(s, Signal::Up | Signal::Down)).collect();
        assert_eq!(words, [&Signal::Down, &Signal::Up]);
        let words: Vec<_> =
            all.iter().filter(|s| matches!(s, Signal::Opened(_) | Signal::Closed(_))).collect();
        assert_eq!(words, [&Signal::Closed(a()), &Signal::Opened(a())]);
    }
}
