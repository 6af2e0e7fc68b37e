//! What came from a read, a claim or a recovery is taken in hand: handlers are started, the rest is passed on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use overdue_protocol::{Entry, RawEntry};
use overdue_telemetry::label::HandledResult;

use crate::hand::State;
use crate::lone::{Lone, Seat};
use crate::station::{Act, Start, Station, Verdict};

/// What an entry is to us.
enum Case {
    /// A timeout to handle.
    Ours(Box<Entry>),
    /// Nothing for the handler.
    Aside { act: Act, result: HandledResult, ours: bool, bytes: usize },
}

impl Station {
    /// Takes entries in hand; answers how many handlers were started.
    ///
    /// `asked` is when they were asked for: the lease began no earlier. Once the stop has begun, what would have been
    /// handled is released.
    pub(crate) fn take(self: &Arc<Self>, page: Vec<RawEntry>, asked: Instant) -> usize {
        self.admit(page, asked, || Seat::Own)
    }

    /// Takes one entry in hand that runs alone.
    pub(crate) fn take_alone(self: &Arc<Self>, raw: RawEntry, asked: Instant, lone: &Lone) {
        self.admit(vec![raw], asked, || Seat::Lone(lone.clone()));
    }

    fn admit(self: &Arc<Self>, page: Vec<RawEntry>, asked: Instant, seat: impl Fn() -> Seat) -> usize {
        if page.is_empty() {
            return 0;
        }
        let stopping = self.crew.stopping();
        let cases: Vec<_> = page.into_iter().map(|raw| (raw.id, self.sort(&raw, stopping))).collect();
        let states = cases.iter().map(|(id, case)| match case {
            Case::Ours(_) => (*id, State::Running),
            Case::Aside { .. } => (*id, State::Deciding),
        });
        let tickets = self.hands.admit(states, asked + self.crew.options.lease);

        // Not under the lock: a task that can't be started drops its hand at once, and that locks.
        let mut started = Vec::with_capacity(cases.len());
        for ((_, case), ticket) in cases.into_iter().zip(tickets) {
            let Some(ticket) = ticket else { continue };
            match case {
                Case::Ours(entry) => {
                    let start = Start { station: self.clone(), ticket, seat: seat() };
                    started.push((ticket, self.work.start(start, entry)));
                }
                Case::Aside { act, result, ours, bytes } => {
                    self.say(Verdict { ticket, act, result, ours, bytes, repeated: false });
                }
            }
        }
        let count = started.len();
        self.hands.attach(started.into_iter());
        count
    }

    /// Makes an entry a dead letter: too many died of it, so it is not handled any more.
    pub(crate) fn bury(&self, raw: &RawEntry, asked: Instant, detail: &str) {
        let until = asked + self.crew.options.lease;
        for ticket in self.hands.admit([(raw.id, State::Deciding)].into_iter(), until).into_iter().flatten() {
            let (act, result) = (Act::Bury("deaths", detail.to_owned()), HandledResult::Deaths);
            self.say(Verdict { ticket, act, result, ours: false, bytes: raw.size(), repeated: false });
        }
    }

    fn sort(&self, raw: &RawEntry, stopping: bool) -> Case {
        let bytes = raw.size();
        let aside = |act, result, ours| Case::Aside { act, result, ours, bytes };
        match Entry::decode(raw) {
            Err(why) => {
                self.crew.warn("malformed", format_args!("entry {} is a dead letter: {why}", raw.id));
                aside(Act::Bury("malformed", why.to_string()), HandledResult::Malformed, false)
            }
            Ok(entry) => match &entry.group {
                Some(group) if *group != self.crew.group => aside(Act::Passed, HandledResult::Done, false),
                group if stopping => {
                    aside(Act::Release(Duration::ZERO), HandledResult::Released, group.is_some())
                }
                _ => Case::Ours(Box::new(entry)),
            },
        }
    }
}
