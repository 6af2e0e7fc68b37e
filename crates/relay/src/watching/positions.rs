//! The names of expiries: where each stands among the notifications of its feed.

use std::collections::HashMap;

use bytes::Bytes;

/// So much room for keys is kept from one marker to the next.
const ROOM: usize = 4096;

/// The positions of one feed. Every listener that hears the same computes the same.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// The last marker; none after a gap.
    base: Option<u64>,
    /// How often each key ended since.
    ends: HashMap<Bytes, u64>,
}

impl Positions {
    /// A marker was met.
    pub(super) fn mark(&mut self, position: u64) {
        self.base = Some(position);
        self.ends.clear();
        self.ends.shrink_to(ROOM);
    }

    /// The key has expired, or was evicted: the name of that. `None` in a gap, where nobody can tell.
    pub(super) fn name(&mut self, key: &Bytes) -> Option<u64> {
        let base = self.base?;
        let ends = self.ends.entry(key.clone()).or_default();
        *ends += 1;
        Some(base + *ends)
    }

    /// Something was missed: nothing can be named before the next marker.
    pub(super) fn forget(&mut self) {
        self.base = None;
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(positions: &mut Positions, keys: &[&'static str]) -> Vec<Option<u64>> {
        keys.iter().map(|key| positions.name(&Bytes::from(*key))).collect()
    }

    #[test]
    fn a_key_that_ends_twice_between_two_markers_has_two_names() {
        let mut positions = Positions::default();
        positions.mark(1_000);
        assert_eq!(names(&mut positions, &["a", "b", "a"]), [Some(1_001), Some(1_001), Some(1_002)]);
        positions.mark(2_000);
        assert_eq!(names(&mut positions, &["a"]), [Some(2_001)]);
    }

    #[test]
    fn nothing_is_named_before_the_first_marker_and_in_a_gap() {
        let mut positions = Positions::default();
        assert_eq!(names(&mut positions, &["a"]), [None]);
        positions.mark(1_000);
        assert_eq!(names(&mut positions, &["a"]), [Some(1_001)]);
        positions.forget();
        assert_eq!(names(&mut positions, &["a"]), [None]);
        positions.mark(2_000);
        assert_eq!(names(&mut positions, &["a"]), [Some(2_001)]);
    }

    #[test]
    fn two_listeners_that_join_at_different_times_agree_after_the_next_marker() {
        let (mut early, mut late) = (Positions::default(), Positions::default());
        early.mark(1_000);
        names(&mut early, &["a", "a"]);
        assert_eq!(names(&mut late, &["a"]), [None]);
        for positions in [&mut early, &mut late] {
            positions.mark(3_000);
            assert_eq!(names(positions, &["a", "a"]), [Some(3_001), Some(3_002)]);
        }
    }

    #[test]
    fn a_clock_that_was_set_back_still_names_by_the_last_marker() {
        let mut positions = Positions::default();
        positions.mark(5_000);
        positions.mark(4_000);
        assert_eq!(names(&mut positions, &["a"]), [Some(4_001)]);
    }
}
