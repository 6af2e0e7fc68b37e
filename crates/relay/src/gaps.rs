//! Gaps: stretches of time in which notifications may have been missed.

use std::sync::Arc;

use overdue_telemetry::Metric;
use overdue_telemetry::label::GapReason;

/// Counts gaps and tells whoever sweeps.
#[derive(Clone)]
pub(crate) struct Gaps {
    tell: Arc<dyn Fn() + Send + Sync>,
}

impl Gaps {
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell) }
    }

    /// Something may have been missed.
    pub(crate) fn declare(&self, reason: GapReason) {
        Metric::Gaps.count(1, &[reason.as_str()]);
        (self.tell)();
    }
}
