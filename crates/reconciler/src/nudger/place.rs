//! Where a turn stands among the keys that are due, and what it need not read again.
//!
//! What a turn leaves in place (keys that wait, keys of other relays' rules) stays at the front of the index, and every
//! page would begin with it. So a page begins behind what the turn has left; and where that is much, the turns that
//! follow begin behind it too, for ten times as long as it took to read.

use std::time::Duration;

use tokio::time::Instant;

/// Less than this is read again by each turn: it is one page.
const MUCH: u32 = 256;
/// The longest time for which something that is due may be passed over.
const PASS_OVER: Duration = Duration::from_secs(1);

/// The place of one turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    began: Instant,
    /// It began at the very front.
    whole: bool,
    /// Due, and left in place.
    left: u32,
    /// Due in a moment.
    ahead: u32,
    /// The first deadline of these, unix milliseconds.
    first_ahead_ms: Option<u64>,
}

/// The place of turn after turn.
#[derive(Debug)]
pub(super) struct Place {
    turn: Option<Turn>,
    pass_over: u32,
    until: Instant,
}

impl Place {
    pub(super) fn new(now: Instant) -> Self {
        Self { turn: None, pass_over: 0, until: now }
    }

    /// How many members the next page passes over. Begins a turn when none is under way.
    pub(super) fn offset(&mut self, now: Instant) -> u32 {
        let pass_over = if now < self.until { self.pass_over } else { 0 };
        let new = Turn { began: now, whole: pass_over == 0, left: pass_over, ahead: 0, first_ahead_ms: None };
        let turn = self.turn.get_or_insert(new);
        turn.left + turn.ahead
    }

    /// Whether the turn under way began at the very front.
    pub(super) fn is_whole(&self) -> bool {
        self.turn.is_some_and(|turn| turn.whole)
    }

    /// A page was read: so many of its members stay, `left` that are due and `ahead` that will be; the first of these at
    /// `first_ahead_ms`. True when some that were left because they would be due are due by now: the next page goes back
    /// to them.
    pub(super) fn advance(
        &mut self,
        now_ms: u64,
        left: u32,
        ahead: u32,
        first_ahead_ms: Option<u64>,
    ) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        turn.left += left;
        turn.ahead += ahead;
        turn.first_ahead_ms = turn.first_ahead_ms.or(first_ahead_ms);
        let back = turn.first_ahead_ms.is_some_and(|due_ms| due_ms < now_ms);
        if back {
            (turn.ahead, turn.first_ahead_ms) = (0, None);
        }
        back
    }

    /// The turn has read all; answers the first deadline that it met ahead, unix milliseconds.
    pub(super) fn finish(&mut self, now: Instant) -> Option<u64> {
        let turn = self.turn.take()?;
        if turn.whole {
            self.pass_over = if turn.left >= MUCH { turn.left } else { 0 };
            self.until = now + (now.duration_since(turn.began) * 10).min(PASS_OVER);
        }
        turn.first_ahead_ms
    }

    /// So many that had been left in place are not there any more.
    pub(super) fn less(&mut self, count: u32) {
        self.pass_over = self.pass_over.saturating_sub(count);
        if let Some(turn) = &mut self.turn {
            turn.left = turn.left.saturating_sub(count);
        }
    }

    /// The next page is the first of a turn.
    pub(super) fn is_between_turns(&self) -> bool {
        self.turn.is_none()
    }

    /// A turn that reads all is next: it failed, or the time of something that was left in place has come.
    pub(super) fn reset(&mut self) {
        self.turn = None;
        self.pass_over = 0;
    }

    /// When all must be read again, if a turn would pass over something now.
    pub(super) fn until(&self) -> Option<Instant> {
        (self.pass_over > 0).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_behind_what_the_turn_has_left_in_place() {
        let now = Instant::now();
        let mut place = Place::new(now);
        assert_eq!(place.offset(now), 0);
        assert!(!place.advance(100, 6, 0, None));
        assert_eq!(place.offset(now), 6);
        assert!(!place.advance(100, 0, 50, Some(140)));
        assert_eq!(place.offset(now), 56);
        assert_eq!(place.finish(now), Some(140));
        assert_eq!(place.offset(now), 0, "little is read again");
    }

    #[test]
    fn what_falls_due_while_others_are_captured_is_gone_back_to() {
        let now = Instant::now();
        let mut place = Place::new(now);
        place.offset(now);
        place.advance(100, 2, 254, Some(140));
        place.offset(now);
        assert!(!place.advance(140, 0, 256, Some(145)), "due when its millisecond is over");
        assert!(place.advance(141, 0, 256, Some(150)));
        assert_eq!(place.offset(now), 2, "only what was due and left");
        place.less(1);
        assert_eq!(place.offset(now), 1, "one has been settled since");
    }

    #[test]
    fn much_that_stays_is_passed_over_for_a_while() {
        let now = Instant::now();
        let later = |ms| now + Duration::from_millis(ms);
        let mut place = Place::new(now);
        place.offset(now);
        place.advance(100, 10_000, 0, None);
        place.finish(later(20));
        assert_eq!((place.offset(later(21)), place.is_whole()), (10_000, false));
        assert_eq!(place.until(), Some(later(220)));
        place.finish(later(22));
        assert_eq!((place.offset(later(219)), place.until()), (10_000, Some(later(220))), "no longer for it");
        place.finish(later(219));
        assert_eq!((place.offset(later(220)), place.is_whole()), (0, true));
        place.advance(100, 10_000, 0, None);
        place.finish(later(9_000));
        assert_eq!(place.until(), Some(later(10_000)), "a second at most");
        place.reset();
        assert_eq!((place.offset(later(9_001)), place.is_whole()), (0, true));
    }
}
