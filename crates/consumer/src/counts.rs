//! What is counted, for the metrics and the final report. Handles are made once: they are used in hot paths.

use std::sync::atomic::{AtomicU64, Ordering};

use overdue_protocol::{GroupName, QueueName};
use overdue_telemetry::label::HandledResult;
use overdue_telemetry::{Counter, Gauge, Histogram, Metric};

use crate::report::Report;

pub(crate) struct Counts {
    handled: Vec<(Counter, AtomicU64)>,
    passed: AtomicU64,
    pub(crate) in_flight: Gauge,
    pub(crate) endpoint_up: Gauge,
    pub(crate) suspects: Counter,
    claims: (Counter, AtomicU64),
    pub(crate) leases_renewed: Counter,
    pub(crate) leases_lost: Counter,
    pub(crate) buried: Counter,
    pub(crate) group_recreated: Counter,
    pub(crate) ack_batch: Histogram,
    pub(crate) lateness: Histogram,
    pub(crate) handler_seconds: Histogram,
}

impl Counts {
    pub(crate) fn new(queue: &QueueName, group: &GroupName) -> Self {
        let labels = &[queue.as_str(), group.as_str()];
        let handled = |result: &HandledResult| {
            (Metric::Handled.counter(&[labels[0], labels[1], result.as_str()]), AtomicU64::new(0))
        };
        Self {
            handled: HandledResult::ALL.iter().map(handled).collect(),
            passed: AtomicU64::new(0),
            in_flight: Metric::InFlight.gauge(labels),
            endpoint_up: Metric::EndpointUp.gauge(labels),
            suspects: Metric::Suspects.counter(labels),
            claims: (Metric::Claims.counter(labels), AtomicU64::new(0)),
            leases_renewed: Metric::LeasesRenewed.counter(labels),
            leases_lost: Metric::LeasesLost.counter(labels),
            buried: Metric::Buried.counter(labels),
            group_recreated: Metric::GroupRecreated.counter(labels),
            ack_batch: Metric::AckBatch.histogram(labels),
            lateness: Metric::DeliveryLateness.histogram(labels),
            handler_seconds: Metric::HandlerSeconds.histogram(labels),
        }
    }

    /// `n` attempts ended like this.
    pub(crate) fn handled(&self, result: HandledResult, n: u64) {
        if n > 0 {
            let (counter, count) = &self.handled[result as usize];
            counter.increment(n);
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// `n` entries were passed over: they are for another group.
    pub(crate) fn passed(&self, n: u64) {
        self.passed.fetch_add(n, Ordering::Relaxed);
    }

    /// `n` entries were taken over.
    pub(crate) fn claimed(&self, n: u64) {
        self.claims.0.increment(n);
        self.claims.1.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn report(&self, unsettled: u64) -> Report {
        let of = |result: HandledResult| self.handled[result as usize].1.load(Ordering::Relaxed);
        Report {
            done: of(HandledResult::Done),
            retried: of(HandledResult::Retry),
            rejected: of(HandledResult::Reject),
            exhausted: of(HandledResult::Exhausted),
            malformed: of(HandledResult::Malformed),
            lost: of(HandledResult::Lost),
            released: of(HandledResult::Released),
            postponed: of(HandledResult::Postponed),
            unreachable: of(HandledResult::Unreachable),
            deaths: of(HandledResult::Deaths),
            incomplete: of(HandledResult::Incomplete),
            passed: self.passed.load(Ordering::Relaxed),
            claimed: self.claims.1.load(Ordering::Relaxed),
            unsettled,
        }
    }
}
