//! What is counted of a connection: round trips by call and by what came of them, and whether it is up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overdue_telemetry::label::ConnectionRole;
use overdue_telemetry::{Counter, Gauge, Histogram, Metric};

use crate::fault::Fault;
use crate::order::{Order, Route};

/// What counts the round trips of one connection. Handles are made once for each call: they are used in hot paths.
#[derive(Default)]
pub(crate) struct Meter {
    calls: Mutex<HashMap<&'static str, Arc<Answered>>>,
}

struct Answered {
    ok: Counter,
    seconds: Histogram,
}

impl Meter {
    /// A round trip ended; `took` includes the wait for a connection.
    pub(crate) fn count<T>(&self, order: &Order, took: Duration, outcome: &Result<T, Fault>) {
        match outcome {
            Ok(_) => {
                let answered = self.answered(order.call);
                answered.ok.increment(1);
                if !matches!(order.route, Route::Blocking(_)) {
                    answered.seconds.record(took.as_secs_f64());
                }
            }
            Err(fault) if fault.no_script => Metric::RedisCalls.count(1, &[order.call, "no_script"]),
            Err(fault) => Metric::RedisCalls.count(1, &[order.call, fault.kind.as_str()]),
        }
    }

    fn answered(&self, call: &'static str) -> Arc<Answered> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Answered {
            ok: Metric::RedisCalls.counter(&[call, "ok"]),
            seconds: Metric::RedisCallSeconds.histogram(&[call]),
        };
        Arc::clone(calls.entry(call).or_insert_with(|| Arc::new(make())))
    }
}

/// Counts a connection among those that are up, as long as it is and this lives.
pub(crate) struct Presence {
    connections: Gauge,
    up: bool,
}

impl Presence {
    /// Nothing is counted yet.
    pub(crate) fn new(role: ConnectionRole) -> Self {
        let connections = Metric::RedisConnections.gauge(&[role.as_str()]);
        connections.increment(0.0);
        Self { connections, up: false }
    }

    /// It is up, or it is not.
    pub(crate) fn set(&mut self, up: bool) {
        match (self.up, up) {
            (false, true) => self.connections.increment(1.0),
            (true, false) => self.connections.decrement(1.0),
            _ => {}
        }
        self.up = up;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.set(false);
    }
}
