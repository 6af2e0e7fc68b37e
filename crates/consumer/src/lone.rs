//! The place of a handler among those that run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const ALONE: u8 = 0;
const SEATED: u8 = 1;
const GONE: u8 = 2;

/// Whose the permit of a running handler is.
pub(crate) enum Seat {
    /// Its own.
    Own,
    /// It runs alone: whoever keeps the others away holds all permits, and may give it one later.
    Lone(Lone),
}

/// A handler that runs alone.
#[derive(Clone, Default)]
pub(crate) struct Lone(Arc<AtomicU8>);

impl Lone {
    /// Gives it a permit, which it will bring back; false when it has ended, and the permit is still the giver's.
    pub(crate) fn take_seat(&self) -> bool {
        self.0.compare_exchange(ALONE, SEATED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Seat {
    /// The handler has ended; answers whether there is a permit to bring back.
    pub(crate) fn leave(&self) -> bool {
        match self {
            Self::Own => true,
            Self::Lone(lone) => lone.0.swap(GONE, Ordering::AcqRel) == SEATED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_comes_back_exactly_when_one_was_taken() {
        assert!(Seat::Own.leave());
        let (early, late) = (Lone::default(), Lone::default());
        assert!(early.take_seat() && !early.take_seat());
        assert!(Seat::Lone(early).leave());
        assert!(!Seat::Lone(late.clone()).leave());
        assert!(!late.take_seat());
    }
}
