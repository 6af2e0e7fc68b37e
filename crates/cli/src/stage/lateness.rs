//! How late things were, from the time that was asked for: what a queue that builds up adds is not left out.

use hdrhistogram::Histogram;

/// Latenesses, microseconds: from 1 µs to an hour, to 0.1 %.
pub(crate) struct Lateness {
    all: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { all: Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("bounds of ours") }
    }
}

impl Lateness {
    /// Takes one in. What was early counts as on time.
    pub(crate) fn note(&mut self, due_ms: u64, at_us: u64) {
        self.all.saturating_record(at_us.saturating_sub(due_ms * 1_000).max(1));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.all.len()
    }

    /// Of all there are, the one at `quantile`, microseconds; `None` when there is none.
    pub(crate) fn at(&self, quantile: f64) -> Option<u64> {
        (!self.all.is_empty()).then(|| self.all.value_at_quantile(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_no_lateness_and_early_is_on_time() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.at(0.5), None);
        lateness.note(10, 9_000);
        lateness.note(10, 11_500);
        assert_eq!((lateness.len(), lateness.at(0.5)), (2, Some(1)));
        assert!(lateness.at(1.0).unwrap().abs_diff(1_500) <= 1);
    }
}
