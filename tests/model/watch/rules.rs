//! The rules as switches. [`Rules::spec`] is what the scripts and the relay do; every other position of a switch is a
//! rule that somebody thought of first, and that a test in `caught` shows to fail.

/// How an expiry is known again when it is told twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Identity {
    /// Its position names it.
    Position,
    /// The key fired a moment ago. How long a moment is, is anybody's guess.
    Window,
    /// The due in the index names it: without one that is reached, it has fired.
    Due,
    /// One number for each key: what is not above it has fired.
    Watermark,
}

/// Which of two looks at a key is the later one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// The one with the higher position.
    Position,
    /// The one that finds the due as it was before its touch; the other looks again.
    CompareAndSet,
    /// The one that comes last.
    Arrival,
}

/// What is owed after a firing without proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Debt {
    None,
    /// One position for each key: a second firing without proof takes the place of the first.
    Newest,
    /// The position of each; an event pays the oldest that is not older than itself.
    Each,
}

/// When a look that finds nothing takes the due out of the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Removal {
    /// The last event of the batch says that the key went away.
    Last,
    /// One of its events says so.
    Any,
    /// One of its events says so, and the last that does is younger than the look that set the due.
    Placed,
    /// Whatever the events say.
    Unasked,
}

/// What a position is taken for that is more than a second ahead of TIME: the clock was set back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ahead {
    /// For what it is.
    Later,
    /// For none, if it is one that the index keeps.
    None,
    /// For one before all that are not ahead, wherever it stands.
    Earlier,
}

/// What becomes of a key that is gone, nobody knows why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnUnproven {
    Fire,
    Drop,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) on_unproven: OnUnproven,
    pub(crate) identity: Identity,
    pub(crate) order: Order,
    pub(crate) debt: Debt,
    pub(crate) removal: Removal,
    pub(crate) ahead: Ahead,
    /// Nothing is unproven before `met` has come to its touch.
    pub(crate) barrier: bool,
    /// `base` is forgotten after a gap.
    pub(crate) base_forgotten: bool,
    /// Events and markers come on one connection, in one order.
    pub(crate) one_order: bool,
    /// What is not above the horizon fires only for a due that was reached when the key expired. Else: that is now.
    pub(crate) old_fires_for_old: bool,
    /// What was gone at a position not above the horizon is nudged again.
    pub(crate) old_is_nudged_again: bool,
}

impl Rules {
    pub(crate) const fn spec(on_unproven: OnUnproven) -> Self {
        Self {
            on_unproven,
            identity: Identity::Position,
            order: Order::Position,
            debt: Debt::Each,
            removal: Removal::Any,
            ahead: Ahead::None,
            barrier: true,
            base_forgotten: true,
            one_order: true,
            old_fires_for_old: true,
            old_is_nudged_again: true,
        }
    }
}
