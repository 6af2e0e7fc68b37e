//! What may happen in a history, and how often.

use overdue_protocol::call::Mode;
use proptest::prelude::*;

/// The groups of a history, by number.
pub(crate) const GROUPS: [&str; 2] = ["billing", "mailing"];
/// The consumers of each group, by number.
pub(crate) const CONSUMERS: [&str; 2] = ["ann", "bob"];
/// The timers of a history, by number. The first ones are awkward.
pub(crate) const NAMES: [&[u8]; 5] = [b"a/b/7", b"\xff\r\n{}", b"c", b"d", b"e"];

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Since long; the number orders them.
    Past(u8),
    /// In a few milliseconds; the history waits until it has passed.
    Near,
    /// In hours; the number orders them.
    Far(u8),
}

/// One timer to arm.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) name: usize,
    pub(crate) mode: Mode,
    pub(crate) class: Class,
    pub(crate) keyed: bool,
}

/// Which generation to cancel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    Any,
    Armed,
    Another,
}

/// What becomes of delivered timeouts. Entries are picked by number among those of the group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Complete,
    Retry(Class),
    Release(Class),
    Bury,
    Apply(Fit),
}

/// How far the effects of a timeout can be applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fit {
    Whole,
    /// The second can't be, and that is known beforehand.
    Refused,
    /// The second fails although all was checked.
    Failing,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Schedule(Vec<Arm>),
    Cancel(Vec<(usize, Which)>),
    Fire(Vec<usize>),
    Sweep(u32),
    SweepRetries(u32),
    Join(usize, bool),
    /// XGROUP DESTROY by somebody.
    Destroy(usize),
    Drop(usize),
    Read(usize, usize, u32),
    Claim(usize, usize),
    Finish(usize, usize, Outcome, Vec<u8>),
    /// Of a plain group: at most so many entries, dead at this attempt. An ordinary one becomes plain.
    Reclaim(usize, u32, u32),
    /// XACK by a plain consumer.
    Acknowledge(usize, Vec<u8>),
    Replay(Vec<u8>),
    DiscardRetries(Vec<u8>),
    DiscardEntries(usize, Vec<u8>),
    Trim,
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![4 => (0..3u8).prop_map(Class::Past), 1 => Just(Class::Near), 3 => (0..3u8).prop_map(Class::Far)]
}

fn arm() -> impl Strategy<Value = Arm> {
    use Mode::{IfAbsent, IfPresent, OnlyEarlier, OnlyLater, Upsert};
    let mode =
        prop::sample::select(vec![Upsert, Upsert, Upsert, IfAbsent, IfPresent, OnlyLater, OnlyEarlier]);
    (0..NAMES.len(), mode, class(), any::<bool>()).prop_map(|(name, mode, class, keyed)| Arm {
        name,
        mode,
        class,
        keyed,
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(Outcome::Complete),
        2 => class().prop_map(Outcome::Retry),
        1 => class().prop_map(Outcome::Release),
        2 => Just(Outcome::Bury),
        2 => prop::sample::select(vec![Fit::Whole, Fit::Whole, Fit::Refused, Fit::Failing]).prop_map(Outcome::Apply),
    ]
}

/// One step, the frequent ones more often.
fn op() -> impl Strategy<Value = Op> {
    let group = 0..GROUPS.len();
    // Mostly the same: else nobody would hold what it finishes.
    let consumer = prop::sample::select(vec![0, 0, 0, 1]);
    let which = prop::sample::select(vec![Which::Any, Which::Armed, Which::Another]);
    let picks = || prop::collection::vec(any::<u8>(), 1..4);
    prop_oneof![
        6 => prop::collection::vec(arm(), 1..5).prop_map(Op::Schedule),
        2 => prop::collection::vec((0..NAMES.len(), which), 1..4).prop_map(Op::Cancel),
        2 => prop::collection::vec(0..NAMES.len(), 1..4).prop_map(Op::Fire),
        4 => (1..4u32).prop_map(Op::Sweep),
        3 => (1..4u32).prop_map(Op::SweepRetries),
        4 => (group.clone(), any::<bool>()).prop_map(|(group, new)| Op::Join(group, new)),
        2 => prop_oneof![2 => group.clone().prop_map(Op::Destroy), 1 => group.clone().prop_map(Op::Drop)],
        5 => (group.clone(), consumer.clone(), 1..4u32).prop_map(|(g, c, n)| Op::Read(g, c, n)),
        1 => (group.clone(), consumer.clone()).prop_map(|(g, c)| Op::Claim(g, c)),
        6 => (group.clone(), consumer, outcome(), picks()).prop_map(|(g, c, o, p)| Op::Finish(g, c, o, p)),
        1 => (group.clone(), 1..4u32, 1..4u32).prop_map(|(g, n, attempts)| Op::Reclaim(g, n, attempts)),
        2 => (group.clone(), picks()).prop_map(|(g, p)| Op::Acknowledge(g, p)),
        2 => picks().prop_map(Op::Replay),
        1 => picks().prop_map(Op::DiscardRetries),
        1 => (group, picks()).prop_map(|(g, p)| Op::DiscardEntries(g, p)),
        1 => Just(Op::Trim),
    ]
}

/// A history. It begins with a group that has something to do, for little happens before.
pub(crate) fn history(steps: usize) -> impl Strategy<Value = Vec<Op>> {
    let past = |name| Arm { name, mode: Mode::Upsert, class: Class::Past(0), keyed: false };
    let begin = vec![
        Op::Join(0, false),
        Op::Schedule(vec![past(0), past(1), past(2)]),
        Op::Sweep(2),
        Op::Read(0, 0, 3),
    ];
    // In some the first group is a plain one from the start.
    let plain = [vec![begin[0].clone(), Op::Reclaim(0, 1, 1)], begin[1..].to_vec()].concat();
    let begin = prop::sample::select(vec![vec![], begin.clone(), begin, plain]);
    (begin, prop::collection::vec(op(), 1..steps)).prop_map(|(begin, rest)| [begin, rest].concat())
}
