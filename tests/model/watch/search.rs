//! A breadth-first search that leaves nothing out: every state that can be reached is looked at, and the first
//! fault found has the shortest trace there is.
//!
//! States are kept as 64-bit fingerprints with the fingerprint they were first reached from, as model checkers do
//! (among a million states, two share one with a chance of 3 in 100 million). The trace is found by walking again.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// What can be searched.
pub(crate) trait Searched: Clone {
    /// A step.
    type Step: Copy + fmt::Debug;
    /// Every step possible here.
    fn steps(&self) -> Vec<Self::Step>;
    /// What comes of one.
    fn after(&self, step: Self::Step) -> Self;
    /// The same number for states that differ only in what doesn't matter.
    fn fingerprint(&self) -> u64;
    /// What is wrong here, if anything. `steps` are the possible ones.
    fn fault(&self, steps: &[Self::Step]) -> Option<&'static str>;
    /// One line for a trace.
    fn line(&self) -> String;
}

/// What a search found.
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) steps: usize,
    pub(crate) fault: Option<(&'static str, Vec<String>)>,
}

/// All states, or the nearest fault.
pub(crate) fn search<S: Searched>(start: &S) -> Found {
    let mut from: HashMap<u64, u64, BuildHasherDefault<Same>> = HashMap::default();
    let mut waiting = VecDeque::from([(start.clone(), start.fingerprint())]);
    from.insert(start.fingerprint(), 0);
    let mut walked = 0;
    while let Some((state, print)) = waiting.pop_front() {
        let steps = state.steps();
        if let Some(fault) = state.fault(&steps) {
            let trace = trace(start, print, &from);
            return Found { states: from.len(), steps: walked, fault: Some((fault, trace)) };
        }
        for step in steps {
            let next = state.after(step);
            let to = next.fingerprint();
            walked += 1;
            if let std::collections::hash_map::Entry::Vacant(new) = from.entry(to) {
                new.insert(print);
                waiting.push_back((next, to));
            }
        }
    }
    Found { states: from.len(), steps: walked, fault: None }
}

fn trace<S: Searched>(
    start: &S,
    end: u64,
    from: &HashMap<u64, u64, BuildHasherDefault<Same>>,
) -> Vec<String> {
    let mut path = vec![end];
    while let Some(before) = path.last().and_then(|print| from.get(print)).filter(|before| **before != 0) {
        path.push(*before);
    }
    let mut state = start.clone();
    let mut lines = vec![];
    for print in path.iter().rev().skip(1) {
        let (step, next) = state
            .steps()
            .into_iter()
            .map(|step| (step, state.after(step)))
            .find(|(_, next)| next.fingerprint() == *print)
            .expect("it was walked once");
        lines.push(format!("{:<28} {}", format!("{step:?}"), next.line()));
        state = next;
    }
    lines
}

/// A quick hash; the standard one takes half of the time of a search in a dev build.
#[derive(Default)]
pub(crate) struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 29;
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }
    fn write_u16(&mut self, n: u16) {
        self.add(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }
    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }
}

/// A fingerprint is its own hash.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}
