//! How far a SCAN is, and how fast it may go.

use std::time::Duration;

use tokio::time::Instant;

/// The most keys in one step.
const STEP: u32 = 512;
/// Steps in a second, at least: slow walks take small steps.
const STEPS: u32 = 20;
/// The walk that fell behind this far does not catch up.
const BEHIND: Duration = Duration::from_millis(200);

/// The pace of one SCAN: so many keys a second, on average.
pub(super) struct Pace {
    keys_per_s: u32,
    next: Instant,
}

impl Pace {
    pub(super) fn new(keys_per_s: u32) -> Self {
        Self { keys_per_s: keys_per_s.max(1), next: Instant::now() }
    }

    /// How many keys to walk over in the next step.
    pub(super) fn step(&self) -> u32 {
        (self.keys_per_s / STEPS).clamp(1, STEP)
    }

    /// When the next step may begin.
    pub(super) fn next(&mut self) -> Instant {
        let span = Duration::from_secs_f64(f64::from(self.step()) / f64::from(self.keys_per_s));
        let now = Instant::now();
        self.next = (self.next + span).max(now.checked_sub(BEHIND).unwrap_or(now));
        self.next
    }
}

/// What one SCAN has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Walk {
    /// Keys in the database at its start.
    pub(super) size: u64,
    /// Rules to walk for, and those walked for in full.
    pub(super) rules: usize,
    pub(super) rules_done: usize,
    /// Keys walked over for this rule, about.
    pub(super) seen: u64,
    /// Keys that matched, and deadlines that were found.
    pub(super) looked: u64,
    pub(super) taken: u64,
}

impl Walk {
    /// 0 to 1.
    pub(super) fn progress(&self) -> f64 {
        let share = self.seen as f64 / self.size.max(self.seen).max(1) as f64;
        // The last step of a rule is not known beforehand.
        let done = self.rules_done as f64 + share.min(0.99);
        (done / self.rules.max(1) as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_rises_over_all_rules_to_its_end() {
        let mut walk = Walk { size: 1_000, rules: 2, ..Walk::default() };
        assert_eq!(walk.progress(), 0.0);
        walk.seen = 500;
        assert_eq!(walk.progress(), 0.25);
        // Keys are written during the walk.
        walk.seen = 5_000;
        assert!(walk.progress() < 0.5);
        walk = Walk { rules_done: 1, seen: 0, ..walk };
        assert_eq!(walk.progress(), 0.5);
        walk.rules_done = 2;
        assert_eq!(walk.progress(), 1.0);
        assert_eq!(Walk::default().progress(), 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_is_kept_on_average_and_what_was_slow_is_not_made_up_for_at_once() {
        let mut pace = Pace::new(50_000);
        assert_eq!(pace.step(), STEP);
        let begun = Instant::now();
        for _ in 0..1_000 {
            tokio::time::sleep_until(pace.next()).await;
        }
        let keys_per_s = 1_000.0 * 512.0 / begun.elapsed().as_secs_f64();
        assert!((49_000.0..51_000.0).contains(&keys_per_s), "{keys_per_s}");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(pace.next() + BEHIND >= Instant::now());
        assert_eq!((Pace::new(100).step(), Pace::new(1).step()), (5, 1));
    }
}
